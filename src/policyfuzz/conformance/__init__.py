"""What every target must guarantee, as checks that you can run on your own."""
