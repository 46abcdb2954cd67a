"""What commands say on stderr while they work."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from policyfuzz.campaign.events import Started
from policyfuzz.cli import steps
from policyfuzz.cli.main import exit_code
from policyfuzz.cli.screen import Screen
from policyfuzz.core.settings import Budget, CampaignConfig
from policyfuzz.store.records import Progress

FAULTY = Path(__file__).parents[1] / "campaign" / "faulty_targets.py"

WARNING_TARGET = """
import warnings

import policyfuzz


def make_target():
    warnings.warn("an older package talks too much", UserWarning)
    return policyfuzz.load_target("ripple")
"""


def test_check_without_a_terminal_says_what_it_does(capsys):
    assert exit_code(["check", "ripple", "--episodes", "20"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "loading ripple"
    assert "running ripple" in said


def test_long_steps_are_told_again_and_again(monkeypatch):
    monkeypatch.setattr(steps, "_INTERVAL_SECONDS", 0.001)
    log = io.StringIO()
    plain = steps.PlainSteps(Console(file=log))
    done = []
    for item in plain.track("abc", "working"):
        wanted, end = f"working, {len(done)} of 3 (", time.monotonic() + 300
        while wanted not in log.getvalue():
            assert time.monotonic() < end
        done.append(item)
    plain.end()
    assert done == ["a", "b", "c"]
    assert log.getvalue().startswith("working\n")


def test_a_step_that_does_not_move_is_told_less_and_less_often(monkeypatch):
    class Ticks:
        """A wait that is over after 400 intervals; at the 300th, the step moves."""

        count = 0

        def wait(self, seconds):
            self.count += 1
            if self.count == 300:
                plain.count("nearly done")
            return self.count > 400

    log = io.StringIO()
    plain = steps.PlainSteps(Console(file=log))
    plain.count("working")
    monkeypatch.setattr(plain, "_is_over", Ticks())
    plain._repeat()
    lines = log.getvalue().splitlines()
    assert [line.partition(" (")[0] for line in lines] == ["working"] * 9 + ["nearly done"] * 7


def test_quiet_steps_say_nothing(capsys):
    with steps.showing_steps(is_shown=False) as quiet:
        quiet.say("loading")
    assert capsys.readouterr() == ("", "")


def test_unhealthy_target_is_told_once(tmp_path, capsys):
    words = ["fuzz", f"{FAULTY}:always_crashing", "--max-execs", "400", "-o", str(tmp_path / "c")]
    assert exit_code(words) == 3
    assert capsys.readouterr().err.count("random episodes crash") == 1


def test_warnings_of_packages_stay_off_the_screen(tmp_path):
    (tmp_path / "talker.py").write_text(WARNING_TARGET)
    run = [sys.executable, "-c", "from policyfuzz.cli.main import run; run()"]
    words = ["check", "talker.py:make_target", "--episodes", "20"]
    quiet = subprocess.run([*run, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "talks too much" not in quiet.stderr
    asked = [run[0], "-W", "default", *run[1:]]
    loud = subprocess.run([*asked, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "talks too much" in loud.stderr


class Interrupted(io.StringIO):
    """A terminal at which somebody presses Ctrl-C while a picture is half drawn."""

    def isatty(self):
        return True

    def write(self, text):
        half = len(text) // 2
        super().write(text[:half])
        if "policyfuzz" in text and self.presses:
            self.presses -= 1
            os.kill(os.getpid(), signal.SIGINT)
        return super().write(text[half:])

    presses = 1


@pytest.fixture
def _interruptible():
    """Ctrl-C raises, even if the tests were started in the background, where it does nothing."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_interrupt_waits_until_the_picture_is_drawn_so_that_it_can_be_wiped_off():
    terminal = Interrupted()
    started = Started(CampaignConfig("ripple"), Budget(), "campaigns/ripple-1", Progress())
    screen = Screen(Console(file=terminal, force_terminal=True, width=60))
    with pytest.raises(KeyboardInterrupt), screen:
        screen(started)
    drawn, _, wiped = terminal.getvalue().rpartition("╯")
    assert drawn.count("╭") == drawn.count("╰")  # the frame is whole
    assert wiped.count("\x1b[1A") >= 2  # and its lines are taken back
