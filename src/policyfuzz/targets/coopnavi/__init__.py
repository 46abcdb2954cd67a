"""Cooperative navigation: three agents cover three landmarks without colliding."""
