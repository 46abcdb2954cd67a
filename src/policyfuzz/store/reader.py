"""Reads a campaign: findings, seeds, history, and what the search needs to continue."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.store.database import FILE_NAME, SEED_COLUMNS, campaign_file, check_format, connect, quoted
from policyfuzz.store.records import FailedEpisode, Finding, Progress, record_of

if TYPE_CHECKING:
    from policyfuzz.core.inputs import InputSpace

InputRecord = TypeVar("InputRecord", Finding, FailedEpisode)

#: The largest number that SQLite knows.
_LARGEST = 2**63 - 1


class CampaignReader:
    """Reads a campaign; another process may be writing it, unless it `is_at_rest`.

    Reading a campaign that is being written makes files of SQLite beside it, which only a writer removes.
    """

    def __init__(self, folder: Path | str, is_at_rest: bool = False) -> None:
        self.folder = folder = Path(folder)
        self._connection = connect(campaign_file(folder), "ro", is_at_rest)
        try:
            self._read_facts()
        except BaseException:
            self._connection.close()
            raise

    def _read_facts(self) -> None:
        with self._reading():
            check_format(self._connection, self.folder)
            self.about: dict[str, str] = dict(self._connection.execute("SELECT name, value FROM about"))
            self.dimensions: list[dict[str, Any]] = list(self.iterate("dimensions"))
            self.input_columns = [str(dimension["column"]) for dimension in self.dimensions]
            try:
                self.config = CampaignConfig.from_json(self.about["config"])
            except (KeyError, TypeError, ValueError) as error:
                raise CampaignError(f"the configuration in {self.folder} cannot be read: {error}") from error

    @property
    def is_solvability_tested(self) -> bool:
        """True where the target had a test of which inputs are solvable."""
        return self.about.get("solvability") == "tested"

    def count(self, table: str) -> int:
        """How many rows `table` has."""
        with self._reading():
            return int(self._connection.execute(f"SELECT COUNT(*) FROM {quoted(table)}").fetchone()[0])

    def iterate(
        self, table: str, where: str = "1", parameters: Sequence[object] = ()
    ) -> Iterator[dict[str, Any]]:
        """The rows of `table` for which the SQL condition `where` holds, by column name, one by one.

        Write a `?` for each value in `where`, and give the values as `parameters`.
        """
        with self._reading():
            cursor = self._connection.execute(
                f"SELECT * FROM {quoted(table)} WHERE {where} ORDER BY 1", parameters
            )
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))

    def latest(
        self, table: str, most: int, where: str, parameters: Sequence[object] = ()
    ) -> list[dict[str, Any]]:
        """The last `most` rows of `table` for which `where` holds, as `iterate` gives them, newest first."""
        newest = f"SELECT id FROM {quoted(table)} WHERE {where} ORDER BY id DESC LIMIT ?"
        return list(self.iterate(table, f"id IN ({newest})", (*parameters, most)))[::-1]

    def columns(self, table: str) -> list[str]:
        """Column names of `table`."""
        with self._reading():
            cursor = self._connection.execute(f"SELECT * FROM {quoted(table)} LIMIT 0")
            return [column[0] for column in cursor.description]

    def progress(self) -> Progress:
        """Totals after the last batch."""
        for row in self.latest("batches", 1, "1"):
            return record_of(Progress, row)
        return Progress()

    def stop_reason(self) -> str | None:
        """Why the campaign has stopped, as of now; None while it runs, and after a kill."""
        for row in self.iterate("about", "name = 'stop_reason'"):
            return str(row["value"])
        return None

    def findings(self, distinct_only: bool = False) -> list[Finding]:
        """All findings, or the distinct ones, in the order of discovery."""
        return self._records(Finding, "findings", "is_distinct" if distinct_only else "1")

    def finding(self, number: int) -> Finding:
        """The finding called `number`."""
        return self._numbered(Finding, "finding", number, hint="the campaign has found nothing yet")

    def failed_episodes(self, of_finding: int | None = None) -> list[FailedEpisode]:
        """Episodes that could not be run to their end: all of them, or those of one finding."""
        if of_finding is None:
            return self._records(FailedEpisode, "errors")
        return self._records(FailedEpisode, "errors", "finding = ?", (of_finding,))

    def failed_episode(self, number: int) -> FailedEpisode:
        """The failed episode called `number`."""
        return self._numbered(FailedEpisode, "error", number, hint="every episode could be run")

    def other_inputs(self, space: "InputSpace") -> list[str]:
        """What differs between the dimensions of this campaign and those of `space`, for a reader."""
        mine = {row["name"]: (row["kind"], row["low"], row["high"]) for row in self.dimensions}
        its = {one.name: (one.kind, float(one.low), float(one.high)) for one in space.dimensions}
        return [
            f"input {name} was {mine.get(name, 'not there')}, now {its.get(name, 'not there')}"
            for name in {**mine, **its}
            if mine.get(name) != its.get(name)
        ]

    def state(self) -> dict[str, NDArray[Any]]:
        """What the search needs to continue, as of the last batch."""
        with self._reading():
            return {
                name: np.frombuffer(data, dtype).reshape(json.loads(shape)).copy()
                for name, dtype, shape, data in self._connection.execute(
                    "SELECT name, dtype, shape, data FROM state"
                )
            }

    def corpus(self) -> tuple[NDArray[np.float64], dict[str, NDArray[Any]]]:
        """Inputs (n, d) of all seeds, and their other columns (n,) by name. No parent is -1."""
        kinds = {name: column.kind for name, column in SEED_COLUMNS.items() if column.kind != "TEXT"}
        names = ", ".join(quoted(name) for name in [*kinds, *self.input_columns])
        with self._reading():
            rows = self._connection.execute(f"SELECT {names} FROM seeds ORDER BY id").fetchall()
        values = list(zip(*rows, strict=True)) or [()] * (len(kinds) + len(self.input_columns))
        columns = {name: _array(kind, values[place]) for place, (name, kind) in enumerate(kinds.items())}
        return np.array(values[len(kinds) :], np.float64).T, columns

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def __del__(self) -> None:
        # readers are often dropped without close(), and Python warns about open connections
        if hasattr(self, "_connection"):
            self._connection.close()

    def _numbered(self, kind: type[InputRecord], noun: str, number: int, hint: str) -> InputRecord:
        """The record called `number`; `hint` is for a campaign without any."""
        table = f"{noun}s"
        records = self._records(kind, table, "id = ?", (number,)) if abs(number) <= _LARGEST else []
        if records:
            return records[0]
        count = self.count(table)
        raise CampaignError(
            f"no {noun} {number} in {self.folder}",
            hint=f"there are {table} 1 to {count}" if count else hint,
        )

    def _records(
        self, kind: type[InputRecord], table: str, where: str = "1", parameters: Sequence[object] = ()
    ) -> list[InputRecord]:
        return [
            record_of(kind, row, input=np.array([row[name] for name in self.input_columns], np.float64))
            for row in self.iterate(table, where, parameters)
        ]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise CampaignError(
                f"cannot read {self.folder / FILE_NAME}: {error}",
                hint="the file is damaged or is not a campaign",
            ) from error


def _array(kind: str, values: Sequence[Any]) -> NDArray[Any]:
    """(n,) the values of a numeric column; NULL becomes NaN, and -1 for whole numbers."""
    if kind.startswith("REAL"):
        return np.array(values, np.float64)
    return np.array([-1 if value is None else value for value in values], np.int64)
