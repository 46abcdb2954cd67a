"""Campaigns that exchange what they find, by plain files in a shared folder."""
