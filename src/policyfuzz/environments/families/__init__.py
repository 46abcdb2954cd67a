"""Families of environments whose first state we know how to set; each has a module with `find(env)`."""
