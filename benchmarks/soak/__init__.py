"""A long campaign on a simulator with every fault; journals of its workers check the accounts."""
