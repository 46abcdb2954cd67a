"""Memory must not grow with the number of findings, whatever looks at them."""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import CampaignConfig, CampaignReader, CampaignWriter, InputSpace, Real, open_result
from policyfuzz.cli.main import exit_code
from policyfuzz.search.corpus import COLUMNS, Corpus
from policyfuzz.store.records import BatchRecord, FailedEpisode, Progress

sys.path.insert(0, str(Path(__file__).parent))
from example_findings import a_finding

SPACE = InputSpace((Real("speed", 0, 9, unit="m/s"), Real("gap", 0, 1)))
FEW, MANY = 1_000, 8_000


def write_campaign(folder: Path, size: int) -> Path:
    """A campaign with `size` findings, errors and seeds, half of the findings distinct."""
    store = CampaignWriter.create(folder, CampaignConfig("ripple"), SPACE)
    inputs = np.random.default_rng(0).random((size, 2))
    findings = [
        a_finding(n, status="confirmed", is_distinct=n % 2 == 0, case_seed=n, input=inputs[n - 1])
        for n in range(1, size + 1)
    ]
    failed = [
        FailedEpisode(n, "raised", 3, "ValueError: no", "mutant", n, n, 1, 10, 0.5, inputs[n - 1])
        for n in range(1, size + 1)
    ]
    columns = {name: np.ones(size, kind) for name, kind in COLUMNS.items()}
    progress = Progress(batch=1, executions=9 * size, findings=size, distinct_findings=size // 2, errors=size)
    store.commit(BatchRecord(progress, findings, failed=failed, seed_inputs=inputs, seed_columns=columns))
    store.set_stop_reason("max-execs")
    store.close()
    return folder


@pytest.fixture(scope="module")
def few(tmp_path_factory) -> Path:
    return write_campaign(tmp_path_factory.mktemp("few") / "c", FEW)


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Path:
    return write_campaign(tmp_path_factory.mktemp("many") / "c", MANY)


def peak(action: Callable[[], object]) -> int:
    """Bytes that `action` takes at its peak, once everything it imports is there.

    The least of three runs: garbage that waits for its collector, perhaps of other tests, is not its own.
    """
    action()
    return min(one_peak(action) for _ in range(3))


def one_peak(action: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow  # tracing every allocation takes its time
@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("show",),
        ("show", "--all", "--json"),
        ("show", "900"),
        ("show", "--errors"),
        ("export", "-o", "t.csv"),
        ("export", "-o", "t.json"),
        ("export", "-o", "t.npz"),
    ],
    ids=" ".join,
)
def test_memory_does_not_grow_with_the_campaign(few, many, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    verb, *options = arguments

    def looked_at(folder: Path) -> None:
        assert exit_code([verb, str(folder), *options]) == 0

    small = peak(lambda: looked_at(few))
    large = peak(lambda: looked_at(many))
    # eight times the rows, which would take many megabytes; a page is held while the next one is read
    assert large < 2 * small + 500_000


@pytest.mark.slow  # tracing every allocation takes its time
def test_records_are_read_when_they_are_asked_for(few, many):
    def look(folder: Path) -> None:
        findings = open_result(folder).findings
        assert findings[-1].id == len(findings)
        assert [one.id for one in findings[10:14:2]] == [11, 13]
        assert sum(1 for _ in findings) == len(findings)
        assert "more" in repr(findings)

    numbers = 8 * (MANY - FEW)  # an array of them
    assert peak(lambda: look(many)) < 1.3 * peak(lambda: look(few)) + 3 * numbers


@pytest.mark.slow  # tracing every allocation takes its time
def test_corpus_is_restored_in_little_more_than_its_own_size(many):
    def restore() -> None:
        corpus = Corpus(2)
        for inputs, columns in CampaignReader(many).corpus_parts():
            corpus.append(inputs, columns)
        assert len(corpus) == MANY

    whole = MANY * (2 + len(COLUMNS)) * 8
    assert peak(restore) < 4 * whole  # arrays double as they grow


def test_rows_are_listed_from_any_place(many, capsys):
    assert exit_code(["show", str(many), "--all", "--offset", "7990", "--limit", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["7991", "7992", "7993", "7994"]
    assert "... and 6 more findings: --offset 7994" in lines[-1]


def test_program_hears_of_what_a_list_leaves_out_on_stderr(few, capsys):
    assert exit_code(["show", str(few), "--json"]) == 0
    assert "... and 450 more distinct findings: --offset 50, or --limit 0 for all" in capsys.readouterr().err
    assert exit_code(["show", str(few), "--json", "--limit", "0"]) == 0
    printed = capsys.readouterr()
    assert (printed.out.count('"finding":'), printed.err) == (500, "")


def test_error_of_a_finding_is_found_by_an_index(few):
    campaign = CampaignReader(few)
    query = "EXPLAIN QUERY PLAN SELECT * FROM errors WHERE finding = 7"
    assert "errors_of_findings" in str(campaign._connection.execute(query).fetchall())
    assert [one.id for one in campaign.failed_episodes(of_finding=7)] == [7]


def test_pages_hold_every_row_once_and_in_order(many):
    campaign = CampaignReader(many)
    assert [row["id"] for row in campaign.iterate("findings")] == list(range(1, MANY + 1))
    newest = campaign.latest("findings", 2500, "is_distinct")
    assert [row["id"] for row in newest] == list(range(MANY, MANY - 5000, -2))
    assert len(campaign.distinct_inputs()) == MANY // 2
    assert campaign.distinct_inputs(most=1500).shape == (1500, 2)


def test_resumed_numbers_follow_the_last_ones(tmp_path):
    store = CampaignWriter(write_campaign(tmp_path / "c", 5))
    assert (store.last_number("findings"), store.last_number("seeds")) == (5, 4)
    assert store.last_number("batches") == 1
    assert replace(store.progress(), seconds=0.0).findings == 5
    store.close()
