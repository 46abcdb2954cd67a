"""Shows that `estimate` says the truth, and how many episodes it saves."""
