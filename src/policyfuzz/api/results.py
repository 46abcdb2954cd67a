"""What a campaign found, for Python and notebooks."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from policyfuzz.api.failures import FailureMode, FailureModes, ResultFinding
from policyfuzz.api.shown import Shown
from policyfuzz.core import extras, markup
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.recording import Recording, record
from policyfuzz.core.settings import Duration, seconds_of
from policyfuzz.core.target import Runner, Target
from policyfuzz.execution.executor import choose_executor
from policyfuzz.report.mode_summaries import mode_summaries
from policyfuzz.report.outside import excesses
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.report.tables import totals
from policyfuzz.store.database import picture_file
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, FailedEpisode, Progress, record_of
from policyfuzz.store.triage_file import Triage, triage_of
from policyfuzz.store.triage_records import Avoidance, Boundary
from policyfuzz.triage.boundary import EPISODES, find_boundary
from policyfuzz.triage.campaign_triage import TriageSettings, triage_campaign
from policyfuzz.triage.replay import Replay, is_safe_to_run, replay, replay_on, target_of

#: Rows that a notebook or a prompt shows of a table.
_ROWS_SHOWN = 10
#: Records that are read at once.
_ROWS_READ = 500
#: Characters of a row at a prompt.
_LONGEST_LINE = 160

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Records(Sequence[Record], Generic[Record]):
    """Typed records in the order of their numbers; `rows` and `to_pandas` give them as a table.

    Only their numbers are held. Records are read from the campaign when they are asked for, some at a time.
    """

    _campaign: CampaignReader
    _kind: type[Record]
    _table: str
    _numbers: NDArray[np.int64]  #: (n,) of the records
    _further: Mapping[str, Any] = field(default_factory=dict)  #: fields of every record that are not stored

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> "Records[Record]": ...
    def __getitem__(self, index: int | slice) -> "Record | Records[Record]":
        if isinstance(index, slice):
            return replace(self, _numbers=self._numbers[index])
        number = self._numbers[index]
        return next(iter(replace(self, _numbers=np.array([number]))))

    def __iter__(self) -> Iterator[Record]:
        return map(self._record, self._stored())

    def __len__(self) -> int:
        return len(self._numbers)

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each record, with inputs by name and choices in words."""
        return list(self._rows())

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each record under its number, inputs by name."""
        pandas = extras.load("pandas", "pandas")
        names = self._campaign.columns(self._table)
        values = (tuple(row.values()) for row in self._rows())
        return pandas.DataFrame.from_records(values, columns=names, nrows=len(self)).set_index("id")

    def __repr__(self) -> str:
        more = len(self) - _ROWS_SHOWN
        last = [f"... {more:,} more"] if more > 0 else []
        lines = _text_lines(self._campaign.columns(self._table), self[:_ROWS_SHOWN].rows())
        return "\n".join([f"{len(self):,} records", *lines, *last])

    def _repr_html_(self) -> str:
        columns, rows = self._campaign.columns(self._table), self[:_ROWS_SHOWN].rows()
        more = len(self) - _ROWS_SHOWN
        last = markup.paragraph(f"... {more:,} more") if more > 0 else ""
        return markup.paragraph(f"{len(self):,} records") + _html_table(columns, rows) + last

    def _stored(self) -> Iterator[dict[str, Any]]:
        """The rows of the records as they are stored."""
        for start in range(0, len(self), _ROWS_READ):
            wanted = self._numbers[start : start + _ROWS_READ].tolist()
            found = self._campaign.select(self._table, f"id IN ({', '.join('?' * len(wanted))})", wanted)
            rows = {row["id"]: row for row in found}
            yield from (rows[number] for number in wanted)

    def _record(self, row: dict[str, Any]) -> Record:
        inputs = [row[name] for name in self._campaign.input_columns if name in row]
        others = {"input": np.array(inputs, np.float64)} if inputs else {}
        return cast(Record, record_of(cast(Any, self._kind), row, **others, **self._further))

    def _rows(self) -> Iterator[dict[str, Any]]:
        choices = {
            str(dimension["column"]): json.loads(dimension["options"])
            for dimension in self._campaign.dimensions
            if dimension["options"]
        }
        for row in self._stored():
            row |= {column: names[int(row[column])] for column, names in choices.items() if column in row}
            if "is_distinct" in row:
                row["is_distinct"] = bool(row["is_distinct"])
            yield row


@dataclass(frozen=True, slots=True, repr=False)
class Replayed(Replay):
    """A finding that was run again. It can be drawn, filmed and read step by step."""

    folder: Path  #: where pictures and films go by default
    is_safe: bool = True  #: no episode has hung or killed its process, so others can be run to compare with
    avoidance: Avoidance | None = None  #: what triage knows of how the crash can be avoided

    @staticmethod
    def of(outcome: Replay, campaign: CampaignReader) -> "Replayed":
        """`outcome` of a finding of `campaign`."""
        parts: dict[str, Any] = {part.name: getattr(outcome, part.name) for part in fields(outcome)}
        known = triage_of(campaign).of(outcome.finding.id).avoidance
        is_safe = is_safe_to_run(campaign)
        return Replayed(**parts, folder=campaign.folder, is_safe=is_safe, avoidance=known)

    def picture(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Draw the episode into the PNG file `path`, with its witness if triage has found one."""
        from policyfuzz.report.episode_figure import draw_replay

        file = self._file(path, ".png")
        if file.suffix.lower() != ".png":
            raise UsageError(f"cannot draw into {file.name!r}", "name a file that ends in .png")
        draw_replay(self, file, self.avoidance, is_compared=self.is_safe)
        return Shown(file)

    def film(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Film the episode into `path`, an .mp4 or .gif file, beside its witness if triage has found one."""
        from policyfuzz.report.film import best_format, can_film, film_replay

        if not can_film(self.target):
            raise UsageError(
                f"target {self.target.name} cannot be filmed",
                "its simulator has no render(row); of an environment, make it with render_mode='rgb_array'",
            )
        file = self._file(path, best_format())
        film_replay(self, file, self.avoidance)
        return Shown(file)

    def recording(self) -> Recording:
        """Actions, signals and states of the episode, step by step."""
        return record(self.target, self.finding.input, self.finding.case_seed)

    def _file(self, path: str | os.PathLike[str] | None, ending: str) -> Path:
        if path is not None:
            return Path(path)
        return picture_file(self.folder, f"{self.finding.id}{ending}")

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
    trust: bool = False  #: load files that can run code, and run code that only the campaign names
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
    def findings(self) -> Records[ResultFinding]:
        """The confirmed findings."""
        return self._findings(CONFIRMED)

    def finding(self, number: int) -> ResultFinding:
        """The finding of this number."""
        self._campaign.finding(number)  # or says that there is none
        return self.findings_at([number])[0]

    def findings_at(self, numbers: Sequence[int] | NDArray[np.int64]) -> Records[ResultFinding]:
        """The findings of these numbers."""
        wanted = np.asarray(numbers, np.int64)
        return Records(self._campaign, ResultFinding, "findings", wanted, {"result": self})

    @property
    def triage(self) -> Triage:
        """What second runs of the findings have shown so far."""
        return triage_of(self._campaign)

    @property
    def modes(self) -> FailureModes:
        """The failure modes, the worst first; empty before triage."""
        triage = self.triage
        found = [FailureMode(one, self) for one in mode_summaries(self._campaign, triage)]
        return FailureModes(found, triage.modes)

    @property
    def errors(self) -> Records[FailedEpisode]:
        """The episodes that could not be run to their end."""
        return Records(self._campaign, FailedEpisode, "errors", self._campaign.numbers("errors"))

    @property
    def history(self) -> Records[Progress]:
        """The totals after each batch."""
        return Records(self._campaign, Progress, "batches", self._campaign.numbers("batches"))

    def run_triage(
        self,
        *,
        per_mode: int = 4,
        max_execs: int | None = None,
        max_time: Duration | None = None,
        workers: int | None = None,
    ) -> FailureModes:
        """Group the findings into failure modes, and find out about each; return the modes.

        Witnesses are looked for of `per_mode` findings of each mode. What is known already is not run again.
        """
        choice = choose_executor(None, workers)
        target = self.target or target_of(self._campaign, None, self.trust, None, choice)
        settings = TriageSettings(per_mode, max_execs, seconds_of(max_time))
        triage_campaign(self._campaign, target, choice.make_runner, settings)
        return self.modes

    def rows(self, status: str | None = CONFIRMED) -> list[dict[str, Any]]:
        """The findings as dictionaries; `status` may be "new" or "flaky" too, or None for all."""
        return self._findings(status).rows()

    def replay(self, finding: int) -> Replayed:
        """Run the finding of this number again."""
        found = self._campaign.finding(finding)
        if self.target is None:
            return Replayed.of(replay(self._campaign, found, trust=self.trust), self._campaign)
        return Replayed.of(replay_on(self.target, found), self._campaign)

    def minimize(self, finding: int, max_execs: int = EPISODES) -> Boundary:
        """How far the finding of this number is from an input that passes, and along which dimensions."""
        found = self._campaign.finding(finding)
        target = self.target or target_of(self._campaign, None, self.trust, None)
        return find_boundary(target, Runner(target), found.input, found.case_seed, max_execs)

    def report(
        self,
        path: str | os.PathLike[str] = "report.html",
        *,
        films: int | None = None,
    ) -> "Shown":
        """Write a report to the file `path`: .html, .md, .xml (JUnit) or .json, one file that needs no other.

        The `films` worst failure modes are filmed, 12 by default; 0 makes no films and runs nothing.
        """
        from policyfuzz.report.campaign_report.write import MOST_FILMS, format_of, write_report

        file, most = Path(path), MOST_FILMS if films is None else films
        form = format_of(file)
        code = f"policyfuzz.open_result({str(self.folder)!r}).report({str(file)!r}, films={most})"
        write_report([self.folder], file, form, code, most, self.trust, self.target)
        return Shown(file)

    def outside_own_reset(self, finding: int) -> dict[str, float] | None:
        """Dimension to how far the finding lies outside of what the environment's own reset draws.

        The farthest comes first; nothing is inside. None where that is not known.
        """
        return excesses(self._campaign, self._campaign.finding(finding).input)

    def input_texts(self, finding: int) -> dict[str, str]:
        """Dimension to value and unit of the input of the finding of this number, for a reader."""
        row = self.findings_at([finding]).rows()[0]
        values = ((one, row[str(one["column"])]) for one in self._campaign.dimensions)
        return {
            str(one["name"]): f"{value:.6g} {one['unit']}".rstrip()
            if isinstance(value, float)
            else str(value)
            for one, value in values
        }

    def _findings(self, status: str | None, where: str = "1") -> Records[ResultFinding]:
        """The findings of this `status`, None for all, for which `where` holds."""
        chosen = "1" if status is None else "status = ?"
        values = () if status is None else (status,)
        numbers = self._campaign.numbers("findings", f"{chosen} AND {where}", values)
        return self.findings_at(numbers)

    def __repr__(self) -> str:
        config, now = self._campaign.config, self.progress
        return (
            f"{config.target}: {now.findings:,} findings, {now.distinct_findings:,} of them distinct, in"
            f" {now.executions:,} episodes ({now.seconds:.1f} s); campaign {self.folder}"
        )

    def _repr_html_(self) -> str:
        now, config = self.progress, self._campaign.config
        likely = {"failure probability": self.failure_probability} if now.samples else {}
        ran = f"{now.executions:,} episodes in {now.seconds:.1f} s"
        stopped = f", stopped by {self.stop_reason}" if self.stop_reason else ""
        known = {
            "policy": config.policy,
            "ran": f"{ran}, strategy {config.strategy}, seed {config.seed}{stopped}",
            **likely,
            "errors": f"{now.failures:,} episodes could not be run" if now.failures else "",
            "campaign": self.folder,
        }
        found = f"{now.findings:,} findings, {now.distinct_findings:,} of them distinct"
        head = markup.heading(f"{config.target}: {found}") + markup.facts(known)
        try:
            modes = self.modes
        except CampaignError as error:  # the campaign can be read, whatever lies beside it
            return head + markup.paragraph(error) + self._findings_html()
        return head + (modes._repr_html_() if len(modes) else self._findings_html())

    def _findings_html(self) -> str:
        """The first findings, distinct ones before others."""
        rows = self._findings(CONFIRMED, "is_distinct")[:_ROWS_SHOWN].rows()
        if len(rows) < _ROWS_SHOWN:
            rows += self._findings(CONFIRMED, "NOT is_distinct")[: _ROWS_SHOWN - len(rows)].rows()
        inputs = [str(dimension["column"]) for dimension in self._campaign.dimensions]
        return _html_table(["id", "kind", "crash_step", "return", *inputs], rows)


def open_result(folder: str | os.PathLike[str], trust: bool = False) -> Result:
    """The campaign in `folder`; `trust` the code and the policy file that it names, for replays."""
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
    def cell(value: Any) -> Any:
        return _text(value) if isinstance(value, str) else value

    return markup.table(columns, ([cell(row[column]) for column in columns] for row in rows))


def _text(value: Any) -> str:
    """`value` in one line; of a traceback, the last one."""
    return f"{value:.6g}" if isinstance(value, float) else (str(value).rstrip().splitlines() or [""])[-1]
