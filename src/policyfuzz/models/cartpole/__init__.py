"""The shipped CartPole policy; CARD.md says how it was made."""
