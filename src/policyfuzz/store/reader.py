"""Reads a campaign: findings, seeds, history, and what the search needs to continue."""

import math
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import CampaignError, PolicyFuzzError
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.store import checks
from policyfuzz.store.database import (
    COMMON_TABLES,
    FILE_NAME,
    INPUT_TABLES,
    MOST_DIMENSIONS,
    SEED_COLUMNS,
    STATE_COLUMNS,
    Patience,
    campaign_file,
    check_format,
    connect,
    input_columns,
    quoted,
    tables_of,
)
from policyfuzz.store.records import Column, FailedEpisode, Finding, Progress, record_of

if TYPE_CHECKING:
    from policyfuzz.core.inputs import InputSpace

InputRecord = TypeVar("InputRecord", Finding, FailedEpisode)

#: The largest number that SQLite knows.
_LARGEST = 2**63 - 1
#: Rows that are read at once, and the most values in them. A row of `errors` may hold a long text.
_PAGE_ROWS, _PAGE_VALUES, _PAGE_ERRORS = 1000, 50_000, 100
#: More facts than any campaign has, and more arrays than any search.
_MOST_FACTS, _MOST_ARRAYS = 1000, 10_000


class CampaignReader:
    """Reads a campaign; another process may be writing it, unless it `is_at_rest`.

    Reading a campaign that is being written makes files of SQLite beside it, which only a writer removes.
    """

    def __init__(self, folder: Path | str, is_at_rest: bool = False) -> None:
        self.folder = folder = Path(folder)
        path = campaign_file(folder)
        self._connection = connect(path, "ro", is_at_rest)
        self._patience = Patience(self._connection, path)
        try:
            with self._reading():
                self._read_facts()
        except BaseException:
            self._connection.close()
            raise

    def _read_facts(self) -> None:
        check_format(self._connection, self.folder)
        checks.check_tables(self._connection, COMMON_TABLES)
        self._tables: dict[str, Mapping[str, Column]] = {**COMMON_TABLES}
        self.about: dict[str, str] = {
            row["name"]: row["value"] for row in self.select("about", most=_MOST_FACTS)
        }
        self.dimensions: list[dict[str, Any]] = list(self.select("dimensions", most=MOST_DIMENSIONS + 1))
        self.input_columns = input_columns([dimension["name"] for dimension in self.dimensions])
        checks.check_dimensions(self.dimensions, self.input_columns, MOST_DIMENSIONS)
        self._tables |= tables_of(self.input_columns)
        checks.check_tables(self._connection, self._tables)
        try:
            self.config = CampaignConfig.from_json(self.about["config"])
        except (KeyError, TypeError, ValueError, RecursionError, PolicyFuzzError) as error:
            reason = error.message if isinstance(error, PolicyFuzzError) else str(error)
            raise CampaignError(f"the configuration in {self.folder} cannot be read: {reason}") from error

    @property
    def is_solvability_tested(self) -> bool:
        """True where the target had a test of which inputs are solvable."""
        return self.about.get("solvability") == "tested"

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See the campaign as it is now, even if another process goes on writing it."""
        with self._reading():
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.rollback()

    def last_number(self, table: str) -> int | None:
        """Number of the last row of `table`, None without rows. Rows are numbered in their order."""
        for row in self.select(table, most=1, newest_first=True):
            return int(next(iter(row.values())))
        return None

    def count(self, table: str, where: str = "1", parameters: Sequence[object] = ()) -> int:
        """How many rows `table` has for which `where` holds, as for `select`. Looks at every row."""
        with self._reading():
            # not COUNT(*), which is one step of SQLite's machine and cannot be ended
            statement = f"SELECT COALESCE(SUM(1), 0) FROM {quoted(table)} WHERE {where}"
            return int(self._connection.execute(statement, parameters).fetchone()[0])

    def iterate(
        self, table: str, where: str = "1", parameters: Sequence[object] = ()
    ) -> Iterator[dict[str, Any]]:
        """The rows of `table` for which the SQL condition `where` holds, by column name, one by one.

        Write a `?` for each value in `where`, and give the values as `parameters`.
        """
        return self.select(table, where, parameters)

    def select(
        self,
        table: str,
        where: str = "1",
        parameters: Sequence[object] = (),
        most: int | None = None,
        skip: int = 0,
        newest_first: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """As `iterate`: at most `most` rows after the first `skip`, `newest_first` or in their order."""
        names = list(self._tables[table])
        for page in self.pages(table, where, parameters, most, skip, newest_first):
            for row in page:
                yield dict(zip(names, row, strict=True))

    def pages(
        self,
        table: str,
        where: str = "1",
        parameters: Sequence[object] = (),
        most: int | None = None,
        skip: int = 0,
        newest_first: bool = False,
    ) -> Iterator[list[tuple[Any, ...]]]:
        """As `select`, many rows at a time, as tuples of the table's own columns in their order.

        Every page is a query of its own, which starts where the page before it ended.
        """
        columns = self._tables[table]
        key = quoted(next(iter(columns)))
        room = _PAGE_ERRORS if table == "errors" else min(_PAGE_ROWS, max(_PAGE_VALUES // len(columns), 10))
        left = _LARGEST if most is None else most
        chosen, beyond = f"SELECT {', '.join(map(quoted, columns))} FROM {table} WHERE ({where})", ""
        order = f"ORDER BY {key} {'DESC' if newest_first else 'ASC'} LIMIT ? OFFSET ?"
        last: list[object] = []
        while left > 0:
            wanted = min(room, left)
            with self._reading():
                query = f"{chosen} {beyond} {order}"
                rows = self._connection.execute(query, [*parameters, *last, wanted, skip]).fetchall()
                self._check(table, columns, rows[::-1] if newest_first else rows)
            yield rows
            if len(rows) < wanted:
                return
            left, skip, last = left - len(rows), 0, [rows[-1][0]]
            beyond = f"AND {key} {'<' if newest_first else '>'} ?"

    def _check(self, table: str, columns: Mapping[str, Column], rows: Sequence[tuple[Any, ...]]) -> None:
        """Refuse rows that no campaign of ours has written."""
        checks.check_rows(table, columns, rows)
        if table in INPUT_TABLES:
            checks.check_choices(self.dimensions, rows, len(INPUT_TABLES[table]))

    def latest(
        self, table: str, most: int, where: str, parameters: Sequence[object] = ()
    ) -> list[dict[str, Any]]:
        """The last `most` rows of `table` for which `where` holds, as `iterate` gives them, newest first."""
        return list(self.select(table, where, parameters, most, newest_first=True))

    def columns(self, table: str) -> list[str]:
        """Column names of `table`."""
        return list(self._tables[table])

    def progress(self) -> Progress:
        """Totals after the last batch."""
        for row in self.latest("batches", 1, "1"):
            progress = record_of(Progress, row)
            if problem := progress.problem:
                raise self._damaged(problem)
            return progress
        return Progress()

    def starts(self) -> tuple[int, int] | None:
        """How many starts there are, and how many crash, if all of them were tried."""
        found = re.fullmatch(r"([0-9]{1,9}) ([0-9]{1,9})", self.about.get("starts", ""))
        total, crashing = map(int, found.groups()) if found else (0, 0)
        return (total, crashing) if 0 < total >= crashing else None

    def stop_reason(self) -> str | None:
        """Why the campaign has stopped, as of now; None while it runs, and after a kill."""
        for row in self.iterate("about", "name = 'stop_reason'"):
            return str(row["value"])
        return None

    def findings(self, distinct_only: bool = False, most: int | None = None, skip: int = 0) -> list[Finding]:
        """The findings, or the distinct ones, in the order of discovery: at most `most` after `skip`."""
        where = "is_distinct" if distinct_only else "1"
        return list(self.records(Finding, "findings", where, most=most, skip=skip))

    def finding(self, number: int) -> Finding:
        """The finding called `number`."""
        return self._numbered(Finding, "finding", number, hint="the campaign has found nothing yet")

    def failed_episodes(
        self, of_finding: int | None = None, most: int | None = None, skip: int = 0
    ) -> list[FailedEpisode]:
        """Episodes that could not be run to their end, all or of one finding: at most `most` after `skip`."""
        where, of = ("1", ()) if of_finding is None else ("finding = ?", (of_finding,))
        return list(self.records(FailedEpisode, "errors", where, of, most, skip))

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
        state = {}
        with self._reading():
            names = ", ".join(map(quoted, STATE_COLUMNS))
            for row in self._connection.execute(f"SELECT {names} FROM state LIMIT {_MOST_ARRAYS}"):
                checks.check_rows("state", STATE_COLUMNS, [row])
                state[row[0]] = checks.stored_array(*row)
        return state

    def corpus(self) -> tuple[NDArray[np.float64], dict[str, NDArray[Any]]]:
        """Inputs (n, d) of all seeds, and their other columns (n,) by name. No parent is -1."""
        parts = list(self.corpus_parts())
        columns = {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}
        return np.concatenate([inputs for inputs, _ in parts]), columns

    def corpus_parts(self) -> Iterator[tuple[NDArray[np.float64], dict[str, NDArray[Any]]]]:
        """The corpus in parts, at least one, each as `corpus` gives the whole."""
        start, first_input = 0, len(SEED_COLUMNS)
        for page in self.pages("seeds"):
            if page and (page[0][0], page[-1][0]) != (start, start + len(page) - 1):
                raise self._damaged(f"the seeds are not numbered from {start}")
            start += len(page)
            values = list(zip(*page, strict=True)) or [()] * (first_input + len(self.input_columns))
            columns = {
                name: _array(column.kind, values[place])
                for place, (name, column) in enumerate(SEED_COLUMNS.items())
                if column.kind != "TEXT"
            }
            yield np.array(values[first_input:], np.float64).T, columns

    def novel_findings(self, descriptor_size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n, d) inputs of the findings that were novel, and (n, q) their behaviour descriptors or NaN."""
        inputs, descriptors = [], []
        for finding in self.records(Finding, "findings", "is_novel"):
            inputs.append(finding.input)
            known = self.descriptor(finding) or [math.nan] * descriptor_size
            if len(known) != descriptor_size:
                raise self._damaged(f"the behaviour of finding {finding.id} has {len(known)} numbers")
            descriptors.append(known)
        shapes = (-1, len(self.input_columns)), (-1, descriptor_size)
        parts = zip((inputs, descriptors), shapes, strict=True)
        novel, described = (np.array(rows, np.float64).reshape(shape) for rows, shape in parts)
        return novel, described

    def descriptor(self, finding: Finding) -> list[float] | None:
        """The behaviour descriptor of `finding`, None if it has none."""
        if finding.behaviour is None:
            return None
        try:
            values = checks.parsed_json(finding.behaviour)
        except checks.Damage as error:
            raise self._damaged(str(error)) from error
        if not (isinstance(values, list) and all(type(one) is float for one in values)):
            raise self._damaged(f"the behaviour of finding {finding.id} is {finding.behaviour!r:.50}")
        return values

    def whole_numbers(
        self, column: str, where: str = "1", parameters: Sequence[object] = ()
    ) -> NDArray[np.int64]:
        """(n,) the different values of a whole `column` of the findings for which `where` holds, sorted."""
        with self._reading():
            name = quoted(column)
            query = (
                f"SELECT DISTINCT {name} FROM findings WHERE {name} IS NOT NULL AND {where} ORDER BY {name}"
            )
            found = [row[0] for row in self._connection.execute(query, parameters)]
        if not all(type(value) is int for value in found):
            raise self._damaged(
                f"column {column!r} of table findings holds something else than whole numbers"
            )
        return np.array(found, np.int64)

    def kinds(self, most: int) -> list[str]:
        """The kinds of crash among the findings, `most` of them at most, sorted."""
        with self._reading():
            found = self._connection.execute("SELECT DISTINCT kind FROM findings LIMIT ?", [most]).fetchall()
        if not all(isinstance(kind, str) for (kind,) in found):
            raise self._damaged("column 'kind' of table findings holds something else than text")
        return sorted(kind for (kind,) in found)

    def distinct_inputs(self, most: int | None = None) -> NDArray[np.float64]:
        """(n, d) inputs of the distinct findings, of the first `most`."""
        first_input, parts = len(INPUT_TABLES["findings"]), [np.empty((0, len(self.input_columns)))]
        for page in self.pages("findings", "is_distinct", most=most):
            inputs = np.array([row[first_input:] for row in page], np.float64)
            parts.append(inputs.reshape(len(page), len(self.input_columns)))
        return np.concatenate(parts)

    def numbers(self, table: str, where: str = "1", parameters: Sequence[object] = ()) -> NDArray[np.int64]:
        """(n,) numbers of the rows of `table` for which `where` holds, as for `select`."""
        key = quoted(next(iter(self._tables[table])))
        with self._reading():
            query = f"SELECT {key} FROM {table} WHERE {where} ORDER BY {key}"
            found = self._connection.execute(query, parameters)
            numbers = np.fromiter((row[0] for row in found), np.int64)
        if (np.diff(numbers) <= 0).any():
            raise self._damaged(f"the rows of table {table} are not in order")
        return numbers

    def ranking(
        self,
        where: str,
        columns: Sequence[str],
        most: int | None = None,
        skip: int = 0,
        of_first: int | None = None,
    ) -> list[int]:
        """Numbers of findings, sorted by `columns` and then by number, the lowest first, NaN last.

        Those that need a lucky case seed come after all others.
        At most `most` after the first `skip`. Only the first `of_first` for which `where` holds count.
        """
        names = list(dict.fromkeys(["id", "reseeded", "is_distinct", *columns]))
        chosen = f"SELECT {', '.join(map(quoted, names))} FROM findings WHERE {where} ORDER BY id LIMIT ?"
        by_column = (f"{quoted(name)} IS NULL, {quoted(name)}" for name in [*columns, "id"])
        order = ", ".join(["COALESCE(reseeded, 0) > 0 AND NOT is_distinct", *by_column])
        limits = [value if value is not None else _LARGEST for value in (of_first, most)]
        with self._reading():
            query = f"SELECT id FROM ({chosen}) ORDER BY {order} LIMIT ? OFFSET ?"
            numbers = [row[0] for row in self._connection.execute(query, [*limits, skip])]
        if not all(isinstance(number, int) for number in numbers):
            raise self._damaged("a finding has no number")
        return numbers

    def ordered(
        self,
        where: str,
        columns: Sequence[str],
        parameters: Sequence[object] = (),
        most: int | None = None,
        skip: int = 0,
    ) -> list[int]:
        """Numbers of the findings for which `where` holds, at most `most` after `skip`, sorted by `columns`.

        The lowest come first, and for a column with a minus before it the largest; NaN comes last.
        """
        terms = []
        for column in columns:
            name = quoted(column.removeprefix("-"))
            terms += [f"{name} IS NULL", f"{name} {'DESC' if column.startswith('-') else 'ASC'}"]
        # without a term that is always the same, SQLite goes along the numbers and stops early
        order = ", ".join(terms) if columns[0].removeprefix("-") != "id" else terms[1]
        with self._reading():
            query = f"SELECT id FROM findings WHERE {where} ORDER BY {order}, id LIMIT ? OFFSET ?"
            limit = _LARGEST if most is None else most
            numbers = [row[0] for row in self._connection.execute(query, [*parameters, limit, skip])]
        if not all(isinstance(number, int) for number in numbers):
            raise self._damaged("a finding has no number")
        return numbers

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def __del__(self) -> None:
        # readers are often dropped without close(), and Python warns about open connections
        if hasattr(self, "_connection"):
            with suppress(sqlite3.ProgrammingError):  # the last reference may end in another thread
                self._connection.close()

    def _numbered(self, kind: type[InputRecord], noun: str, number: int, hint: str) -> InputRecord:
        """The record called `number`; `hint` is for a campaign without any."""
        table = f"{noun}s"
        records = list(self.records(kind, table, "id = ?", (number,))) if abs(number) <= _LARGEST else []
        if records:
            return records[0]
        last = self.last_number(table)
        raise CampaignError(
            f"no {noun} {number} in {self.folder}", hint=f"there are {table} 1 to {last}" if last else hint
        )

    def records(
        self,
        kind: type[InputRecord],
        table: str,
        where: str = "1",
        parameters: Sequence[object] = (),
        most: int | None = None,
        skip: int = 0,
    ) -> Iterator[InputRecord]:
        """As `select`, as records."""
        for row in self.select(table, where, parameters, most, skip):
            yield record_of(kind, row, input=np.array([row[name] for name in self.input_columns], np.float64))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._patience.renew()
        try:
            yield
        # a damaged schema may even make the message of SQLite's error unreadable
        except (sqlite3.Error, checks.Damage, UnicodeError, MemoryError) as error:
            raise self._damaged(str(error) or "not enough memory") from error

    def _damaged(self, problem: str) -> CampaignError:
        return CampaignError(
            f"cannot read {self.folder / FILE_NAME}: {problem}",
            hint="the file is damaged or is not a campaign",
        )


def _array(kind: str, values: Sequence[Any]) -> NDArray[Any]:
    """(n,) the values of a numeric column; NULL becomes NaN, and -1 for whole numbers."""
    if kind.startswith("REAL"):
        return np.array(values, np.float64)
    return np.array([-1 if value is None else value for value in values], np.int64)
