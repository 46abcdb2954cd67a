"""Which findings of a running campaign look like a new failure mode: far from all earlier ones of their kind.

Failure modes proper come from triage, which runs findings again and compares whole episodes. While a campaign
runs there are only the behaviour descriptors of its findings, so this is a coarser version of the rule that
tells distinct findings apart (`search/distinct.py`).
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.events import BatchDone, Event, Started
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.search.distinct import DistinctSet
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, NEW, Finding

#: Difference of two behaviours, as a root mean square in standard deviations of random episodes, from which
#: on they may be two modes. Distinct findings differ by a quarter of one.
MODE_RADIUS = 1.0


@dataclass(frozen=True, slots=True)
class NewMode:
    """A confirmed, distinct finding that is unlike all earlier ones of its kind."""

    number: int  #: from 1, in the order of discovery; those of earlier parts of the campaign count
    finding: Finding
    is_first_of_kind: bool


@dataclass(slots=True)
class NewModes:
    """Picks new modes from the events of a campaign.

    A finding is one if no earlier distinct finding of its kind is within MODE_RADIUS of its behaviour. So a
    region that is explored step by step stays one mode, however wide. Where behaviours are not known, only
    the first finding of each kind is a mode.
    """

    radius: float = MODE_RADIUS
    count: int = field(init=False, default=0)
    _known: dict[str, DistinctSet] = field(init=False, default_factory=dict)  #: behaviours by kind of crash
    _waiting: dict[int, Finding] = field(init=False, default_factory=dict)  #: that may become distinct

    def take(self, event: Event) -> list[NewMode]:
        """The new modes that `event` brings, in the order of their confirmation."""
        if isinstance(event, Started) and event.progress.batch:
            self._restore(Path(event.folder))
        if not isinstance(event, BatchDone):
            return []
        # a trial is over before the same batch confirms others
        distinct: list[tuple[int, dict[str, int]]] = []
        for trial in event.trials:
            if trial.is_distinct:
                distinct.append((trial.id, {"reseeded": trial.runs, "reseeded_crashes": trial.crashes}))
            elif trial.runs:
                self._waiting.pop(trial.id, None)
        confirmed: list[tuple[int, dict[str, int]]] = []
        for verdict in event.verdicts:
            if verdict.status != CONFIRMED:
                self._waiting.pop(verdict.id, None)
            elif verdict.id in self._waiting:
                told = replace(self._waiting[verdict.id], status=CONFIRMED, survived_by=verdict.survived_by)
                self._waiting[verdict.id] = told
                confirmed += [(verdict.id, {})] if verdict.is_distinct else []
        self._waiting |= {one.id: one for one in event.findings if one.is_novel}
        found = [
            replace(self._waiting.pop(number), is_distinct=True, **changes)  # type: ignore[arg-type]
            for number, changes in (*distinct, *confirmed)
            if number in self._waiting
        ]
        return [mode for one in found if (mode := self._judge(one)) is not None]

    def _judge(self, finding: Finding) -> NewMode | None:
        """`finding` as a new mode, None if it is like an earlier one; later ones are compared with it."""
        is_first = finding.kind not in self._known
        known = self._known.setdefault(finding.kind, DistinctSet(self.radius, np.zeros(DESCRIPTOR_SIZE)))
        place = _behaviour(finding)
        is_far = place is not None and len(known) > 0 and bool(known.is_free(place[None])[0])
        if place is not None:
            known.insert(place[None])
        if not (is_first or is_far):
            return None
        self.count += 1
        return NewMode(self.count, finding, is_first)

    def _restore(self, folder: Path) -> None:
        """Know what earlier parts of the campaign in `folder` have found."""
        campaign = CampaignReader(folder)
        # by their number, which is nearly the order in which they were confirmed
        for finding in campaign.records(Finding, "findings", "is_distinct"):
            campaign.descriptor(finding)  # or says that the file is damaged
            self._judge(finding)
        undecided = "is_novel AND NOT is_distinct AND (status = ? OR (status = ? AND reseeded IS NULL))"
        waiting = campaign.records(Finding, "findings", undecided, (NEW, CONFIRMED))
        self._waiting = {one.id: one for one in waiting}
        campaign.close()


def _behaviour(finding: Finding) -> NDArray[np.float64] | None:
    """(q,) behaviour descriptor of `finding`, None if it is not known."""
    if finding.behaviour is None:
        return None
    values = np.array(json.loads(finding.behaviour), np.float64)
    return values if values.shape == (DESCRIPTOR_SIZE,) else None
