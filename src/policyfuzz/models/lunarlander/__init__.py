"""The shipped LunarLander policy; CARD.md says how it was made."""
