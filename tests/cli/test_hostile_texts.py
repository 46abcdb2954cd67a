"""No text of a target, a campaign or a peer reaches the terminal as anything but text."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from policyfuzz.cli.main import exit_code

sys.path.insert(0, str(Path(__file__).parent))
from hostile_texts import HOSTILE

#: A folder may be called so, and a file.
NAME = HOSTILE.replace("\r", "")
LIMITS = ("--max-execs", "400", "--samples", "100")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """A folder with the target, and a campaign on it in a sync folder, all with hostile names."""
    folder = tmp_path_factory.mktemp("hostile")
    target = folder / f"target{NAME}.py"
    shutil.copy(Path(__file__).with_name("hostile_texts.py"), target)
    words = ["fuzz", f"{target}:make", "--sync", folder / f"shared{NAME}", "-o", f"c{NAME}", *LIMITS]
    assert exit_code([str(word) for word in [*words, "--ui", "none"]]) == 1
    return folder


def paths(workshop: Path) -> dict[str, str]:
    shared = workshop / f"shared{NAME}"
    return {
        "TARGET": f"{workshop / f'target{NAME}.py'}",
        "SHARED": str(shared),
        "CAMPAIGN": str(shared / f"c{NAME}"),
        "NEW": str(workshop / f"new{NAME}"),
    }


VERBS = {
    "targets": (0, "targets"),
    "check": (0, "check TARGET:make --episodes 60"),
    "check of what cannot be made": (3, "check TARGET:broken"),
    "check of nothing": (2, "check CAMPAIGN:make"),
    "fuzz, plain": (1, "fuzz TARGET:make -o NEW --max-execs 300 --samples 100 --ui plain"),
    "fuzz, screen": (1, "fuzz TARGET:make -o NEW --max-execs 300 --samples 100 --ui screen"),
    "fuzz again": (2, "fuzz TARGET:make -o CAMPAIGN --max-execs 300"),
    "resume another": (2, "fuzz ripple -o CAMPAIGN --resume"),
    "show": (0, "show CAMPAIGN"),
    "show all": (0, "show CAMPAIGN --all"),
    "show one": (0, "show CAMPAIGN 1"),
    "show none": (2, "show CAMPAIGN 10000"),
    "show errors": (0, "show CAMPAIGN --errors"),
    "show one error": (0, "show CAMPAIGN 1 --errors"),
    "show nothing": (2, "show NEW"),
    "status": (0, "status CAMPAIGN"),
    "status of a sync folder": (0, "status SHARED"),
    "replay": (1, "replay CAMPAIGN 1 --no-picture --trust"),
    "replay with a picture": (1, "replay CAMPAIGN 1 --trust"),
    "replay of an error": (3, "replay CAMPAIGN 1 --error --trust"),
    "export": (0, "export CAMPAIGN -o NEW.csv"),
    "export of errors": (0, "export CAMPAIGN --what errors -o NEW.json"),
    "export of tests": (0, "export CAMPAIGN --what pytest -o NEW.py"),
    "export of XML": (0, "export CAMPAIGN --what junit -o NEW.xml"),
    "compare": (0, "compare CAMPAIGN CAMPAIGN --pool 40 --trust"),
    "compare with nothing": (2, "compare CAMPAIGN --trust"),
    "export to nowhere": (2, "export CAMPAIGN -o NEW/NEW.csv"),
    "init": (2, "init TARGET"),
    "unknown verb": (2, "TARGET"),
    "unknown option": (2, "show --TARGET"),
    "wrong value": (2, "fuzz ripple --max-time TARGET"),
}


@pytest.fixture
def run(workshop, capfdbinary):
    """Run a command line with a terminal's colours, in this process; give back code and what was printed."""

    def run_words(command: str, *more: str) -> tuple[int, str]:
        words = command.split()
        for key, path in paths(workshop).items():
            words = [word.replace(key, path) for word in words]
        code = exit_code([*words, *more])
        out, err = capfdbinary.readouterr()
        return code, (out + err).decode()

    yield run_words
    shutil.rmtree(paths(workshop)["NEW"], ignore_errors=True)


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_passes_control_characters_on(run, verb, monkeypatch):
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)
    code, printed = run(VERBS[verb][1])
    assert code == VERBS[verb][0], printed
    assert printed
    assert_visible(printed)


@pytest.mark.parametrize("verb", ["check", "show", "show one", "show errors", "show one error", "status"])
def test_json_holds_the_texts_and_prints_none_raw(run, verb):
    code, printed = run(VERBS[verb][1], "--json")
    assert code == 0
    assert_visible(printed)
    values, _ = json.JSONDecoder().raw_decode(printed)  # what is being done follows, on stderr
    assert any(HOSTILE in text or NAME in text for text in texts_in(values))


def test_target_in_a_file_whose_name_is_no_text_can_be_fuzzed(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"t\xff.py")
    shutil.copy(Path(__file__).with_name("hostile_texts.py"), name)
    code, printed = run(f"fuzz {name}:make -o c --ui plain", *LIMITS)
    assert code == 1, printed
    assert_visible(printed)
    assert run("show c 1")[0] == 0


def test_names_that_cannot_be_stored_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = Path(__file__).with_name("hostile_texts.py").read_text()
    Path("t.py").write_text(text.replace('unit=f"m{HOSTILE}"', 'unit="\\udcff"'))
    code, printed = run("fuzz t.py:make -o c", *LIMITS)
    assert code == 2
    assert r"calls something '\udcff', which is no text" in printed


@pytest.mark.parametrize("ui", ["screen", "plain"])
@pytest.mark.slow
def test_terminal_is_not_obeyed_by_what_a_campaign_says(workshop, tmp_path, ui):
    """A real terminal: all that it is sent comes from rich, which moves, colours and deletes lines."""
    main, terminal = pty.openpty()
    words = ["fuzz", f"{paths(workshop)['TARGET']}:make", "-o", tmp_path / NAME, *LIMITS, "--ui", ui]
    command = [sys.executable, "-m", "policyfuzz", *map(str, words)]
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, cwd=tmp_path) as process:
        os.close(terminal)
        printed = b""
        while data := _read(main):
            printed += data
        assert process.wait() == 1
    os.close(main)
    text = printed.decode()
    assert r"\x1b[2J" in text
    for sequence in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e", "\u2066", "\u200b"):
        assert sequence not in text


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""


def assert_visible(printed: str) -> None:
    assert all(line.isprintable() for line in printed.replace("\t", " ").split("\n")), ascii(printed)


def texts_in(value) -> list[str]:
    """All texts in a value of JSON, names included."""
    if isinstance(value, dict):
        return [*value, *(text for item in value.values() for text in texts_in(item))]
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    return [value] if isinstance(value, str) else []
