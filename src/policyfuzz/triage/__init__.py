"""Second runs of findings: replays, failure modes, witnesses, boundaries."""
