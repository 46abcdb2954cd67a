"""Whether a repaired policy is better: tests that share no seed with what it learnt from."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.intervals import exact_interval
from policyfuzz.core.target import Run, Target
from policyfuzz.repairing.campaigns import Campaigns, Found
from policyfuzz.repairing.journal import Arrays, Journal
from policyfuzz.repairing.seeds import DRAWS, Purpose, seed_for
from policyfuzz.repairing.states import Cases, Ends, ends_of, random_cases

#: Strategies that fuzz the old and the new policy.
STRATEGIES = ("portfolio", "mdpfuzz", "random")
#: Chance of calling a difference real that is none, at most.
_SIGNIFICANCE = 0.05
#: Half the width of a 95 % interval in standard errors, of a mean over many cases.
_NORMAL = 1.96
#: The nominal return may fall by this share of itself, or of its spread.
_RETURN_SHARE, _SPREAD_SHARE = 0.003, 0.01
#: Share of the old findings that must be fixed.
_FIXED = 0.5

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class VerdictSettings:
    """How much is run for a verdict."""

    pool: int  #: random cases, the same for both policies
    episodes: int  #: of each campaign
    seeds: int = 3  #: campaigns of each strategy and policy
    seed: int = 0
    allowed: float = 0.1  #: newly broken cases for each fixed one, at most

    def __post_init__(self) -> None:
        for name in ("pool", "episodes", "seeds"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"{name} is {getattr(self, name)}, expected 1 or more",
                    "leave it out for the usual number; the verdict needs some of each",
                )


@dataclass(frozen=True, slots=True)
class PoolLine:
    """Both policies on the same random cases."""

    cases: int  #: that both could run to their end
    crashes_before: int
    crashes_after: int
    fixed: int
    newly_broken: int
    p_value: float  #: of McNemar's exact test
    allowed: float  #: newly broken for each fixed one

    @property
    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """95 % intervals of the crash rates before and after."""
        return (
            exact_interval(self.crashes_before, self.cases),
            exact_interval(self.crashes_after, self.cases),
        )

    @property
    def holds(self) -> bool:
        """True if the new policy crashes less often, and breaks little."""
        fewer = self.crashes_after < self.crashes_before and self.p_value <= _SIGNIFICANCE
        return fewer and self.newly_broken <= self.allowed * self.fixed

    @property
    def text(self) -> str:
        """For a reader."""
        parts = [
            f"{1000 * count / max(1, self.cases):.3f} (95 %: {1000 * low:.3f} to {1000 * high:.3f})"
            for count, (low, high) in zip(
                (self.crashes_before, self.crashes_after), self.intervals, strict=True
            )
        ]
        return (
            f"{self.cases:,} random cases: crashes per 1,000 {parts[0]} before, {parts[1]} after;"
            f" {self.fixed:,} fixed, {self.newly_broken:,} newly broken (McNemar p = {self.p_value:.2g})"
        )


@dataclass(frozen=True, slots=True)
class FuzzedLine:
    """What one strategy finds in both policies, seed by seed."""

    strategy: str
    episodes: int  #: of each campaign
    distinct_before: tuple[int, ...]
    distinct_after: tuple[int, ...]
    lineages_before: tuple[int, ...]
    lineages_after: tuple[int, ...]
    covered_before: float | None  #: share of the random crashes that lie near findings; None without any
    covered_after: float | None

    @property
    def difference(self) -> tuple[float, float, float]:
        """Distinct findings after less before: mean over seeds, and its 95 % interval."""
        return _mean_interval(np.array(self.distinct_after) - np.array(self.distinct_before))

    @property
    def holds(self) -> bool:
        """True if there are fewer distinct findings, or none at all."""
        before, after = sum(self.distinct_before), sum(self.distinct_after)
        return after < before or after == 0

    @property
    def text(self) -> str:
        """For a reader."""
        mean, low, high = self.difference
        count = len(self.distinct_before)
        interval = f", 95 %: {low:+.1f} to {high:+.1f}" if count > 1 else "; one seed tells no interval"
        covered = [
            "unknown" if one is None else f"{one:.0%}" for one in (self.covered_before, self.covered_after)
        ]
        return (
            f"fuzzed with {self.strategy}, {self.episodes:,} episodes x {count} seed{'s' * (count > 1)}:"
            f" distinct findings {_mean(self.distinct_before)} before, {_mean(self.distinct_after)} after"
            f" (difference {mean:+.1f}{interval}); root lineages"
            f" {_mean(self.lineages_before)} and {_mean(self.lineages_after)}; covered failure mass"
            f" {covered[0]} and {covered[1]}"
        )


@dataclass(frozen=True, slots=True)
class ReturnLine:
    """Returns of random cases in which neither policy crashes."""

    cases: int
    mean_before: float
    difference: float
    low: float  #: 95 % interval of the difference
    high: float
    tolerance: float  #: by which the mean may fall
    success_before: float  #: share of all cases without crash or error
    success_after: float

    @property
    def standard_error(self) -> float:
        """Of the difference."""
        return (self.high - self.difference) / _NORMAL

    @property
    def holds(self) -> bool:
        """True if the return has not fallen by more than it may, and no fewer cases succeed.

        Without a case in which neither policy crashes there is nothing to say so.
        """
        is_kept = self.cases > 0 and self.difference >= -self.tolerance
        return is_kept and self.success_after >= self.success_before

    @property
    def text(self) -> str:
        """For a reader."""
        return (
            f"nominal return where neither crashes ({self.cases:,} cases): {self.mean_before:.4g} before,"
            f" a change of {self.difference:+.3g} after (95 %: {self.low:+.3g} to {self.high:+.3g};"
            f" it may fall by {self.tolerance:.2g}); success {self.success_before:.4%} before,"
            f" {self.success_after:.4%} after"
        )


@dataclass(frozen=True, slots=True)
class ReplayLine:
    """Old findings, run with the new policy."""

    modes: tuple[str, ...]
    findings: tuple[int, ...]  #: of each mode
    fixed: tuple[int, ...]

    @property
    def holds(self) -> bool:
        """True if most are fixed."""
        return sum(self.fixed) >= _FIXED * sum(self.findings)

    @property
    def text(self) -> str:
        """For a reader."""
        parts = [
            f"{mode} {fixed:,} of {count:,}"
            for mode, fixed, count in zip(self.modes, self.fixed, self.findings, strict=True)
        ]
        low, high = exact_interval(sum(self.fixed), max(1, sum(self.findings)))
        share = sum(self.fixed) / max(1, sum(self.findings))
        return f"old findings fixed: {share:.0%} (95 %: {low:.0%} to {high:.0%}); {'; '.join(parts)}"


Line = PoolLine | FuzzedLine | ReturnLine | ReplayLine


@dataclass(frozen=True, slots=True)
class Verdict:
    """All that was tested."""

    target: str
    before: str  #: names the policy
    after: str
    pool: PoolLine
    fuzzed: tuple[FuzzedLine, ...]
    returns: ReturnLine
    replayed: ReplayLine

    @property
    def all_lines(self) -> tuple[Line, ...]:
        """Every test."""
        return (self.pool, *self.fuzzed, self.returns, self.replayed)

    @property
    def holds(self) -> bool:
        """True if the new policy passes every test."""
        return all(one.holds for one in self.all_lines)

    def lines(self) -> list[str]:
        """What a reader should know, line by line."""
        failed = sum(not one.holds for one in self.all_lines)
        end = (
            "the repair holds" if self.holds else f"the repair fails {failed} of {len(self.all_lines)} tests"
        )
        return [
            self.target,
            f"  before  {self.before}",
            f"  after   {self.after}",
            "",
            *(f"{'passed' if one.holds else 'FAILED'}  {one.text}" for one in self.all_lines),
            "",
            f"verdict: {end}",
        ]

    def summary(self) -> dict[str, Any]:
        """All numbers, for programs."""
        values = asdict(self)
        values["holds"] = self.holds
        values["held"] = [one.holds for one in self.all_lines]
        return values


class Judge:
    """Runs both policies on what neither was trained on."""

    def __init__(
        self,
        before: Target,
        after: Target,
        journal: Journal,
        settings: VerdictSettings,
        campaigns: Campaigns,
        tell: Tell = lambda _text: None,
    ) -> None:
        self._before, self._after, self._journal = before, after, journal
        self._settings, self._campaigns, self._tell = settings, campaigns, tell

    def verdict(self, findings: Cases, modes: Sequence[str]) -> Verdict:
        """The verdict; `modes` names the mode of each of the old `findings`."""
        pool = random_cases(
            self._before, self._settings.pool, seed_for(Purpose.VERDICT, self._settings.seed, DRAWS)
        )
        ends = [
            self._ends(name, target, pool)
            for name, target in (("before", self._before), ("after", self._after))
        ]
        run = self._campaigns.choice.make_runner(self._after)
        self._tell(f"running {len(findings):,} old findings again")
        replayed = ends_of(_branchless(run), findings, self._batch)
        return Verdict(
            target=self._before.name,
            before=self._before.policy_uri or self._before.policy_name,
            after=self._after.policy_uri or self._after.policy_name,
            pool=pool_line(ends[0], ends[1], self._settings.allowed),
            fuzzed=tuple(self._fuzzed(one, pool, ends) for one in STRATEGIES),
            returns=return_line(ends[0], ends[1]),
            replayed=_replay_line(modes, replayed),
        )

    @property
    def _batch(self) -> int:
        return max(self._before.batch_size, 64)

    def _ends(self, name: str, target: Target, pool: Cases) -> Ends:
        """How a policy ends the pool, in pieces that are stored one by one."""
        size = max(self._batch, 50_000 // self._batch * self._batch)
        run = self._campaigns.choice.make_runner(target)
        parts = []
        for start in range(0, len(pool), size):
            some = pool[start : start + size]

            def piece(some: Cases = some) -> Arrays:
                return ends_of(_branchless(run), some, self._batch).arrays()

            self._tell(f"random cases, {name}: {start:,} of {len(pool):,}")
            values = self._journal.arrays(f"verdict/pool-{len(pool)}-{name}-{start}", piece)
            parts.append(Ends.from_arrays(values))
        return Ends.joined(parts)

    def _fuzzed(self, strategy: str, pool: Cases, ends: Sequence[Ends]) -> FuzzedLine:
        found: dict[str, list[Found]] = {"before": [], "after": []}
        for name, target in (("before", self._before), ("after", self._after)):
            for number in range(self._settings.seeds):
                self._tell(
                    f"fuzzing the policy {name} with {strategy}, {number + 1} of {self._settings.seeds}"
                )
                seed = seed_for(Purpose.VERDICT, self._settings.seed, number)
                place = f"{name}-{strategy}-{self._settings.episodes}-{number}"
                folder = self._journal.folder / "verdict" / place
                found[name].append(
                    self._campaigns.found(target, self._settings.episodes, seed, folder, strategy)
                )
        crashes = [pool.inputs[one.crashed] for one in ends]
        before, after = found["before"], found["after"]
        return FuzzedLine(
            strategy=strategy,
            episodes=self._settings.episodes,
            distinct_before=tuple(one.distinct for one in before),
            distinct_after=tuple(one.distinct for one in after),
            lineages_before=tuple(one.lineages for one in before),
            lineages_after=tuple(one.lineages for one in after),
            covered_before=covered_mass(self._before, crashes[0], [one.inputs for one in before]),
            covered_after=covered_mass(self._before, crashes[1], [one.inputs for one in after]),
        )


def pool_line(before: Ends, after: Ends, allowed: float) -> PoolLine:
    """Both policies on the same cases."""
    from scipy.stats import binomtest

    is_counted = before.sound & after.sound
    old, new = before.crashed[is_counted], after.crashed[is_counted]
    fixed, newly = int((old & ~new).sum()), int((new & ~old).sum())
    p_value = float(binomtest(newly, fixed + newly).pvalue) if fixed + newly else 1.0
    return PoolLine(int(is_counted.sum()), int(old.sum()), int(new.sum()), fixed, newly, p_value, allowed)


def return_line(before: Ends, after: Ends) -> ReturnLine:
    """Returns where neither policy crashes."""
    both = before.passed & after.passed
    old, new = before.returns[both], after.returns[both]
    if not len(old):
        return ReturnLine(0, 0.0, 0.0, 0.0, 0.0, 0.0, float(before.passed.mean()), float(after.passed.mean()))
    change = new - old
    error = _NORMAL * float(change.std()) / math.sqrt(len(change))
    mean, difference = float(old.mean()), float(change.mean())
    tolerance = max(_RETURN_SHARE * abs(mean), _SPREAD_SHARE * float(old.std()))
    return ReturnLine(
        len(old),
        mean,
        difference,
        difference - error,
        difference + error,
        tolerance,
        float(before.passed.mean()),
        float(after.passed.mean()),
    )


def covered_mass(
    target: Target,
    crashes: NDArray[np.float64],
    findings: Sequence[NDArray[np.float64]],
    radius: float = 0.05,
) -> float | None:
    """Mean share, over campaigns, of random `crashes` (n, d) that lie within `radius` of a finding."""
    if not len(crashes):
        return None
    shares = []
    for some in findings:
        near = np.zeros(len(crashes), np.bool_)
        for one in some:
            repeated = np.repeat(one[None], len(crashes), axis=0)
            near |= target.inputs.distance(crashes, repeated) <= radius
        shares.append(float(near.mean()))
    return float(np.mean(shares)) if shares else None


def _replay_line(modes: Sequence[str], replayed: Ends) -> ReplayLine:
    names = tuple(dict.fromkeys(modes))
    rows = {name: np.array([one == name for one in modes]) for name in names}
    return ReplayLine(
        names,
        tuple(int(rows[name].sum()) for name in names),
        tuple(int(replayed.passed[rows[name]].sum()) for name in names),
    )


def _mean_interval(values: NDArray[Any]) -> tuple[float, float, float]:
    """Mean and 95 % interval of a few `values` (n,)."""
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return mean, -math.inf, math.inf
    from scipy.special import stdtrit

    error = float(values.std(ddof=1)) / math.sqrt(count) * float(stdtrit(count - 1, 0.975))
    return mean, mean - error, mean + error


def _mean(values: Sequence[int]) -> str:
    return f"{np.mean(values):,.1f} ({min(values):,} to {max(values):,})"


def _branchless(run: Run) -> Any:
    """`run` for callers that may name branches, and name none here."""

    def plain(
        inputs: NDArray[np.float64], seeds: NDArray[np.uint64], *, branches: Mapping[str, Any] | None = None
    ) -> Any:
        assert branches is None
        return run(inputs, seeds)

    return plain
