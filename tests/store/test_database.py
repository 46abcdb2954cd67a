"""One description of every table: in the file, in the records, in the documentation."""

import re
import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import CampaignConfig, CampaignWriter, InputSpace, Real
from policyfuzz.search.corpus import COLUMNS
from policyfuzz.store.database import BATCH_COLUMNS, FILE_NAME, INPUT_TABLES, SEED_COLUMNS, create_statements
from policyfuzz.store.records import BatchRecord, FailedEpisode, Finding, Progress, columns_of

RECORDS = {"findings": Finding, "errors": FailedEpisode, "batches": Progress}

#: The tables of a campaign file of format 6, with one dimension, `speed`.
VERSION_6 = """
PRAGMA application_id = 1885762938;
PRAGMA user_version = 6;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE dimensions (position INTEGER PRIMARY KEY, name TEXT NOT NULL, column TEXT NOT NULL, \
kind TEXT NOT NULL, low REAL NOT NULL, high REAL NOT NULL, unit TEXT NOT NULL, options TEXT);
CREATE TABLE findings (id INTEGER PRIMARY KEY, status TEXT NOT NULL, is_distinct INTEGER NOT NULL, \
is_novel INTEGER NOT NULL, kind TEXT NOT NULL, crash_step INTEGER NOT NULL, "return" REAL, margin REAL, \
outcome INTEGER, repeats INTEGER NOT NULL, root INTEGER, behaviour TEXT, reseeded INTEGER, \
reseeded_crashes INTEGER, survived_by TEXT, parent INTEGER, case_seed INTEGER NOT NULL, \
batch INTEGER NOT NULL, execution INTEGER NOT NULL, seconds REAL NOT NULL, origin TEXT, speed REAL NOT NULL);
CREATE TABLE seeds (id INTEGER PRIMARY KEY, parent INTEGER, case_seed INTEGER NOT NULL, "return" REAL, \
energy REAL, log_density REAL, distance REAL, tie_break REAL, is_crash INTEGER NOT NULL, \
niche INTEGER NOT NULL, root INTEGER, batch INTEGER NOT NULL, seconds REAL NOT NULL, origin TEXT, \
speed REAL NOT NULL);
CREATE TABLE errors (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, step INTEGER NOT NULL, text TEXT NOT NULL, \
purpose TEXT NOT NULL, finding INTEGER, case_seed INTEGER NOT NULL, batch INTEGER NOT NULL, \
execution INTEGER NOT NULL, seconds REAL NOT NULL, speed REAL NOT NULL);
CREATE TABLE batches (id INTEGER PRIMARY KEY, seconds REAL NOT NULL, executions INTEGER NOT NULL, \
samples INTEGER NOT NULL, sample_crashes INTEGER NOT NULL, mutants INTEGER NOT NULL, \
mutant_crashes INTEGER NOT NULL, imports INTEGER NOT NULL, findings INTEGER NOT NULL, \
distinct_findings INTEGER NOT NULL, lineages INTEGER NOT NULL, repeats INTEGER NOT NULL, \
lucky INTEGER NOT NULL, in_trial INTEGER NOT NULL, unsolved INTEGER NOT NULL, \
imported_findings INTEGER NOT NULL, flaky INTEGER NOT NULL, unconfirmed INTEGER NOT NULL, \
errors INTEGER NOT NULL, hangs INTEGER NOT NULL, simulator_crashes INTEGER NOT NULL, \
corpus INTEGER NOT NULL, drawn INTEGER NOT NULL, invalid INTEGER NOT NULL, unsolvable INTEGER NOT NULL, \
simulate_seconds REAL NOT NULL, validate_seconds REAL NOT NULL, density_seconds REAL NOT NULL, \
search_seconds REAL NOT NULL, store_seconds REAL NOT NULL, workers INTEGER NOT NULL, \
workers_ready INTEGER NOT NULL, worker_seconds REAL NOT NULL, busy_seconds REAL NOT NULL, \
restarts INTEGER NOT NULL, fresh_share REAL, fresh_threshold REAL);
CREATE TABLE state (name TEXT PRIMARY KEY, dtype TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL);
"""


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
    """Tables and columns, whatever else a file has: defaults, indexes, and strict tables."""
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


def test_layout_of_format_6_has_not_changed():
    """If it must: raise the format, write a step of the migration, and keep this text for its test."""
    assert layout(";\n".join(create_statements(["speed"]))) == layout(VERSION_6)


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 37), reason="SQLite has no strict tables")
def test_new_file_refuses_values_of_another_type(store):
    refused = pytest.raises(sqlite3.Error, match="cannot store TEXT")
    with closing(sqlite3.connect(store.folder / FILE_NAME)) as connection, refused:
        connection.execute(
            "INSERT INTO findings (id, status, is_distinct, is_novel, kind, crash_step, case_seed, batch,"
            " execution, seconds, speed) VALUES (1, 'new', 'no', 0, '', 1, 1, 1, 1, 1, 1)"
        )


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
    finding = different_values(Finding, is_distinct=True, is_novel=True, input=np.array([7.5]))
    failed = different_values(FailedEpisode, input=np.array([8.5]))
    texts = ("status", "kind", "behaviour", "survived_by", "origin")
    finding = replace(finding, **{name: "t" + str(getattr(finding, name)) for name in texts})
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
    documented = re.findall(r"^\| `(\w+)` \| ([A-Z0 ]+) \| (.*) \|$", section, re.MULTILINE)
    columns = ({"batches": BATCH_COLUMNS} | INPUT_TABLES)[table]
    assert documented == [(name, column.kind, column.meaning) for name, column in columns.items()]
