"""The simulator protocol."""
