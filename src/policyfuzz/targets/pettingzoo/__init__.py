"""Any PettingZoo parallel environment as a target."""
