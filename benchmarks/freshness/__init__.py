"""Whether freshness tells crashes from other episodes, and whether a search finds more with it."""
