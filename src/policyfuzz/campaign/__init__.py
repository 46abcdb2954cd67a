"""Campaigns: the loop, its budget, its events and its file."""
