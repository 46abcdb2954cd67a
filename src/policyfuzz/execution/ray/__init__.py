"""A pool of worker processes on a Ray cluster."""
