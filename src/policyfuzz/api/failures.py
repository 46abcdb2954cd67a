"""Findings and failure modes that know their campaign: run again, drawn, filmed, explained."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from policyfuzz.api.shown import Shown, already_made
from policyfuzz.core import extras, markup
from policyfuzz.report.mode_summaries import ModeSummary
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.triage_file import FindingTriage
from policyfuzz.store.triage_records import DELAYS_ONLY, NONE_FOUND, WITNESS, Avoidance, Mode, Modes

if TYPE_CHECKING:
    from policyfuzz.api.results import Records, Replayed, Result

_WITNESS_TEXTS = {
    WITNESS: "it could have been avoided",
    DELAYS_ONLY: "it could have been delayed",
    NONE_FOUND: "no way to avoid it was found, which proves nothing",
}


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

    def picture(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Draw its episode into the PNG file `path`."""
        return self.replay().picture(path)

    def film(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Film its episode into `path`, an .mp4 or .gif file, beside its witness if it has one."""
        return self.replay().film(path)

    def _repr_html_(self) -> str:
        mode = self.mode
        known: dict[str, object] = {
            "return": self.episode_return,
            "margin": self.margin,
            "failure mode": "" if mode is None else f"M{mode.number}: {mode.words}",
            "with other case seeds": f"crashes with {self.reseeded_crashes} of {self.reseeded}"
            if self.reseeded
            else "",
            **_avoidance_facts(self.triage.avoidance),
            **self.result.input_texts(self.id),
        }
        doubt = "" if self.status == CONFIRMED else f" ({self.status})"
        title = f"finding {self.id}: {self.kind} at step {self.crash_step}{doubt}"
        return markup.heading(title) + markup.facts(known) + _film_html(self.result.folder, self.id)


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

    def picture(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Draw the episode of its representative into the PNG file `path`."""
        return self.representative.picture(path)

    def film(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Film its representative into `path`, an .mp4 or .gif file, beside its witness if it has one."""
        return self.representative.film(path)

    def row(self) -> dict[str, Any]:
        """What is known of it, by name."""
        mode = asdict(self.summary.mode)
        mode["findings"] = len(mode.pop("members"))
        return mode | self.summary.counts

    def __repr__(self) -> str:
        mode = self.summary.mode
        return f"M{mode.number}: {len(mode.members):,} findings, {mode.kind}: {mode.words}"

    def _repr_html_(self) -> str:
        summary, mode = self.summary, self.summary.mode
        known: dict[str, object] = {
            "findings": f"{len(mode.members):,} from {mode.roots:,} lineages",
            "share of the failure probability": _share_text(mode),
            "severity": mode.severity,
            "near neighbours that crash": "" if math.isnan(mode.robustness) else f"{mode.robustness:.0%}",
            "avoidable": summary.avoidable_text,
            "decided": summary.decided_text,
            "representative": f"finding {mode.representative}",
            **_avoidance_facts(summary.avoidance),
        }
        film = _film_html(self.result.folder, mode.representative)
        return markup.heading(f"M{mode.number}: {mode.words or mode.kind}") + markup.facts(known) + film


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
            return markup.paragraph(repr(self))
        rows = [
            (
                f"M{one.number}",
                len(one.summary.mode.members),
                one.words or one.summary.mode.kind,
                _share_text(one.summary.mode),
                one.summary.mode.severity,
                one.summary.avoidable_text,
                one.summary.mode.representative,
            )
            for one in self
        ]
        head = ["mode", "findings", "what", "share of failures", "severity", "avoidable", "representative"]
        reason = "" if self.about is None else self.about.reason
        return markup.table(head, rows) + (markup.paragraph(f"grouping: {reason}") if reason else "")


def _share_text(mode: Mode) -> str:
    """Which share of all failures is of `mode`; empty if that is not known."""
    if math.isnan(mode.share):
        return ""
    return f"{mode.share:.0%} (95 %: {mode.share_low:.0%} to {mode.share_high:.0%})"


def _avoidance_facts(avoidance: Avoidance | None) -> dict[str, object]:
    """Whether a crash could have been avoided, how, and up to when."""
    if avoidance is None:
        return {}
    last, words = avoidance.last_chance, f": {avoidance.words}" if avoidance.words else ""
    return {
        "witness": f"{_WITNESS_TEXTS.get(avoidance.verdict, avoidance.verdict)}{words}",
        "point of no return": "" if last is None else f"step {last}",
        "decision": avoidance.blamed,
    }


def _film_html(folder: Path, number: int) -> str:
    """The film or picture of a finding if there is one. None is made unasked: that may take minutes."""
    made = already_made(folder, number)
    return markup.paragraph("not filmed yet: call .film()") if made is None else made._repr_html_()
