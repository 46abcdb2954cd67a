"""Failure modes: are planted ones found, and do those of real targets hold."""
