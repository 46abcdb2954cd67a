"""Where episodes are run."""
