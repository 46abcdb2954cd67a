"""Which of the stored results a page shows: of every scenario the largest budget that was run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.paper.results import CAMPAIGN, Result
from benchmarks.paper.scenarios import PUBLIC, STRATEGIES
from benchmarks.table import PUBLISHED


@dataclass(frozen=True, slots=True)
class Selection:
    """Results by label and part; campaigns by label and strategy, a result for each seed."""

    campaigns: Mapping[str, Mapping[str, Sequence[Result]]]
    looks: Mapping[str, Mapping[str, Result]]  #: all other parts, with seed 0
    everything: Sequence[Result]

    @property
    def labels(self) -> list[str]:
        """All scenarios of the page, in the order of the paper, run or not."""
        known = {*self.campaigns, *self.looks}
        ordered = [label for name in PUBLISHED for label in (name + PUBLIC, name)]
        return [label for label in ordered if label in known or self._is_missing(label)]

    def _is_missing(self, label: str) -> bool:
        """True for a scenario that was run neither with the paper's model nor with ours."""
        return label in PUBLISHED and label + PUBLIC not in {*self.campaigns, *self.looks}

    def look(self, label: str, part: str) -> Result | None:
        """The result of a part that is no campaign; None if it was not run."""
        return self.looks.get(label, {}).get(part)

    def episodes(self, label: str) -> int:
        """Of each campaign."""
        return int(next(iter(self.campaigns[label].values()))[0].identity.size["episodes"])


def select(results: Sequence[Result]) -> Selection:
    """What a page shows of `results`."""
    labels = dict.fromkeys(one.identity.label for one in results)
    campaigns = {label: _campaigns(label, results) for label in labels}
    looks: dict[str, dict[str, Result]] = {}
    for one in sorted(results, key=_episodes):  # the largest is the last, and stays
        if not one.identity.part.startswith(CAMPAIGN):
            looks.setdefault(one.identity.label, {})[one.identity.part] = one
    return Selection({label: some for label, some in campaigns.items() if some}, looks, results)


def _campaigns(label: str, results: Sequence[Result]) -> dict[str, list[Result]]:
    """Of the budget with most strategies, and of these the largest."""
    budgets: dict[str, dict[str, list[Result]]] = {}
    for one in results:
        identity = one.identity
        if identity.label == label and identity.part.startswith(CAMPAIGN):
            of_budget = budgets.setdefault(identity.budget, {})
            of_budget.setdefault(identity.part.removeprefix(CAMPAIGN), []).append(one)
    if not budgets:
        return {}
    best = max(budgets.values(), key=lambda some: (len(some), _episodes(next(iter(some.values()))[0])))
    return {
        name: sorted(best[name], key=lambda one: one.identity.seed) for name in STRATEGIES if name in best
    }


def _episodes(result: Result) -> int:
    return int(result.identity.size.get("episodes", 0))
