"""How likely a state sequence is, learnt online."""
