"""Several campaigns side by side: counts at equal effort, and tests that say what a difference means."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

from policyfuzz.core.settings import CampaignConfig
from policyfuzz.report.commands import POLICY_OF_TARGET
from policyfuzz.report.figures.history import Discovery
from policyfuzz.store.records import Progress

#: Chance of calling groups different that are not, at most, over all that are compared.
SIGNIFICANCE = 0.05
#: Campaigns of a group that a test needs: with fewer no result can be significant.
_FEWEST = 4


class Compared(Protocol):
    """One of several campaigns."""

    @property
    def config(self) -> CampaignConfig: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def curve(self) -> Discovery: ...


@dataclass(frozen=True, slots=True)
class Group:
    """Campaigns with the same settings on one target, which differ in their seeds."""

    target: str
    policy: str
    strategy: str
    places: tuple[int, ...]  #: of its campaigns in the report
    distinct: tuple[int, ...]  #: distinct findings of each, after as many episodes as all groups have
    settings: tuple[str, ...]  #: that tell it from groups with the same policy and strategy

    @property
    def label(self) -> str:
        """For a reader."""
        return ", ".join([self.strategy, self.policy, *self.settings])


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two groups on the same target."""

    first: Group
    second: Group
    episodes: int  #: at which they are compared
    effect: float  #: chance that a campaign of the first finds more, ties count half (Vargha and Delaney)
    p_value: float | None  #: two-sided Mann-Whitney test after Holm's correction; None with too few campaigns

    @property
    def is_shown(self) -> bool:
        """True if the difference is significant."""
        return self.p_value is not None and self.p_value <= SIGNIFICANCE


def is_independent(view: Compared) -> bool:
    """False for an instance that took cases from others (--sync): what it found is partly their work."""
    return not view.progress.imports


def left_out_text(views: Sequence[Compared]) -> str:
    """Which campaigns no test counts, for a reader; empty if all count."""
    count = sum(not is_independent(one) for one in views)
    if not count:
        return ""
    return (
        f"{count:,} of the campaigns took cases from others (--sync). They are no campaigns of their own to a"
        " test, and are left out of the comparison at equal numbers of episodes."
    )


def groups_of(views: Sequence[Compared]) -> list[Group]:
    """Independent campaigns that differ only in their seeds, together; of those with one seed, the first."""
    keys: dict[CampaignConfig, dict[int, int]] = {}
    for place, view in enumerate(views):
        if not is_independent(view):
            continue
        places = keys.setdefault(replace(view.config, seed=0), {})
        places.setdefault(view.config.seed, place)
    return [
        Group(
            config.target,
            config.policy or POLICY_OF_TARGET,
            config.strategy,
            tuple(places.values()),
            tuple(
                distinct_after(views[place], common_episodes(views, config.target))
                for place in places.values()
            ),
            _settings_apart(config, list(keys)),
        )
        for config, places in keys.items()
    ]


def _settings_apart(config: CampaignConfig, others: Sequence[CampaignConfig]) -> tuple[str, ...]:
    """Settings of `config` that tell it from `others` with the same target, policy and strategy."""
    alike = [
        one
        for one in others
        if (one.target, one.policy, one.strategy) == (config.target, config.policy, config.strategy)
    ]
    apart = {name: value for one in alike for name, value in config.unlike(one).items()}
    return tuple(
        f"{name} {value:.12}" if isinstance(value, str) else f"{name} {value}"
        for name, value in apart.items()
    )


def common_episodes(views: Sequence[Compared], target: str) -> int:
    """As many episodes as every independent campaign on `target` has."""
    return min(
        one.progress.executions for one in views if one.config.target == target and is_independent(one)
    )


def distinct_after(view: Compared, episodes: int) -> int:
    """Distinct findings after that many episodes, as of the last batch before."""
    if episodes >= view.progress.executions:
        return view.progress.distinct_findings
    place = bisect_right(view.curve.episodes, episodes)
    return view.curve.distinct[place - 1] if place else 0


def contrasts(views: Sequence[Compared]) -> list[Contrast]:
    """All pairs of groups on the same target."""
    groups = groups_of(views)
    pairs = [(one, two) for one, two in combinations(groups, 2) if one.target == two.target]
    found = holm([_p_value(one.distinct, two.distinct) for one, two in pairs])
    return [
        Contrast(one, two, common_episodes(views, one.target), _effect(one.distinct, two.distinct), p_value)
        for (one, two), p_value in zip(pairs, found, strict=True)
    ]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """`p_values` corrected for how many there are (Holm); None stays None."""
    known = sorted((value, place) for place, value in enumerate(p_values) if value is not None)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        corrected[place] = largest
    return corrected


def _effect(first: Sequence[int], second: Sequence[int]) -> float:
    wins = sum((one > two) + 0.5 * (one == two) for one in first for two in second)
    return wins / (len(first) * len(second))


def _p_value(first: Sequence[int], second: Sequence[int]) -> float | None:
    if min(len(first), len(second)) < _FEWEST:
        return None
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(first, second, alternative="two-sided").pvalue)
