"""BipedalWalker: a two-legged robot on stumps, stairs and pits."""
