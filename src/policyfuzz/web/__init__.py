"""Campaigns in a browser, live and read-only: what is served, to whom, and how it is drawn."""
