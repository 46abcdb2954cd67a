"""What every target must keep to, as checks that anyone can run on a target of their own."""
