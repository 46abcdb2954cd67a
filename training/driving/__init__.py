"""How the cloned driver was made."""
