"""PolicyFuzz from Python and notebooks: fuzz, check and results."""
