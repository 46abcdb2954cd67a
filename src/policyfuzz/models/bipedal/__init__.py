"""The shipped BipedalWalker network; CARD.md says how it was made."""
