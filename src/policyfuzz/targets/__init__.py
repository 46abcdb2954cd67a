"""Built-in targets, one folder each."""
