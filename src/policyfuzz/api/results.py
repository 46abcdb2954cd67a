"""What a campaign has come to, as tables for Python and notebooks."""

import base64
import html
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.core.recording import Recording, record
from policyfuzz.core.target import Target
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.report.tables import totals
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Progress
from policyfuzz.triage.replay import Replay, replay, replay_on

#: Films larger than this are not put into a notebook, which would hold them as text.
_MOST_BYTES = 20_000_000


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
        if len(content) > _MOST_BYTES:
            return f"<code>{self.path}</code>"
        data = base64.b64encode(content).decode()
        if kind == ".mp4":
            return f'<video controls loop src="data:video/mp4;base64,{data}"></video>'
        return f'<img src="data:image/{kind[1:]};base64,{data}">'


@dataclass(frozen=True, slots=True)
class Replayed:
    """What happened this time. It can be drawn, filmed and looked at step by step."""

    replay: Replay
    folder: Path  #: where pictures and films go unless told otherwise

    @property
    def crashes(self) -> bool:
        """True if the oracle fired again."""
        return self.replay.crashes

    @property
    def is_identical(self) -> bool:
        """True if kind, step and return are those of the campaign, to the last bit."""
        return self.replay.is_identical

    @property
    def kind(self) -> str | None:
        """Kind of the crash, None where there is none."""
        return self.replay.kind

    @property
    def crash_step(self) -> int | None:
        """Step of the crash, None where there is none."""
        return self.replay.crash_step

    @property
    def steps(self) -> int:
        """Of the whole episode."""
        return self.replay.steps

    @property
    def episode_return(self) -> float:
        """Return of the whole episode."""
        return self.replay.episode_return

    def picture(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Draw the episode into the PNG file `path`."""
        from policyfuzz.report.episode_figure import draw_replay

        file = self._file(path, ".png")
        if file.suffix.lower() != ".png":
            raise UsageError(f"cannot draw into {file.name!r}", "name a file that ends in .png")
        draw_replay(self.replay, file)
        return Shown(file)

    def film(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Film the episode into `path`, an .mp4 or .gif file."""
        from policyfuzz.report.film import best_format, can_film, film_replay

        if not can_film(self.replay.target):
            raise UsageError(
                f"target {self.replay.target.name} cannot be filmed",
                "its simulator has no render(row); of an environment, make it with render_mode='rgb_array'",
            )
        file = self._file(path, best_format())
        film_replay(self.replay, file)
        return Shown(file)

    def recording(self) -> Recording:
        """Actions, signals and states of the episode, step by step."""
        finding = self.replay.finding
        return record(self.replay.target, finding.input, finding.case_seed)

    def _file(self, path: str | os.PathLike[str] | None, ending: str) -> Path:
        if path is not None:
            return Path(path)
        return self.folder / "findings" / f"{self.replay.finding.id}{ending}"

    def __repr__(self) -> str:
        number = self.replay.finding.id
        if not self.crashes:
            return f"finding {number} does not crash: return {self.episode_return:.6g}"
        same = "exactly as recorded" if self.is_identical else "not as recorded"
        return f"finding {number} crashes: {self.kind} at step {self.crash_step}, {same}"


#: Findings that a notebook shows.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Result:
    """A campaign that has ended, or goes on elsewhere: reads its folder whenever it is asked."""

    folder: Path
    target: Target | None = None  #: None: rebuilt by its name where it is needed
    trust: bool = False  #: in files that can run code while they are loaded
    _campaign: CampaignReader = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_campaign", CampaignReader(self.folder))

    @property
    def progress(self) -> Progress:
        """All totals."""
        return self._campaign.progress()

    @property
    def failure_probability(self) -> FailureProbability:
        """How likely a random input that is valid and solvable fails, with its 95 % interval."""
        return FailureProbability.of_campaigns([self.progress])

    @property
    def stop_reason(self) -> str | None:
        """Why it stopped: max-time, max-execs, max-findings or interrupted; None while it runs."""
        return next(
            (row["value"] for row in self._campaign.iterate("about", "name = ?", ("stop_reason",))), None
        )

    @property
    def summary(self) -> dict[str, Any]:
        """The totals that matter, as `policyfuzz status --json` has them."""
        return totals(self._campaign, self.progress, self.stop_reason)

    @property
    def findings(self) -> Any:
        """A pandas DataFrame with a row for each confirmed finding, under its number; inputs by name."""
        return self._frame("findings", CONFIRMED)

    @property
    def errors(self) -> Any:
        """A pandas DataFrame with a row for each episode that could not be run to its end."""
        return self._frame("errors")

    @property
    def history(self) -> Any:
        """A pandas DataFrame with the totals after each batch."""
        return self._frame("batches")

    def rows(self, status: str | None = CONFIRMED) -> list[dict[str, Any]]:
        """The findings as dictionaries; `status` may be "new" or "flaky" too, or None for all."""
        return self._rows("findings", status)

    def replay(self, finding: int) -> Replayed:
        """Run the finding of this number again."""
        found = self._campaign.finding(finding)
        if self.target is None:
            return Replayed(replay(self._campaign, found, trust=self.trust), self.folder)
        return Replayed(replay_on(self.target, found), self.folder)

    def _rows(self, table: str, status: str | None = None) -> list[dict[str, Any]]:
        where, parameters = ("1", ()) if status is None else ("status = ?", (status,))
        rows = list(self._campaign.iterate(table, where, parameters))
        choices = {
            str(dimension["column"]): json.loads(dimension["options"])
            for dimension in self._campaign.dimensions
            if dimension["options"]
        }
        for row in rows if table != "batches" else ():
            row |= {column: names[int(row[column])] for column, names in choices.items()}
            if "is_distinct" in row:
                row["is_distinct"] = bool(row["is_distinct"])
        return rows

    def _frame(self, table: str, status: str | None = None) -> Any:
        pandas = extras.load("pandas", "pandas")
        columns = self._campaign.columns(table)
        return pandas.DataFrame(self._rows(table, status), columns=columns).set_index("id")

    def __repr__(self) -> str:
        config, now = self._campaign.config, self.progress
        return (
            f"{config.target}: {now.findings:,} findings, {now.distinct_findings:,} of them distinct, in"
            f" {now.executions:,} episodes ({now.seconds:.1f} s); campaign {self.folder}"
        )

    def _repr_html_(self) -> str:
        rows = sorted(self.rows(), key=lambda row: not row["is_distinct"])[:_SHOWN]
        inputs = [str(dimension["column"]) for dimension in self._campaign.dimensions]
        columns = ["id", "kind", "crash_step", "return", *inputs]
        return f"<p>{html.escape(repr(self))}</p>{_html_table(columns, rows)}"


def open_result(folder: str | os.PathLike[str], trust: bool = False) -> Result:
    """The campaign in `folder`, whoever ran it; `trust` in what its policy is loaded from, for replays."""
    return Result(Path(folder), trust=trust)


def _html_table(columns: list[str], rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(row[column])}</td>' for column in columns)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else html.escape(str(value))
