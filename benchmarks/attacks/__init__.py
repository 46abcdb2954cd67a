"""Attacks on running campaigns, in bulk: kills, stops, copies, cut logs, full disks, second writers."""
