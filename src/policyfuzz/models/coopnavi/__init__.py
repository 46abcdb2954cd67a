"""The shipped actors of cooperative navigation; CARD.md says how they were made."""
