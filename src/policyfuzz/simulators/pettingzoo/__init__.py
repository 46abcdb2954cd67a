"""PettingZoo parallel environments as a simulator: many environment objects in lock-step."""
