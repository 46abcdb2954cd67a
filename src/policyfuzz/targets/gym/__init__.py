"""Any Gymnasium environment as a target."""
