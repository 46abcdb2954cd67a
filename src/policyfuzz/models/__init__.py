"""Trained weights that come with the package, each with a card."""
