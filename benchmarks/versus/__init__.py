"""Strategies and other fuzzers side by side: same targets, same rules, same number of episodes."""
