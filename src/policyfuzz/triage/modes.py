"""Failure modes: findings that fail alike, how much of the failure probability is theirs, and in words."""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.core.inputs import SEED_END, InputSpace
from policyfuzz.core.intervals import exact_interval
from policyfuzz.core.target import Run, Target
from policyfuzz.search.algorithm import Validator
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.triage_records import Mode, Modes
from policyfuzz.triage.clusters import Grouping, PointSpace, group, nearest
from policyfuzz.triage.descriptors import Descriptors, PassingBand, describe
from policyfuzz.triage.mode_words import words_of

#: Episodes that are run together.
_AT_ONCE = 256
#: Streams of random numbers, apart from those of the search, which are 0 and 1.
_DRAWS, _NEIGHBOURS = 7_001, 7_002
#: Distance of near neighbours: root mean square per dimension of the unit cube. At ten times that hardly any
#: neighbour of an acasxu finding crashes, so it would tell none of them apart.
NEAR = 0.001
#: Tries for each near neighbour before fewer have to do.
_TRIES = 20

#: Called with the episodes that are done, and all there will be.
Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ModeSettings:
    """How much to run. The same settings give the same modes."""

    findings: int = 2000  #: that are run again at most; others join the mode of the most similar one
    draws: int = 1000  #: random inputs, for the band of passing episodes and for shares
    neighbours: int = 32  #: of each representative, for its robustness


@dataclass(frozen=True, slots=True)
class RandomDraws:
    """Independent random episodes that could be run."""

    passing: PassingBand | None  #: None if none passed
    crashes: Executions  #: those that crashed
    draws: int


def find_modes(
    target: Target,
    findings: Sequence[Finding],
    behaviours: Mapping[int, Sequence[float]],
    run: Run,
    *,
    seed: int,
    samples: int = 0,
    state_names: Sequence[str] = (),
    settings: ModeSettings | None = None,
    report: Report | None = None,
) -> Modes:
    """Group the confirmed ones of `findings`, in any order, by how they fail.

    `behaviours` are the stored descriptors by number of the finding (`behaviours_of`); `seed` is that of the
    campaign, whose random numbers are not used again, and `samples` the number of its random draws: findings
    without a parent are the crashes among them. All episodes go through `run`.
    """
    settings = settings or ModeSettings()
    confirmed = _sorted(one for one in findings if one.status == CONFIRMED)
    if not confirmed:
        return Modes((), is_stable=False, agreement=math.nan, findings=0, random_crashes=0, random_draws=0)
    chosen = choose(confirmed, settings.findings)
    progress = _Progress(report, len(chosen) + settings.draws)
    drawn = draw(target, run, seed, settings.draws, progress)
    executions = _run_all(run, _inputs(chosen), _seeds(chosen), progress)
    still = np.array([target.oracle.kinds[kind] if kind >= 0 else "" for kind in executions.verdicts.kinds])
    kept = np.flatnonzero(still == np.array([one.kind for one in chosen]))
    chosen, executions = [chosen[row] for row in kept.tolist()], executions[kept]
    if not chosen:
        reason = "no finding crashes as recorded: has the policy or the target changed?"
        return Modes((), False, math.nan, len(confirmed), 0, drawn.draws, reason)
    band = drawn.passing or PassingBand.of(executions)
    described = describe(executions, band)
    found = [
        _modes_of_kind(kind, chosen, described, confirmed, behaviours, target, drawn, band, state_names)
        for kind in sorted({one.kind for one in chosen})
    ]
    if samples:  # findings that were drawn at random are random crashes, too
        drawn_at_random = {one.id for one in confirmed if one.parent is None and one.origin is None}
        found = [one.with_random_crashes(drawn_at_random) for one in found]
    else:
        drawn_at_random = set()
    crashes = len(drawn.crashes) + len(drawn_at_random)
    modes = _ranked([mode for of_kind in found for mode in of_kind.modes], crashes)
    progress.add_later(len(modes) * settings.neighbours)
    numbers = {one.id: one for one in chosen}
    modes = [
        _with_robustness(mode, numbers[mode.representative], target, run, seed, settings.neighbours, progress)
        for mode in modes
    ]
    known = [one.grouping for one in found if not math.isnan(one.grouping.agreement)]
    return Modes(
        tuple(modes),
        # a kind with too few findings to tell says nothing about the others
        is_stable=any(one.grouping.is_stable for one in found)
        and all(one.grouping.is_stable or math.isnan(one.grouping.agreement) for one in found),
        agreement=min((one.agreement for one in known), default=math.nan),
        findings=len(confirmed),
        random_crashes=crashes,
        random_draws=drawn.draws + samples,
        draws=settings.draws,
        run_again=settings.findings,
        reason="; ".join(_reason(one, len(found)) for one in found if one.grouping.reason),
    )


def behaviours_of(campaign: CampaignReader, findings: Sequence[Finding]) -> dict[int, list[float]]:
    """The stored behaviour descriptors of `findings`, by their number, where there are any."""
    known = ((one.id, campaign.descriptor(one)) for one in findings)
    return {number: values for number, values in known if values is not None}


def choose(findings: Sequence[Finding], most: int) -> list[Finding]:
    """At most `most` of `findings`: of every kind and lineage in turn, distinct ones first.

    So no kind and no lineage is left out while there is room, and a large lineage does not crowd out others.
    """
    if len(findings) <= most:
        return list(findings)
    lines: dict[tuple[str, int], list[Finding]] = {}
    for one in sorted(findings, key=lambda one: (not one.is_distinct, zlib.crc32(one.input.tobytes()))):
        lines.setdefault((one.kind, _root(one)), []).append(one)
    turns = [(turn, line, one) for line, ones in lines.items() for turn, one in enumerate(ones)]
    turns.sort(key=lambda each: each[:2])
    return _sorted(one for _, _, one in turns[:most])


def draw(target: Target, run: Run, seed: int, count: int, report: Callable[[int], None]) -> RandomDraws:
    """Run `count` random episodes that no search has drawn."""
    rng = np.random.default_rng([seed, _DRAWS])
    space = target.inputs
    validator = Validator(space, target.solvable)
    _, inputs = validator.fill(count, lambda size: (np.zeros(size, np.int64), space.sample(rng, size)))
    seeds = rng.integers(0, SEED_END, count, dtype=np.uint64)
    executions = _run_all(run, inputs, seeds, report)
    passed = np.flatnonzero(executions.sound & ~executions.crashed)
    band = PassingBand.of(executions[passed]) if len(passed) else None
    crashed = np.flatnonzero(executions.sound & executions.crashed)
    return RandomDraws(band, executions[crashed], int(executions.sound.sum()))


@dataclass(frozen=True, slots=True)
class _OfKind:
    """Modes of one kind of crash."""

    kind: str
    grouping: Grouping
    modes: list[Mode]

    def with_random_crashes(self, numbers: set[int]) -> "_OfKind":
        """The same, where members of these `numbers` count as random crashes."""
        modes = [
            replace(one, random_crashes=one.random_crashes + len(numbers.intersection(one.members)))
            for one in self.modes
        ]
        return replace(self, modes=modes)


@dataclass(slots=True)
class _Progress:
    """Counts episodes, for a progress bar."""

    report: Report | None
    total: int
    done: int = 0

    def __call__(self, episodes: int) -> None:
        self.done += episodes
        if self.report is not None:
            self.report(self.done, self.total)

    def add_later(self, episodes: int) -> None:
        self.total += episodes


def _modes_of_kind(
    kind: str,
    chosen: Sequence[Finding],
    described: Descriptors,
    confirmed: Sequence[Finding],
    behaviours: Mapping[int, Sequence[float]],
    target: Target,
    drawn: RandomDraws,
    band: PassingBand,
    state_names: Sequence[str],
) -> _OfKind:
    rows = np.array([row for row, one in enumerate(chosen) if one.kind == kind])
    ones, mine = [chosen[row] for row in rows.tolist()], described[rows]
    crashes = _of_kind(drawn.crashes, target.oracle.kinds, kind)
    fresh = describe(crashes, band).states if len(crashes) else np.empty((0, *mine.states.shape[1:]))
    roots = np.array([_root(one) for one in ones])
    space = PointSpace.fit(mine.states, roots)
    points = space.points(mine.states)
    grouping = group(points, roots)
    labels = grouping.labels
    everyone = [one for one in confirmed if one.kind == kind]
    joined = _joined(everyone, ones, labels, behaviours, target.inputs)
    of_fresh = labels[nearest(space.points(fresh), points)]
    units = target.inputs.to_unit(_inputs(everyone))
    modes = []
    for label in range(int(labels.max()) + 1):
        inside = np.flatnonzero(labels == label)
        members = [one for one, its in zip(everyone, joined.tolist(), strict=True) if its == label]
        margins = [one.margin for one in members if not math.isnan(one.margin)]
        modes.append(
            Mode(
                number=0,
                kind=kind,
                representative=ones[int(inside[_medoid(points[inside])])].id,
                members=tuple(sorted(one.id for one in members)),
                roots=len({_root(one) for one in members}),
                severity=-min(margins) if margins else math.nan,
                words=words_of(
                    kind, members, mine, labels == label, state_names, target.inputs, units, joined == label
                ),
                random_crashes=int((of_fresh == label).sum()),
            )
        )
    return _OfKind(kind, grouping, modes)


def _joined(
    everyone: Sequence[Finding],
    chosen: Sequence[Finding],
    labels: NDArray[np.int64],
    behaviours: Mapping[int, Sequence[float]],
    space: InputSpace,
) -> NDArray[np.int64]:
    """(n,) mode of `everyone`; one that was not run again is like the nearest that was.

    Nearest in what the episode did, where that is stored, and in its input otherwise.
    """
    known = {one.id: label for one, label in zip(chosen, labels.tolist(), strict=True)}
    joined = np.array([known.get(one.id, -1) for one in everyone], np.int64)
    is_known = joined >= 0
    did = _table([behaviours.get(one.id, ()) for one in everyone])
    has = np.asarray(np.isfinite(did).all(axis=1))
    for places, usable in ((did, has), (space.to_unit(_inputs(everyone)), np.ones_like(has))):
        asked, sources = np.flatnonzero((joined < 0) & usable), np.flatnonzero(is_known & usable)
        if len(asked) and len(sources):
            joined[asked] = joined[sources[nearest(places[asked], places[sources])]]
    return joined


def _table(rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """(n, q) `rows` of the most frequent length; NaN for others."""
    lengths = [len(row) for row in rows]
    width = max(1, max(set(lengths), key=lambda length: (lengths.count(length), length)))
    return np.array([row if len(row) == width else [math.nan] * width for row in rows], np.float64)


def _ranked(modes: Sequence[Mode], crashes: int) -> list[Mode]:
    """`modes`, the worst first, with their numbers and shares."""

    def badness(mode: Mode) -> tuple[float, int, int]:
        return (
            math.inf if math.isnan(mode.severity) else -mode.severity,
            -len(mode.members),
            mode.members[0],
        )

    ranked = []
    for number, mode in enumerate(sorted(modes, key=badness), 1):
        if crashes:
            low, high = exact_interval(mode.random_crashes, crashes)
            mode = replace(mode, share=mode.random_crashes / crashes, share_low=low, share_high=high)
        ranked.append(replace(mode, number=number))
    return ranked


def _with_robustness(
    mode: Mode,
    finding: Finding,
    target: Target,
    run: Run,
    seed: int,
    count: int,
    report: Callable[[int], None],
) -> Mode:
    """`mode` with the share of near neighbours of its representative that crash."""
    rng = np.random.default_rng([seed, _NEIGHBOURS, zlib.crc32(finding.input.tobytes())])
    inputs = neighbours_of(finding.input, target, rng, count)
    if not len(inputs):
        return mode
    executions = run(inputs, np.full(len(inputs), finding.case_seed, np.uint64))
    report(len(inputs))
    sound = int((executions.sound | executions.crashed).sum())
    share = int(executions.crashed.sum()) / sound if sound else math.nan
    return replace(mode, robustness=share, neighbours=sound)


def neighbours_of(
    row: NDArray[np.float64], target: Target, rng: np.random.Generator, count: int
) -> NDArray[np.float64]:
    """Up to `count` valid, solvable inputs (n, d) at distance NEAR per dimension from `row` (d,).

    Where so small a step changes nothing, as between whole numbers, the input space's own noise does.
    """
    space, found = target.inputs, np.empty((0, len(row)))
    centre = space.to_unit(row[None])
    for _ in range(_TRIES):
        steps = rng.normal(size=(count, len(row)))
        steps *= NEAR * math.sqrt(len(row)) / np.linalg.norm(steps, axis=1, keepdims=True)
        inputs = space.from_unit(space.into_cube(centre + steps))
        same = np.flatnonzero((inputs == row).all(axis=1))
        if len(same):
            inputs[same] = space.perturb(np.repeat(row[None], len(same), axis=0), rng)
        found = np.concatenate([found, inputs[target.allows(inputs)]])[:count]
        if len(found) == count:
            break
    return found


def _reason(one: _OfKind, kinds: int) -> str:
    return one.grouping.reason if kinds == 1 else f"{one.kind}: {one.grouping.reason}"


def _medoid(points: NDArray[np.float64]) -> int:
    """The point with the least sum of distances from the others."""
    sums = np.array([np.sqrt(((points - one) ** 2).sum(axis=1)).sum() for one in points])
    return int(sums.argmin())


def _of_kind(executions: Executions, kinds: Sequence[str], kind: str) -> Executions:
    names = np.array([kinds[one] for one in executions.verdicts.kinds])
    return executions[np.flatnonzero(names == kind)]


def _run_all(
    run: Run, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], report: Callable[[int], None]
) -> Executions:
    def parts() -> Iterator[Executions]:
        for start in range(0, max(len(inputs), 1), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            yield run(inputs[some], seeds[some])
            report(len(inputs[some]))

    return concatenate(list(parts()))


def _sorted(findings: Iterator[Finding]) -> list[Finding]:
    """The same for any order of `findings`, and for any numbers that they have."""
    return sorted(findings, key=lambda one: (one.kind, one.input.tobytes(), one.case_seed, one.id))


def _root(finding: Finding) -> int:
    return -1 if finding.root is None else finding.root


def _inputs(findings: Sequence[Finding]) -> NDArray[np.float64]:
    return np.array([one.input for one in findings], np.float64)


def _seeds(findings: Sequence[Finding]) -> NDArray[np.uint64]:
    return np.array([one.case_seed for one in findings], np.uint64)
