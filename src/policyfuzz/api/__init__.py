"""PolicyFuzz from Python and notebooks: fuzz, check, and what came of it."""
