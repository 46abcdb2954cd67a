"""Reads a campaign: findings, seeds, history, and what the search needs to go on."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.search.corpus import COLUMNS, Corpus
from policyfuzz.store import schema
from policyfuzz.store.database import campaign_file, check_format, connect
from policyfuzz.store.records import FailedEpisode, Finding, Progress


class CampaignReader:
    """Reads a campaign; another process may be writing it."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = folder = Path(folder)
        self._connection = connect(campaign_file(folder), "ro")
        try:
            self._read_facts()
        except BaseException:
            self._connection.close()
            raise

    def _read_facts(self) -> None:
        with self._reading():
            check_format(self._connection, self.folder)
            self.about: dict[str, str] = dict(self._connection.execute("SELECT name, value FROM about"))
            self.dimensions: list[dict[str, Any]] = self.rows("dimensions")
            try:
                self.config = CampaignConfig.from_json(self.about["config"])
            except (KeyError, TypeError, ValueError) as error:
                raise CampaignError(f"the configuration in {self.folder} cannot be read: {error}") from error

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of `table` by column name, in order."""
        return list(self.iterate(table))

    def count(self, table: str) -> int:
        """How many rows `table` has."""
        with self._reading():
            return int(self._connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])

    def iterate(self, table: str, where: str = "1") -> Iterator[dict[str, Any]]:
        """The rows of `table` for which `where` holds by column name, one by one."""
        with self._reading():
            cursor = self._connection.execute(f"SELECT * FROM {table} WHERE {where} ORDER BY 1")
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))

    def latest(self, table: str, where: str, most: int) -> Iterator[dict[str, Any]]:
        """The last `most` rows of `table` for which `where` holds by column name, the last one first."""
        chosen = f"id IN (SELECT id FROM {table} WHERE {where} ORDER BY id DESC LIMIT {most})"
        yield from reversed(list(self.iterate(table, chosen)))

    def columns(self, table: str) -> list[str]:
        """Column names of `table`."""
        with self._reading():
            cursor = self._connection.execute(f"SELECT * FROM {table} LIMIT 0")
            return [column[0] for column in cursor.description]

    def progress(self) -> Progress:
        """Totals after the last batch."""
        with self._reading():
            cursor = self._connection.execute("SELECT * FROM batches ORDER BY id DESC LIMIT 1")
            row = cursor.fetchone()
            return Progress() if row is None else _progress(row)

    def findings(self) -> list[Finding]:
        """All findings in the order of discovery."""
        columns = [str(dimension["column"]) for dimension in self.dimensions]
        return [_finding(row, columns) for row in self.iterate("findings")]

    def finding(self, number: int) -> Finding:
        """The finding called `number`."""
        columns = [str(dimension["column"]) for dimension in self.dimensions]
        for row in self.iterate("findings", where=f"id = {int(number)}"):
            return _finding(row, columns)
        count = self.count("findings")
        raise CampaignError(
            f"no finding {number} in {self.folder}",
            hint=f"there are findings 1 to {count}" if count else "the campaign has found nothing yet",
        )

    def failed_episodes(self, where: str = "1") -> list[FailedEpisode]:
        """Episodes that could not be run to their end."""
        columns = [str(dimension["column"]) for dimension in self.dimensions]
        return [
            FailedEpisode(
                **{name: row[name] for name in schema.ERROR_COLUMNS},
                input=np.array([row[column] for column in columns], np.float64),
            )
            for row in self.iterate("errors", where)
        ]

    def failed_episode(self, number: int) -> FailedEpisode:
        """The failed episode called `number`."""
        for failed in self.failed_episodes(where=f"id = {int(number)}"):
            return failed
        count = self.count("errors")
        raise CampaignError(
            f"no error {number} in {self.folder}",
            hint=f"there are errors 1 to {count}" if count else "every episode could be run",
        )

    def other_inputs(self, space: InputSpace) -> list[str]:
        """What differs between the dimensions of this campaign and those of `space`, for a reader."""
        mine = {row["name"]: (row["kind"], row["low"], row["high"]) for row in self.dimensions}
        its = {one.name: (one.kind, float(one.low), float(one.high)) for one in space.dimensions}
        return [
            f"input {name} was {mine.get(name, 'not there')}, now {its.get(name, 'not there')}"
            for name in {**mine, **its}
            if mine.get(name) != its.get(name)
        ]

    def state(self) -> dict[str, NDArray[Any]]:
        """What the search needs to go on, as of the last batch."""
        with self._reading():
            return {
                name: np.frombuffer(data, dtype).reshape(json.loads(shape)).copy()
                for name, dtype, shape, data in self._connection.execute(
                    "SELECT name, dtype, shape, data FROM state"
                )
            }

    def corpus(self) -> Corpus:
        """The corpus as of the last batch."""
        columns = [str(dimension["column"]) for dimension in self.dimensions]
        names = ", ".join(schema.quoted(name) for name in [*COLUMNS, *columns])
        with self._reading():
            rows = self._connection.execute(f"SELECT {names} FROM seeds ORDER BY id").fetchall()
            seeds = self._connection.execute("SELECT case_seed FROM seeds ORDER BY id").fetchall()
        corpus = Corpus(len(columns))
        if rows:
            table = np.array(rows, np.float64)  # NULL becomes NaN
            parents = np.where(np.isnan(table[:, 0]), -1, table[:, 0])
            # case seeds would not survive as floating-point numbers
            case_seeds = np.array(seeds, np.uint64)[:, 0]
            others = table[:, 2 : len(COLUMNS)].T
            values = dict(zip(COLUMNS, [parents, case_seeds, *others], strict=True))
            corpus.append(table[:, len(COLUMNS) :], values)
        return corpus

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def __del__(self) -> None:
        # readers are often thrown away; a connection that is not closed would be warned about
        if hasattr(self, "_connection"):
            self._connection.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise CampaignError(
                f"cannot read {self.folder / schema.FILE_NAME}: {error}",
                hint="the file is damaged or is not a campaign",
            ) from error


def _progress(row: tuple[Any, ...]) -> Progress:
    values: list[Any] = [float("nan") if value is None else value for value in row]
    return Progress(*values)


def _finding(row: Mapping[str, Any], columns: list[str]) -> Finding:
    return Finding(
        id=row["id"],
        status=row["status"],
        is_distinct=bool(row["is_distinct"]),
        kind=row["kind"],
        crash_step=row["crash_step"],
        episode_return=float("nan") if row["return"] is None else row["return"],
        parent=row["parent"],
        case_seed=row["case_seed"],
        batch=row["batch"],
        execution=row["execution"],
        seconds=row["seconds"],
        origin=row["origin"],
        input=np.array([row[column] for column in columns], np.float64),
    )
