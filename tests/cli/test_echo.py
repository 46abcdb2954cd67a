"""One way to the terminal: nothing in `cli` prints past `echo` and the consoles."""

import ast
import io
import re
import warnings
from pathlib import Path

import click
import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import policyfuzz.cli
from policyfuzz.cli import console
from policyfuzz.cli.echo import echo, show_usage_error, show_warning

HOSTILE = "\x1b]0;x\x07\x1b[2J\x9b1m\u202e\u2066\u200b\u2028\r\x7f\udcff"
SHOWN = r"\x1b]0;x\x07\x1b[2J\x9b1m\u202e\u2066\u200b\u2028\r\x7f\udcff"
MODULES = sorted(Path(policyfuzz.cli.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_verb_prints_past_echo_and_the_consoles(module):
    tree = ast.parse(module.read_text())
    names = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)}
    past = {
        "print",
        "click.echo",
        "click.secho",
        "click.echo_via_pager",
        "sys.stdout.write",
        "sys.stderr.write",
    }
    allowed = {"click.echo"} if module.stem == "echo" else set()
    assert names & past == allowed
    if module.stem != "console":
        assert not {"Console", "rich.console.Console"} & {
            ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)
        }


@pytest.mark.parametrize("err", [False, True])
def test_echo_shows_control_characters_as_escapes(capsys, err):
    echo(f"one {HOSTILE}\ntwo", err=err)
    printed = capsys.readouterr()
    assert (printed.err if err else printed.out) == f"one {SHOWN}\ntwo\n"


def test_a_usage_error_repeats_arguments_as_escapes(capsys):
    show_usage_error(click.UsageError("no such option: \x1b]0;x\x07\u202e"))
    assert capsys.readouterr().err == "Error: no such option: \\x1b]0;x\\x07\\u202e\n"


def test_a_warning_quotes_as_escapes(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show_warning
        warnings.warn(f"odd name {HOSTILE}", UserWarning, stacklevel=1)
    said = capsys.readouterr().err
    assert f"UserWarning: odd name {SHOWN}\n" in said
    assert all(line.isprintable() for line in said.splitlines())


@pytest.mark.parametrize("make", [console.talk, console.results])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_consoles_show_control_characters_in_all_parts_as_escapes(make, is_terminal):
    table = Table(title=HOSTILE)
    table.add_column(Text(HOSTILE))
    table.add_row(HOSTILE)
    screen = make()
    screen.file, screen._force_terminal, screen.width = io.StringIO(), is_terminal, 200
    for part in (HOSTILE, Text(HOSTILE), Panel(HOSTILE, title=Text(HOSTILE)), table):
        screen.print(part, style="not bold")
    printed = screen.file.getvalue()
    without_styles = re.sub(r"\x1b\[[0-9;]*m", "", printed)  # the colours of rich itself
    assert not set(without_styles) & {one for one in HOSTILE if not one.isprintable()}
    assert r"\x1b[2J" in printed


def test_consoles_do_not_turn_words_into_pictures():
    screen = console.results()
    screen.file = io.StringIO()
    screen.print("py:snake:act [bold]")
    assert screen.file.getvalue() == "py:snake:act [bold]\n"


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
def test_absurd_size_of_the_terminal_is_ignored(name, monkeypatch):
    monkeypatch.setenv(name, "9" * 5000)
    assert 0 < console.talk().width < 10_000
