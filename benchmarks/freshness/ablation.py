"""The comparison of the paper (RQ2): the same search with freshness and without."""

from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from policyfuzz.core.settings import SearchSettings
from policyfuzz.core.target import Runner, Target
from policyfuzz.search.cases import Purpose
from policyfuzz.search.distinct import DistinctSet
from policyfuzz.search.strategies import find_strategy, make_fuzzer

#: Findings nearer than this, in the unit cube, are not independent.
RADIUS = 0.1


@dataclass(frozen=True, slots=True)
class Variant:
    """A search that takes part."""

    strategy: str
    score: str | None = None  #: of freshness, None for the strategy's own

    @property
    def label(self) -> str:
        return self.strategy if self.score is None else f"{self.strategy} --freshness {self.score}"

    def settings(self, target: Target) -> SearchSettings:
        """As a campaign on `target` has them."""
        defaults = SearchSettings(samples=target.samples)
        settings = find_strategy(self.strategy).defaults(defaults, target.name)
        if self.score is None:
            return settings
        return replace(settings, freshness=replace(settings.freshness, score=self.score))


VARIANTS = (
    Variant("mdpfuzz"),
    Variant("mdpfuzz", "mean"),
    Variant("reward"),
    Variant("mdpfuzz-published"),
    Variant("reward-published"),
    Variant("random"),
)


@dataclass(frozen=True, slots=True)
class Count:
    """What one search found."""

    target: str
    variant: str
    seed: int
    findings: int
    independent: int
    fresh: float  #: share of fresh sequences, mean over batches; NaN without freshness
    emptied: int | None  #: episodes when the corpus had run out for the first time, None if it never did
    findings_before: int  #: found until then, or at all
    independent_before: int


def count(label: str, target: Target, variant: Variant, episodes: int, seed: int) -> Count:
    """Search for so many `episodes`, all of them counted."""
    with threadpool_limits(1):
        run = Runner(target)
        fuzzer = make_fuzzer(variant.strategy, target, variant.settings(target), seed)
        packing = DistinctSet(RADIUS, target.inputs.periods)
        done = findings = 0
        before: tuple[int, int, int] | None = None
        fresh: list[float] = []
        while done < episodes:
            cases = fuzzer.ask(min(target.batch_size, episodes - done))
            if before is None and (cases.purposes == Purpose.EXPLORE).any():
                before = done, findings, len(packing)
            executions = run(cases.inputs, cases.seeds)
            fuzzer.tell(cases, executions)
            if not np.isnan(share := fuzzer.algorithm.fresh_share):
                fresh.append(share)
            packing.add(target.inputs.to_unit(cases.inputs[executions.crashed]))
            findings += int(executions.crashed.sum())
            done += len(cases)
    emptied, findings_before, independent_before = before or (None, findings, len(packing))
    return Count(
        label,
        variant.label,
        seed,
        findings,
        len(packing),
        float(np.mean(fresh)) if fresh else float("nan"),
        emptied,
        findings_before,
        independent_before,
    )
