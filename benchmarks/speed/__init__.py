"""Speed, as ratios against a baseline of the same run."""
