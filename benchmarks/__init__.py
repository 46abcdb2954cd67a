"""Benchmarks that print ratios within one run."""
