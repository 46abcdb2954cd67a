"""Findings and failure modes that know their campaign: run again, drawn, filmed, explained."""

import html
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, overload

from policyfuzz.core import extras
from policyfuzz.report.mode_summaries import ModeSummary
from policyfuzz.store.records import Finding
from policyfuzz.store.triage_file import FindingTriage
from policyfuzz.store.triage_records import WITNESS, Avoidance, Modes

if TYPE_CHECKING:
    from policyfuzz.api.results import Records, Replayed, Result, Shown


@dataclass(frozen=True, slots=True, eq=False)
class ResultFinding(Finding):
    """A finding of a result: it can be run again, drawn and filmed, and knows what triage knows of it."""

    #: A `Result`; the types of fields are read when records are, and that one is not known here then.
    result: Any = field(repr=False)

    @property
    def triage(self) -> FindingTriage:
        """What second runs have shown."""
        known: FindingTriage = self.result.triage.of(self.id)
        return known

    @property
    def witness(self) -> Avoidance | None:
        """How the crash can be avoided, and up to when; None if no way is known."""
        known = self.triage.avoidance
        return known if known is not None and known.verdict == WITNESS else None

    @property
    def mode(self) -> "FailureMode | None":
        """The failure mode that it belongs to; None if that is not known."""
        return next((one for one in self.result.modes if self.id in one.summary.mode.members), None)

    def replay(self) -> "Replayed":
        """Run it again."""
        again: Replayed = self.result.replay(self.id)
        return again

    def picture(self, path: str | os.PathLike[str] | None = None) -> "Shown":
        """Draw its episode into the PNG file `path`."""
        return self.replay().picture(path)

    def film(self, path: str | os.PathLike[str] | None = None) -> "Shown":
        """Film its episode into `path`, an .mp4 or .gif file, beside its witness if it has one."""
        return self.replay().film(path)


@dataclass(frozen=True, slots=True)
class FailureMode:
    """Findings that fail alike: what a person would call one bug."""

    summary: ModeSummary  #: all that is known of it
    result: "Result" = field(repr=False)

    @property
    def number(self) -> int:
        """From 1, the worst first: M1 on the command line."""
        return self.summary.mode.number

    @property
    def words(self) -> str:
        """What its findings have in common, in one line."""
        return self.summary.mode.words

    @property
    def representative(self) -> ResultFinding:
        """The finding that shows it best."""
        return self.result.finding(self.summary.mode.representative)

    @property
    def findings(self) -> "Records[ResultFinding]":
        """All of its findings."""
        return self.result.findings_at(self.summary.mode.members)

    def row(self) -> dict[str, Any]:
        """What is known of it, by name."""
        mode = asdict(self.summary.mode)
        mode["findings"] = len(mode.pop("members"))
        return mode | self.summary.counts

    def __repr__(self) -> str:
        mode = self.summary.mode
        return f"M{mode.number}: {len(mode.members):,} findings, {mode.kind}: {mode.words}"


class FailureModes(Sequence[FailureMode]):
    """The failure modes of a campaign, the worst first; empty before triage. A table in notebooks."""

    def __init__(self, found: list[FailureMode], about: Modes | None) -> None:
        self._found = found
        self.about = about  #: how they were found, and whether they are stable; None before triage

    @overload
    def __getitem__(self, index: int) -> FailureMode: ...
    @overload
    def __getitem__(self, index: slice) -> "FailureModes": ...
    def __getitem__(self, index: int | slice) -> "FailureMode | FailureModes":
        if isinstance(index, slice):
            return FailureModes(self._found[index], self.about)
        return self._found[index]

    def __iter__(self) -> Iterator[FailureMode]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each mode."""
        return [one.row() for one in self]

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each mode under its number."""
        pandas = extras.load("pandas", "pandas")
        table = pandas.DataFrame(self.rows())
        return table if table.empty else table.set_index("number")

    def __repr__(self) -> str:
        if self.about is None:
            return "no failure modes yet: run result.run_triage()"
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        if not self._found:
            return f"<p>{html.escape(repr(self))}</p>"
        cells = "".join(
            f"<tr><td>M{one.number}</td><td>{len(one.summary.mode.members):,}</td>"
            f'<td style="text-align:left">{html.escape(one.words or one.summary.mode.kind)}</td>'
            f'<td style="text-align:left">{html.escape(one.summary.avoidable_text)}</td></tr>'
            for one in self
        )
        head = "<tr><th>mode</th><th>findings</th><th>what</th><th>avoidable</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{cells}</tbody></table>"
