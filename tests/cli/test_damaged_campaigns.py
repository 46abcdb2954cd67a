"""Campaigns that are damaged, or made to do harm: a sentence and exit code 2, or the right answer."""

import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyfuzz import CampaignReader, open_result
from policyfuzz.cli.main import exit_code
from policyfuzz.core.errors import CampaignError

sys.path.append(str(Path(__file__).parents[1] / "store"))
import damaged_files

TARGET = "ripple:dimensions=2,probability=0.3"
FUZZ = ("fuzz", TARGET, "--ui", "none", "--batch", "64", "--samples", "64", "--force")
VERBS = (
    ("status",),
    ("show", "--all", "--json"),
    ("show", "1"),
    ("show", "--errors"),
    ("export", "-o", "x.csv"),
    ("export", "-o", "x.npz", "--what", "seeds"),
    ("export", "-o", "x.py", "--what", "pytest"),
    ("export", "-o", "x.xml", "--what", "junit"),
    ("replay", "1", "--no-picture"),
)
PRECIOUS = "do not touch\n"


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """A campaign with findings on more than a page, to be copied."""
    folder = tmp_path_factory.mktemp("sound") / "c"
    assert exit_code([*FUZZ, "--max-execs", "600", "-o", str(folder)]) == 1
    return folder


def read(folder: Path, capsys) -> None:
    """Let all verbs read the campaign in `folder`; none may fail in a way that it does not explain."""
    for verb, *options in VERBS:
        check(exit_code([verb, str(folder), *options]), capsys, verb, options)
    with suppress(CampaignError):
        result = open_result(folder)
        for part in (result.findings, result.errors, result.history):
            assert repr(part)
        assert result._repr_html_()


def resume(folder: Path, capsys) -> None:
    """Resume the campaign in `folder`, which may only fail with an explanation."""
    code = exit_code([*FUZZ, "--max-execs", "700", "-o", str(folder), "--resume"])
    check(code, capsys, "fuzz", ["--resume"])


def stamps(folder: Path) -> dict[str, tuple[int, ...]]:
    """What tells whether anything was written; pipes and devices are not opened."""
    if not folder.is_dir():
        return {}
    found = {path.name: path.lstat() for path in folder.iterdir()}
    return {name: (one.st_ino, one.st_mode, one.st_size, one.st_mtime_ns) for name, one in found.items()}


def check(code: int, capsys, verb: str, options: list[str]) -> None:
    printed = capsys.readouterr()
    said = f"{verb} {' '.join(options)}: {code}: {printed.err}"
    assert code in (0, 1, 2, 3), said
    assert "internal error" not in printed.err, said
    assert "Traceback" not in printed.out + printed.err, said
    if code == 2:
        assert printed.err.startswith("policyfuzz: "), said


@pytest.mark.parametrize("damage", damaged_files.EDITS)
def test_damaged_campaign_is_explained(sound, tmp_path, monkeypatch, capsys, damage):
    monkeypatch.chdir(tmp_path)
    Path("precious").write_text(PRECIOUS)
    folder = shutil.copytree(sound, tmp_path / "c")
    damaged_files.EDITS[damage](folder)
    read(folder, capsys)
    assert Path("precious").read_text() == PRECIOUS


@pytest.mark.slow
@pytest.mark.parametrize("damage", damaged_files.EDITS)
def test_resuming_a_damaged_campaign_is_explained(sound, tmp_path, monkeypatch, capsys, damage):
    monkeypatch.chdir(tmp_path)
    Path("precious").write_text(PRECIOUS)
    folder = shutil.copytree(sound, tmp_path / "c")
    damaged_files.EDITS[damage](folder)
    before = stamps(folder)
    resume(folder, capsys)
    if stamps(folder) != before:  # what was left as it is has been read by the test above
        read(folder, capsys)
    assert Path("precious").read_text() == PRECIOUS


@pytest.mark.parametrize(
    "damage",
    [
        *("no configuration", "target a number", "configuration deep", "options deep"),
        *("endless view findings", "column computed", "trigger", "pipe", "journal"),
        *("log a link", "index a link", "text", "zeros"),
    ],
)
def test_reading_verbs_refuse(sound, tmp_path, capsys, damage):
    folder = shutil.copytree(sound, tmp_path / "c")
    damaged_files.EDITS[damage](folder)
    assert {exit_code([verb, str(folder)]) for verb in ("status", "show")} == {2}


@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 255)), min_size=1, max_size=30))
def test_flipped_bytes_are_explained_or_harmless(sound, tmp_path, monkeypatch, capsys, flips):
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(tmp_path / "c", ignore_errors=True)
    folder = shutil.copytree(sound, tmp_path / "c")
    for place, mask in flips:
        damaged_files.flip(folder, place, mask)
    read(folder, capsys)
    resume(folder, capsys)


TABLES = ("about", "dimensions", "findings", "seeds", "batches", "state")
COLUMNS = (
    "name",
    "value",
    "position",
    "kind",
    "low",
    "id",
    "status",
    "is_distinct",
    "crash_step",
    "case_seed",
)
MORE_COLUMNS = (
    "x0",
    "x1",
    "energy",
    "niche",
    "parent",
    "executions",
    "samples",
    "seconds",
    "dtype",
    "shape",
    "data",
)
VALUES = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=9), st.binary(max_size=9)
)


@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.tuples(st.sampled_from(TABLES), st.sampled_from(COLUMNS + MORE_COLUMNS), VALUES),
        min_size=1,
        max_size=3,
    )
)
def test_any_value_in_any_column_is_explained_or_harmless(sound, tmp_path, monkeypatch, capsys, changes):
    monkeypatch.chdir(tmp_path)
    shutil.rmtree(tmp_path / "c", ignore_errors=True)
    folder = shutil.copytree(sound, tmp_path / "c")
    damaged_files.set_values(folder, changes)
    read(folder, capsys)
    resume(folder, capsys)


def test_file_of_an_earlier_version_resumes_like_a_new_one(sound, tmp_path, capsys):
    found = []
    for name in ("new", "earlier"):
        folder = shutil.copytree(sound, tmp_path / name)
        if name == "earlier":  # no strict tables, no index
            damaged_files.sql("DROP INDEX errors_of_findings")(folder)
        resume(folder, capsys)
        found.append([(one.id, one.status, *one.input) for one in CampaignReader(folder).findings()])
    assert found[0] == found[1]
    assert len(found[0]) > len(CampaignReader(sound).findings())
