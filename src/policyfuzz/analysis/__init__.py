"""Looks inside policies: what they see and do step by step, and how much single decisions matter."""
