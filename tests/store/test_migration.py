"""Files of an earlier format: refused, brought up to date, and then read as before."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfuzz import Budget, CampaignReader, CampaignWriter, load_target
from policyfuzz.campaign.launch import launch
from policyfuzz.cli.main import exit_code
from policyfuzz.core.errors import CampaignError
from policyfuzz.store import migration
from policyfuzz.store.database import FILE_NAME, create_statements
from policyfuzz.store.migration import migrate

sys.path.insert(0, str(Path(__file__).parent))
from version_5 import VERSION_5, VERSION_5_ROWS

#: What a campaign of format 5 does not know.
UNKNOWN = ("margin", "outcome", "root", "behaviour", "reseeded", "reseeded_crashes", "survived_by")


def old_folder(tmp_path: Path, statements: str = VERSION_5 + VERSION_5_ROWS) -> Path:
    """A folder with a campaign of format 5."""
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(statements)
    return tmp_path


def sql(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def contents(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, and what describes these."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.row_factory = sqlite3.Row
        names = [
            row["name"] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        rows = {name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")] for name in names}
        schema = [dict(row) for row in connection.execute("SELECT type, name, sql FROM sqlite_master")]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    return rows | {"schema": schema, "version": [{"format": version}]}


@pytest.fixture
def folder(tmp_path) -> Path:
    return old_folder(tmp_path)


@pytest.fixture
def campaign(folder) -> CampaignReader:
    migrate(folder)
    return CampaignReader(folder)


def test_file_of_format_5_is_refused_with_the_command_that_helps(tmp_path):
    folder = old_folder(tmp_path)
    for reader in (CampaignReader, CampaignWriter):
        with pytest.raises(CampaignError, match="has campaign format 5") as refused:
            reader(folder)
        assert refused.value.hint == f"bring it up to date: policyfuzz migrate {folder}"


def test_command_names_a_folder_with_a_space_such_that_a_shell_takes_it(tmp_path):
    (tmp_path / "a b").mkdir()
    with pytest.raises(CampaignError) as refused:
        CampaignReader(old_folder(tmp_path / "a b"))
    assert refused.value.hint is not None
    assert refused.value.hint.endswith("/a b'")


def test_migrated_file_can_be_read(campaign):
    assert (campaign.config.target, campaign.config.strategy) == ("ripple", "mdpfuzz")
    finding = campaign.finding(1)
    assert (finding.kind, finding.crash_step, finding.origin, finding.input.tolist()) == (
        "caught",
        7,
        "b",
        [1.5],
    )
    assert finding.is_distinct is True
    assert np.isnan(finding.episode_return)
    assert campaign.failed_episodes(of_finding=1)[0].text == "ValueError: no"
    assert campaign.failed_episodes(of_finding=2) == []
    progress = campaign.progress()
    assert (progress.batch, progress.executions, progress.unsolvable, progress.workers) == (1, 64, 6, 2)
    assert np.isnan(progress.fresh_threshold)
    assert campaign.state()["a"].tolist() == [[1], [2]]


def test_corpus_is_read_as_arrays_with_what_is_missing_marked(campaign):
    inputs, columns = campaign.corpus()
    np.testing.assert_array_equal(inputs, [[2.5], [3.5]])
    assert columns["case_seed"].tolist() == [2**63 - 1, 6]
    assert columns["parent"].tolist() == [-1, 0]
    assert columns["is_crash"].tolist() == [0, 1]
    np.testing.assert_array_equal(columns["energy"], [np.nan, 2.0])
    np.testing.assert_array_equal(columns["return"], [-1.5, np.nan])


def test_every_value_is_kept(folder):
    before = contents(folder)
    assert migrate(folder) == 5
    after = contents(folder)
    for table in ("findings", "seeds", "errors", "batches", "state", "dimensions"):
        assert before[table], "nothing to keep"
        kept = [
            {name: new[name] for name in old} for old, new in zip(before[table], after[table], strict=True)
        ]
        assert kept == before[table]
    assert [row for row in after["about"] if row not in before["about"]] == [
        {"name": "migrated_from", "value": "5"}
    ]
    assert after["version"] == [{"format": 6}]


def test_what_format_5_did_not_know_is_missing_and_what_was_distinct_was_novel(folder):
    row = "'confirmed', 0, 'caught', 7, NULL, 4, 5, 2, 70, 0.5, NULL, 6.5"
    sql(folder, f"INSERT INTO findings VALUES (2, {row})")
    migrate(folder)
    first, second = CampaignReader(folder).findings()
    assert (first.is_novel, second.is_novel) == (True, False)
    for finding in (first, second):
        assert {name: getattr(finding, name) for name in UNKNOWN if name != "margin"} == dict.fromkeys(
            UNKNOWN[1:]
        )
        assert np.isnan(finding.margin)
        assert finding.repeats == 0
    progress = CampaignReader(folder).progress()
    assert (progress.lineages, progress.repeats, progress.lucky, progress.unsolved) == (0, 0, 0, 0)


def test_migrated_file_has_the_columns_and_indexes_of_a_new_one(folder):
    migrate(folder)

    def described(connection: sqlite3.Connection) -> dict[str, set[tuple[Any, ...]]]:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        query = "SELECT name, type, pk FROM pragma_table_xinfo(?)"
        return {name: set(connection.execute(query, [name]).fetchall()) for (name,) in names}

    with closing(sqlite3.connect(":memory:")) as new, closing(sqlite3.connect(folder / FILE_NAME)) as old:
        new.executescript(";\n".join(create_statements(["speed"])))
        assert described(old) == described(new)
        plan = old.execute("EXPLAIN QUERY PLAN SELECT id FROM findings WHERE outcome = 7").fetchall()
    assert "findings_of_outcomes" in str(plan)


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 37), reason="SQLite has no strict tables")
def test_strict_tables_stay_strict(tmp_path):
    folder = old_folder(tmp_path, VERSION_5.replace(");\n", ") STRICT;\n") + VERSION_5_ROWS)
    migrate(folder)
    assert CampaignReader(folder).finding(1).input.tolist() == [1.5]
    with pytest.raises(sqlite3.Error, match="cannot store TEXT"):
        sql(folder, "UPDATE findings SET repeats = 'many'")


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["margin"], ["input_margin"]),
        (["root", "speed"], ["input_root", "speed"]),
        (["speed", "Repeats"], ["speed", "input_Repeats"]),
        (["margin", "input_margin"], ["input_margin", "input_input_margin"]),
        (["input_margin", "margin"], ["input_margin", "input_input_margin"]),
        (
            ["input_input_root", "root", "input_root"],
            ["input_input_root", "input_root", "input_input_input_root"],
        ),
    ],
    ids=", ".join,
)
def test_dimension_that_is_named_like_a_new_column_reads_right(tmp_path, names, columns):
    tables = VERSION_5.replace(
        '"speed" REAL NOT NULL', ", ".join(f'"{name}" REAL NOT NULL' for name in names)
    )
    folder = old_folder(tmp_path, tables)
    values = [1.5 + place for place in range(len(names))]
    inputs = ", ".join(map(str, values))
    (config,) = (line for line in VERSION_5_ROWS.split(";\n") if "INTO about" in line)
    dimensions = [
        f"INSERT INTO dimensions VALUES ({place}, '{name}', '{name}', 'real', 0.0, 9.0, 'm', NULL)"
        for place, name in enumerate(names)
    ]
    sql(
        folder,
        config,
        *dimensions,
        f"INSERT INTO findings VALUES (1, 'confirmed', 1, 'ill', 7, -1.5, 4, 5, 2, 70, 0.5, 'b', {inputs})",
        f"INSERT INTO seeds VALUES (0, NULL, 9, -1.5, NULL, NULL, 0.25, 0.5, 0, 3, 1, 0.1, NULL, {inputs})",
        f"INSERT INTO errors VALUES (1, 'raised', 3, 'no', 'mutant', 1, 8, 2, 71, 0.75, {inputs})",
    )
    migrate(folder)
    campaign = CampaignReader(folder)
    assert [dimension["name"] for dimension in campaign.dimensions] == names
    assert list(campaign.input_columns) == columns
    finding = campaign.finding(1)
    assert finding.input.tolist() == values
    assert np.isnan(finding.margin)
    assert finding.root is None
    assert campaign.corpus()[0].tolist() == [values]
    assert campaign.failed_episodes()[0].input.tolist() == values


def test_second_migration_says_that_there_is_nothing_to_do(folder, capsys):
    assert exit_code(["migrate", str(folder)]) == 0
    assert "had format 5 and now has 6" in capsys.readouterr().out
    once = contents(folder)
    assert exit_code(["migrate", str(folder)]) == 0
    assert "has format 6 already" in capsys.readouterr().out
    assert contents(folder) == once


def test_migration_that_fails_leaves_the_file_as_it_was(folder, monkeypatch):
    before = contents(folder)

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(migration, "_note", fail)
    with pytest.raises(CampaignError, match=r"cannot bring .* up to date: database or disk is full"):
        migrate(folder)
    assert contents(folder) == before
    monkeypatch.undo()
    assert migrate(folder) == 5, "no lock is left behind"


def test_column_of_a_user_that_is_in_the_way_is_told_and_stays(folder):
    sql(folder, "ALTER TABLE findings ADD COLUMN outcome TEXT")
    before = contents(folder)
    with pytest.raises(CampaignError, match="duplicate column name: outcome"):
        migrate(folder)
    assert contents(folder) == before


KILLED = """
import os, signal, sys
from pathlib import Path
from policyfuzz.store import migration
migration._note = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
migration.migrate(Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_migration_that_is_killed_leaves_the_file_as_it_was(folder):
    before = contents(folder)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder)], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert contents(folder) == before
    assert migrate(folder) == 5
    assert CampaignReader(folder).finding(1).input.tolist() == [1.5]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("CREATE TRIGGER t AFTER UPDATE ON findings BEGIN DELETE FROM seeds; END", "it has a trigger 't'"),
        ("CREATE TRIGGER t BEFORE INSERT ON about BEGIN DELETE FROM seeds; END", "it has a trigger 't'"),
        ("DROP TABLE findings; CREATE VIEW findings AS SELECT * FROM seeds", "it has no table findings"),
        ("ALTER TABLE findings DROP COLUMN status", "table findings has no column 'status'"),
        ("DROP TABLE batches", "it has no table batches"),
        ("UPDATE dimensions SET name = x'00'", "the names of its dimensions cannot be read"),
        ('UPDATE dimensions SET "column" = NULL', "cannot bring"),
        ("UPDATE dimensions SET \"column\" = 'status'", "column 'status' of table findings is not REAL"),
        ("UPDATE dimensions SET \"column\" = 'no such'", "has no column 'no such'"),
        ("DELETE FROM dimensions", "the names of its dimensions cannot be read"),
    ],
)
def test_damaged_or_hostile_file_is_refused_and_not_changed(folder, statement, told):
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.executescript(statement)
    before = contents(folder)
    with pytest.raises(CampaignError, match=told) as refused:
        migrate(folder)
    assert "nothing was changed" in str(refused.value.hint)
    assert contents(folder) == before


@pytest.mark.parametrize("version", [0, 4, 7])
def test_other_formats_are_refused(folder, version):
    sql(folder, f"PRAGMA user_version = {version}")
    with pytest.raises(
        CampaignError, match=f"has campaign format {version}; format 5 can be brought up to date"
    ):
        migrate(folder)


def test_file_of_somebody_else_is_refused(tmp_path):
    sql(tmp_path, "CREATE TABLE recipes (name TEXT)", "PRAGMA user_version = 5")
    with pytest.raises(CampaignError, match="was not written by policyfuzz"):
        migrate(tmp_path)


def test_file_that_is_being_written_is_refused(tmp_path):
    target = load_target("ripple:dimensions=2,probability=0.3")
    launch(target, Budget(executions=60), folder=tmp_path / "c")
    store = CampaignWriter(tmp_path / "c")
    try:
        with pytest.raises(CampaignError, match="another process is writing"):
            migrate(tmp_path / "c")
    finally:
        store.close()


def test_migrated_campaign_is_not_resumed(tmp_path):
    folder = old_folder(tmp_path, VERSION_5 + VERSION_5_ROWS)
    migrate(folder)
    before = contents(folder)
    with pytest.raises(CampaignError, match="an earlier version began it") as refused:
        launch(load_target("ripple:dimensions=1"), Budget(executions=100), folder=folder, resume=True)
    assert "start a new campaign" in str(refused.value.hint)
    after = contents(folder)
    assert {**after, "about": 0} == {**before, "about": 0}
    CampaignWriter(folder).close()  # no lock is left behind


def test_link_to_the_campaign_of_another_folder_is_refused(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / FILE_NAME).symlink_to(folder / FILE_NAME)
    before = contents(folder)
    with pytest.raises(CampaignError, match="is a link"):
        migrate(other)
    assert contents(folder) == before
