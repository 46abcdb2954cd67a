"""How many workers one coordinator can keep busy."""
