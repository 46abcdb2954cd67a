"""Driving in traffic: MetaDrive's physics, its traffic, and policies that see what its expert sees."""
