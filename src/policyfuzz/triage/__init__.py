"""What happens to findings: replay and confirmation."""
