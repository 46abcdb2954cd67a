"""Instances of a campaign that import each other's cases through plain files in a shared folder."""
