"""The synthetic target whose crash region is known in closed form."""
