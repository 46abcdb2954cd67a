"""A long campaign on a simulator with every fault, and a second set of books to check its accounts."""
