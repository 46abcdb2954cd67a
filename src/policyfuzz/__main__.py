"""Lets `python -m policyfuzz` be the command line."""

from policyfuzz.cli.main import run

if __name__ == "__main__":
    run()
