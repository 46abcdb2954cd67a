"""ACAS Xu: two-aircraft encounters and the networks that give advisories."""
