"""Policies: the protocol, and how weights are read."""
