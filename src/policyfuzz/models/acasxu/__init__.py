"""The shipped ACAS Xu networks; CARD.md says how they were made."""
