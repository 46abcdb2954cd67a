"""The search: what to try next, and what to keep."""
