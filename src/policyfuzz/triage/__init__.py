"""Replay of findings."""
