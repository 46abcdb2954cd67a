"""The shipped driver; CARD.md says how it was made."""
