"""Prints a line of text. Nothing in it reaches the terminal as an escape sequence."""

import io
import warnings
from typing import TextIO

import click

from policyfuzz.core.visible import visible


def echo(text: str = "", err: bool = False, nl: bool = True) -> None:
    """Print `text` on stdout, or on stderr if `err`; it may hold texts of strangers."""
    click.echo(visible(text), err=err, nl=nl)


def show_usage_error(error: click.ClickException) -> None:
    """Print what click says about wrong arguments, which it repeats, on stderr."""
    lines = io.StringIO()
    error.show(lines)
    echo(lines.getvalue(), err=True, nl=False)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001 - Python gives it
    line: str | None = None,
) -> None:
    """Print a warning as Python does; it may quote what it warns of. For `warnings.showwarning`."""
    echo(warnings.formatwarning(message, category, filename, lineno, line), err=True, nl=False)
