"""From findings to a better policy: labels, fine-tuning in rounds, and independent tests of the result."""
