"""`fuzz --log` and `--on-finding`: what they leave behind, and that the campaign does not notice them."""

import json
import sys
from pathlib import Path

import pytest

from tests.campaign.campaign_tables import tables

RIPPLE = "ripple:dimensions=3,probability=0.01"


def fuzz(cli, folder: str, *options: object) -> tuple[int, str]:
    code, _, err = cli("fuzz", RIPPLE, "--max-execs", 800, "-o", folder, "--ui", "none", *options)
    return code, err


def test_campaign_is_the_same_with_and_without_watchers(cli, tmp_path):
    pytest.importorskip("tensorboardX", reason="needs the extra tensorboard")
    assert fuzz(cli, "alone") == (1, "")
    command = f"cat >> {tmp_path}/modes.jsonl"
    assert fuzz(cli, "watched", "--log", "tensorboard", "--on-finding", command) == (1, "")
    assert tables("watched") == tables("alone")
    modes = [json.loads(line) for line in (tmp_path / "modes.jsonl").read_text().splitlines()]
    assert [one["mode"] for one in modes] == list(range(1, len(modes) + 1))
    assert modes[0]["is_first_of_kind"]
    assert any((tmp_path / "watched" / "tensorboard").iterdir())


def test_command_that_fails_changes_neither_results_nor_exit_code(cli):
    fuzz(cli, "alone")
    code, err = fuzz(cli, "watched", "--on-finding", "exit 9")
    assert code == 1
    assert "exit code 9" in err
    assert tables("watched") == tables("alone")


def test_log_without_its_package_is_refused_before_anything_runs(cli, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboardX"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    code, err = fuzz(cli, "c", "--log", "tensorboard")
    assert code == 2
    assert "[tensorboard]" in err
    assert not Path("c").exists()


@pytest.mark.parametrize("command", ["", "  "])
def test_empty_command_is_refused(cli, command):
    code, err = fuzz(cli, "c", "--on-finding", command)
    assert code == 2
    assert "command for new modes" in err
    assert not Path("c").exists()
