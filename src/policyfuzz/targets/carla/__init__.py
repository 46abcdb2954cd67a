"""CARLA: a car in traffic on a server of the user's own."""
