"""The density of state sequences, learnt online."""
