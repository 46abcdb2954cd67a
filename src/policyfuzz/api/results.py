"""What a campaign found, for Python and notebooks."""

import base64
import html
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.core.recording import Recording, record
from policyfuzz.core.target import Target
from policyfuzz.report.outside import excesses
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.report.tables import totals
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, FailedEpisode, Finding, Progress, record_of
from policyfuzz.triage.replay import Replay, replay, replay_on

#: Films larger than this are not put into a notebook, which would hold them as text.
_LARGEST_EMBEDDED_BYTES = 20_000_000
#: Rows that a notebook or a prompt shows of a table.
_ROWS_SHOWN = 10
#: Characters of a row at a prompt.
_LONGEST_LINE = 160

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, repr=False)
class Records(Sequence[Record], Generic[Record]):
    """Typed records in the order of their numbers; `rows` and `to_pandas` give them as a table."""

    _records: Sequence[Record]
    _columns: list[str]  #: of the table, inputs by name
    _rows: list[dict[str, Any]]

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> "Records[Record]": ...
    def __getitem__(self, index: int | slice) -> "Record | Records[Record]":
        if isinstance(index, slice):
            return Records(self._records[index], self._columns, self._rows[index])
        return self._records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each record, with inputs by name and choices in words."""
        return [dict(row) for row in self._rows]

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each record under its number, inputs by name."""
        pandas = extras.load("pandas", "pandas")
        return pandas.DataFrame(self._rows, columns=self._columns).set_index("id")

    def __repr__(self) -> str:
        more = len(self) - _ROWS_SHOWN
        last = [f"... {more:,} more"] if more > 0 else []
        return "\n".join([f"{len(self):,} records", *_text_lines(self._columns, self._rows), *last])

    def _repr_html_(self) -> str:
        count = f"<p>{len(self):,} records</p>"
        return count + _html_table(self._columns, self._rows[:_ROWS_SHOWN])


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture or film: a file, which notebooks show."""

    path: Path

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        content, kind = self.path.read_bytes(), self.path.suffix.lower()
        if len(content) > _LARGEST_EMBEDDED_BYTES:
            return f"<code>{self.path}</code>"
        data = base64.b64encode(content).decode()
        if kind == ".mp4":
            return f'<video controls loop src="data:video/mp4;base64,{data}"></video>'
        return f'<img src="data:image/{kind[1:]};base64,{data}">'


@dataclass(frozen=True, slots=True, repr=False)
class Replayed(Replay):
    """A finding that was run again. It can be drawn, filmed and read step by step."""

    folder: Path  #: where pictures and films go by default

    @staticmethod
    def of(outcome: Replay, folder: Path) -> "Replayed":
        """`outcome`, of the campaign in `folder`."""
        parts: dict[str, Any] = {part.name: getattr(outcome, part.name) for part in fields(outcome)}
        return Replayed(**parts, folder=folder)

    def picture(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Draw the episode into the PNG file `path`."""
        from policyfuzz.report.episode_figure import draw_replay

        file = self._file(path, ".png")
        if file.suffix.lower() != ".png":
            raise UsageError(f"cannot draw into {file.name!r}", "name a file that ends in .png")
        draw_replay(self, file)
        return Shown(file)

    def film(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Film the episode into `path`, an .mp4 or .gif file."""
        from policyfuzz.report.film import best_format, can_film, film_replay

        if not can_film(self.target):
            raise UsageError(
                f"target {self.target.name} cannot be filmed",
                "its simulator has no render(row); of an environment, make it with render_mode='rgb_array'",
            )
        file = self._file(path, best_format())
        film_replay(self, file)
        return Shown(file)

    def recording(self) -> Recording:
        """Actions, signals and states of the episode, step by step."""
        return record(self.target, self.finding.input, self.finding.case_seed)

    def _file(self, path: str | os.PathLike[str] | None, ending: str) -> Path:
        if path is not None:
            return Path(path)
        return self.folder / "findings" / f"{self.finding.id}{ending}"

    def __repr__(self) -> str:
        number = self.finding.id
        if not self.crashes:
            return f"finding {number} does not crash: return {self.episode_return:.6g}"
        same = "exactly as recorded" if self.is_identical else "not as recorded"
        return f"finding {number} crashes: {self.kind} at step {self.crash_step}, {same}"


@dataclass(frozen=True, slots=True)
class Result:
    """A campaign that has ended or is running elsewhere. Every property reads its folder anew."""

    folder: Path
    target: Target | None = None  #: None: rebuilt by its name when it is needed
    trust: bool = False  #: load files that can run code while they are loaded
    _campaign: CampaignReader = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_campaign", CampaignReader(self.folder))

    @property
    def progress(self) -> Progress:
        """All totals."""
        return self._campaign.progress()

    @property
    def failure_probability(self) -> FailureProbability:
        """How likely a random input fails that is valid, and solvable where the target tests that."""
        return FailureProbability.of_campaigns([self.progress], self._campaign.is_solvability_tested)

    @property
    def stop_reason(self) -> str | None:
        """Why it stopped: max-time, max-execs, max-findings or interrupted; None while it runs."""
        return self._campaign.stop_reason()

    @property
    def summary(self) -> dict[str, Any]:
        """The totals that matter, as `policyfuzz status --json` has them."""
        return totals(self._campaign, self.progress, self.stop_reason)

    @property
    def findings(self) -> Records[Finding]:
        """The confirmed findings."""
        return self._findings(CONFIRMED)

    @property
    def errors(self) -> Records[FailedEpisode]:
        """The episodes that could not be run to their end."""
        failed = self._campaign.failed_episodes()
        rows = self._rows("errors")[: len(failed)]  # a running campaign may have more by now
        return Records(failed, self._campaign.columns("errors"), rows)

    @property
    def history(self) -> Records[Progress]:
        """The totals after each batch."""
        rows = list(self._campaign.iterate("batches"))
        totals_by_batch = [record_of(Progress, row) for row in rows]
        return Records(totals_by_batch, self._campaign.columns("batches"), rows)

    def rows(self, status: str | None = CONFIRMED) -> list[dict[str, Any]]:
        """The findings as dictionaries; `status` may be "new" or "flaky" too, or None for all."""
        return self._findings(status).rows()

    def replay(self, finding: int) -> Replayed:
        """Run the finding of this number again."""
        found = self._campaign.finding(finding)
        if self.target is None:
            return Replayed.of(replay(self._campaign, found, trust=self.trust), self.folder)
        return Replayed.of(replay_on(self.target, found), self.folder)

    def outside_own_reset(self, finding: int) -> dict[str, float] | None:
        """Dimension to how far the finding lies outside of what the environment's own reset draws.

        The farthest comes first; nothing is inside. None where that is not known.
        """
        return excesses(self._campaign, self._campaign.finding(finding).input)

    def _findings(self, status: str | None) -> Records[Finding]:
        """The findings of this `status`, None for all."""
        # a running campaign may have more by now
        pairs = zip(self._campaign.findings(), self._rows("findings"), strict=False)
        chosen = [(finding, row) for finding, row in pairs if status in (None, finding.status)]
        findings, rows = [finding for finding, _ in chosen], [row for _, row in chosen]
        return Records(findings, self._campaign.columns("findings"), rows)

    def _rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of `table`, with choices in words."""
        rows = list(self._campaign.iterate(table))
        choices = {
            str(dimension["column"]): json.loads(dimension["options"])
            for dimension in self._campaign.dimensions
            if dimension["options"]
        }
        for row in rows:
            row |= {column: names[int(row[column])] for column, names in choices.items()}
            if "is_distinct" in row:
                row["is_distinct"] = bool(row["is_distinct"])
        return rows

    def __repr__(self) -> str:
        config, now = self._campaign.config, self.progress
        return (
            f"{config.target}: {now.findings:,} findings, {now.distinct_findings:,} of them distinct, in"
            f" {now.executions:,} episodes ({now.seconds:.1f} s); campaign {self.folder}"
        )

    def _repr_html_(self) -> str:
        rows = sorted(self.rows(), key=lambda row: not row["is_distinct"])[:_ROWS_SHOWN]
        inputs = [str(dimension["column"]) for dimension in self._campaign.dimensions]
        columns = ["id", "kind", "crash_step", "return", *inputs]
        return f"<p>{html.escape(repr(self))}</p>{_html_table(columns, rows)}"


def open_result(folder: str | os.PathLike[str], trust: bool = False) -> Result:
    """The campaign in `folder`; `trust` the file that its policy is loaded from for replays."""
    return Result(Path(folder), trust=trust)


def _text_lines(columns: list[str], rows: list[dict[str, Any]]) -> list[str]:
    """The first `rows` under their `columns`, as many as fit on a line."""
    if not rows:
        return []
    table = [columns, *([_text(row[column]) for column in columns] for row in rows[:_ROWS_SHOWN])]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in table]
    return [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ..." for line in lines]


def _html_table(columns: list[str], rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(_text(row[column]))}</td>' for column in columns)}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: Any) -> str:
    """`value` in one line; of a traceback, the last one."""
    return f"{value:.6g}" if isinstance(value, float) else (str(value).rstrip().splitlines() or [""])[-1]
