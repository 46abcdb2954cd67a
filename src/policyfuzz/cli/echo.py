"""Prints a line of text. Nothing in it reaches the terminal as an escape sequence."""

import io

import click

from policyfuzz.core.visible import visible


def echo(text: str = "", err: bool = False) -> None:
    """Print `text` on stdout, or on stderr if `err`; it may hold texts of strangers."""
    click.echo(visible(text), err=err)


def show_usage_error(error: click.ClickException) -> None:
    """Print what click says about wrong arguments, which it repeats, on stderr."""
    lines = io.StringIO()
    error.show(lines)
    echo(lines.getvalue().removesuffix("\n"), err=True)
