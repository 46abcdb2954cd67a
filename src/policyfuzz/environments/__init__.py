"""Environments of Gymnasium and PettingZoo, and environment objects of the user, as targets."""
