"""One description of every table: in the file, in the records, in the documentation."""

import re
import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import CampaignConfig, CampaignReader, CampaignWriter, InputSpace, Real
from policyfuzz.search.corpus import COLUMNS
from policyfuzz.store.database import BATCH_COLUMNS, FILE_NAME, INPUT_TABLES, SEED_COLUMNS, create_statements
from policyfuzz.store.records import BatchRecord, FailedEpisode, Finding, Progress, columns_of

RECORDS = {"findings": Finding, "errors": FailedEpisode, "batches": Progress}

#: A campaign file as the first version with format 5 wrote it, with one dimension, `speed`.
VERSION_5 = """
PRAGMA application_id = 1885762938;
PRAGMA user_version = 5;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE dimensions (position INTEGER PRIMARY KEY, name TEXT, column TEXT, kind TEXT, low REAL, \
high REAL, \
unit TEXT, options TEXT);
CREATE TABLE findings ("id" INTEGER PRIMARY KEY, "status" TEXT NOT NULL, "is_distinct" INTEGER NOT NULL, \
"kind" TEXT NOT NULL, "crash_step" INTEGER NOT NULL, "return" REAL, "parent" INTEGER, \
"case_seed" INTEGER NOT NULL, "batch" INTEGER NOT NULL, "execution" INTEGER NOT NULL, \
"seconds" REAL NOT NULL, \
"origin" TEXT, "speed" REAL NOT NULL);
CREATE TABLE seeds ("id" INTEGER PRIMARY KEY, "parent" INTEGER, "case_seed" INTEGER NOT NULL, "return" REAL, \
"energy" REAL, "log_density" REAL, "distance" REAL, "tie_break" REAL, "is_crash" INTEGER NOT NULL, \
"niche" INTEGER NOT NULL, "batch" INTEGER NOT NULL, "seconds" REAL NOT NULL, "origin" TEXT, \
"speed" REAL NOT NULL);
CREATE TABLE errors ("id" INTEGER PRIMARY KEY, "kind" TEXT NOT NULL, "step" INTEGER NOT NULL, \
"text" TEXT NOT NULL, "purpose" TEXT NOT NULL, "finding" INTEGER, "case_seed" INTEGER NOT NULL, \
"batch" INTEGER NOT NULL, "execution" INTEGER NOT NULL, "seconds" REAL NOT NULL, "speed" REAL NOT NULL);
CREATE TABLE batches ("id" INTEGER PRIMARY KEY, "seconds" REAL NOT NULL, "executions" INTEGER NOT NULL, \
"samples" INTEGER NOT NULL, "sample_crashes" INTEGER NOT NULL, "mutants" INTEGER NOT NULL, \
"mutant_crashes" INTEGER NOT NULL, "imports" INTEGER NOT NULL, "findings" INTEGER NOT NULL, \
"distinct_findings" INTEGER NOT NULL, "imported_findings" INTEGER NOT NULL, "flaky" INTEGER NOT NULL, \
"unconfirmed" INTEGER NOT NULL, "errors" INTEGER NOT NULL, "hangs" INTEGER NOT NULL, \
"simulator_crashes" INTEGER NOT NULL, "corpus" INTEGER NOT NULL, "drawn" INTEGER NOT NULL, \
"invalid" INTEGER NOT NULL, "unsolvable" INTEGER NOT NULL, "simulate_seconds" REAL NOT NULL, \
"validate_seconds" REAL NOT NULL, "density_seconds" REAL NOT NULL, "search_seconds" REAL NOT NULL, \
"store_seconds" REAL NOT NULL, "workers" INTEGER NOT NULL, "workers_ready" INTEGER NOT NULL, \
"worker_seconds" REAL NOT NULL, "busy_seconds" REAL NOT NULL, "restarts" INTEGER NOT NULL, \
"fresh_share" REAL, "fresh_threshold" REAL);
CREATE TABLE state (name TEXT PRIMARY KEY, dtype TEXT, shape TEXT, data BLOB);
"""
VERSION_5_ROWS = """
INSERT INTO about VALUES ('config', '{"batch_size": 64, "code_sha256": "", "distinct_radius": 0.01, \
"policy": null, "policy_sha256": "", "search": {"density": {"components": 10, "forgetting": 0.0, \
"regularisation": 0.0001}, "freshness": {"memory": 2048, "quantile": 0.05, "threshold": null}, \
"samples": 1000, "sensitivity": "lineage"}, "seed": 3, "strategy": "mdpfuzz", "target": "ripple", \
"window": 2}');
INSERT INTO dimensions VALUES (0, 'speed', 'speed', 'real', 0.0, 9.0, 'm/s', NULL);
INSERT INTO findings VALUES (1, 'confirmed', 1, 'caught', 7, NULL, 4, 9223372036854775807, 2, 70, 0.5, \
'b', 1.5);
INSERT INTO seeds VALUES (0, NULL, 9223372036854775807, -1.5, NULL, NULL, 0.25, 0.5, 0, 3, 1, 0.1, NULL, 2.5);
INSERT INTO seeds VALUES (1, 0, 6, NULL, 2.0, -3.0, NULL, NULL, 1, 4, 2, 0.5, 'b', 3.5);
INSERT INTO errors VALUES (1, 'raised', 3, 'ValueError: no', 'mutant', 1, 8, 2, 71, 0.75, 4.5);
INSERT INTO batches VALUES (1, 0.25, 64, 64, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 10, 80, 10, 6, 0.1, \
0.02, 0.03, \
0.04, 0.05, 2, 1, 0.5, 0.2, 0, NULL, NULL);
INSERT INTO state VALUES ('a', '<i8', '[2, 1]', x'01000000000000000200000000000000');
"""


@pytest.fixture
def old_campaign(tmp_path) -> CampaignReader:
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.executescript(VERSION_5 + VERSION_5_ROWS)
    return CampaignReader(tmp_path)


@pytest.fixture
def store(tmp_path):
    space = InputSpace((Real("speed", 0, 9),))
    store = CampaignWriter.create(tmp_path / "campaign", CampaignConfig("ripple"), space)
    yield store
    store.close()


def different_values(record, **others):
    """A `record` of values that all differ, in a way that shows if two of them are swapped."""
    values = {
        field.name: number for number, field in enumerate(fields(record), 2) if field.name not in others
    }
    return record(**values, **others)


def layout(statements: str) -> list[tuple]:
    """Tables and columns; newer files also refuse values of other types, and have an index."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(statements)
        pragmas = [
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        ]
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        columns = [
            (table, *column)
            for (table,) in names.fetchall()
            for column in connection.execute("SELECT cid, name, type, pk FROM pragma_table_xinfo(?)", [table])
        ]
        return pragmas + columns


def test_layout_of_format_5_has_not_changed():
    assert layout(";\n".join(create_statements(["speed"]))) == layout(VERSION_5)


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 37), reason="SQLite has no strict tables")
def test_new_file_refuses_values_of_another_type(store):
    refused = pytest.raises(sqlite3.Error, match="cannot store TEXT")
    with closing(sqlite3.connect(store.folder / FILE_NAME)) as connection, refused:
        connection.execute("INSERT INTO findings SELECT 1, 'new', 'no', '', 1, 1, 1, 1, 1, 1, 1, '', 1")


def test_file_of_format_5_can_be_read(old_campaign):
    assert (old_campaign.config.target, old_campaign.config.strategy) == ("ripple", "mdpfuzz")
    finding = old_campaign.finding(1)
    assert (finding.kind, finding.crash_step, finding.origin, finding.input.tolist()) == (
        "caught",
        7,
        "b",
        [1.5],
    )
    assert finding.is_distinct is True
    assert np.isnan(finding.episode_return)
    assert old_campaign.failed_episodes(of_finding=1)[0].text == "ValueError: no"
    assert old_campaign.failed_episodes(of_finding=2) == []
    progress = old_campaign.progress()
    assert (progress.batch, progress.executions, progress.unsolvable, progress.workers) == (1, 64, 6, 2)
    assert np.isnan(progress.fresh_threshold)
    assert old_campaign.state()["a"].tolist() == [[1], [2]]


def test_corpus_is_read_as_arrays_with_what_is_missing_marked(old_campaign):
    inputs, columns = old_campaign.corpus()
    np.testing.assert_array_equal(inputs, [[2.5], [3.5]])
    assert columns["case_seed"].tolist() == [2**63 - 1, 6]
    assert columns["parent"].tolist() == [-1, 0]
    assert columns["is_crash"].tolist() == [0, 1]
    np.testing.assert_array_equal(columns["energy"], [np.nan, 2.0])
    np.testing.assert_array_equal(columns["return"], [-1.5, np.nan])


def test_corpus_of_an_empty_campaign_has_no_rows(store):
    inputs, columns = store.corpus()
    assert inputs.shape == (0, 1)
    assert {len(values) for values in columns.values()} == {0}


@pytest.mark.parametrize("table", RECORDS)
def test_every_field_of_a_record_has_a_column_except_the_input(table):
    record = RECORDS[table]
    assert len(columns_of(record)) == len([field for field in fields(record) if field.name != "input"])
    assert columns_of(record) == ({"batches": BATCH_COLUMNS} | INPUT_TABLES)[table]


def test_every_value_of_a_record_comes_back_in_its_field(store):
    progress = replace(different_values(Progress), samples=90, mutants=91)  # no fewer than crashed
    finding = different_values(Finding, is_distinct=True, input=np.array([7.5]))
    failed = different_values(FailedEpisode, input=np.array([8.5]))
    as_text = {name: "t" + str(getattr(finding, name)) for name in ("status", "kind", "origin")}
    finding = replace(finding, **as_text)
    failed = replace(
        failed, **{name: "t" + str(getattr(failed, name)) for name in ("kind", "text", "purpose")}
    )
    store.commit(BatchRecord(progress, findings=[finding], failed=[failed]))
    assert store.progress() == progress
    for read, written in zip([*store.findings(), *store.failed_episodes()], [finding, failed], strict=True):
        np.testing.assert_array_equal(read.input, written.input)
        assert replace(read, input=None) == replace(written, input=None)


def test_corpus_columns_of_the_search_are_those_of_the_file(store):
    assert set(SEED_COLUMNS) == {*COLUMNS, "id", "batch", "seconds", "origin"}
    columns = {name: np.array([number, number + 20]) for number, name in enumerate(COLUMNS)}
    columns = {name: values.astype(COLUMNS[name]) for name, values in columns.items()}
    store.commit(BatchRecord(Progress(batch=1), seed_inputs=np.array([[1.5], [2.5]]), seed_columns=columns))
    inputs, read = store.corpus()
    assert inputs.tolist() == [[1.5], [2.5]]
    for name, values in columns.items():
        np.testing.assert_array_equal(read[name].astype(COLUMNS[name]), values)


@pytest.mark.parametrize("value", ["it's", "' OR 1 --", '"'])
def test_values_in_a_condition_are_not_taken_for_sql(store, value):
    finding = different_values(Finding, is_distinct=True, input=np.array([7.5]))
    store.commit(BatchRecord(Progress(batch=1), findings=[replace(finding, status=value)]))
    assert [row["status"] for row in store.iterate("findings", "status = ?", (value,))] == [value]
    assert [row["status"] for row in store.latest("findings", 1, "status = ?", (value,))] == [value]
    assert list(store.iterate("findings", "status = ?", ("other",))) == []


@pytest.mark.parametrize("table", [*INPUT_TABLES, "batches"])
def test_documentation_describes_every_column(table):
    text = (Path(__file__).parents[2] / "docs" / "campaign-file.md").read_text()
    section = re.search(rf"^## `{table}`.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL).group()
    documented = re.findall(r"^\| `(\w+)` \| ([A-Z ]+) \| (.*) \|$", section, re.MULTILINE)
    columns = ({"batches": BATCH_COLUMNS} | INPUT_TABLES)[table]
    assert documented == [(name, column.kind, column.meaning) for name, column in columns.items()]
