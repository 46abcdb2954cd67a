"""What campaigns covered: reference behaviours, cells of states, and the area of a mixture, over episodes."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz.analysis.campaign_episodes import count_known, known_cases, repeat_campaign, run_cases
from policyfuzz.analysis.mixture_area import area_of, ellipses_of
from policyfuzz.analysis.visited import DIRECTIONS, Glimpse, Visited, Visitor, Yardstick
from policyfuzz.core.errors import UsageError
from policyfuzz.core.executions import Executions
from policyfuzz.core.target import Run, Target
from policyfuzz.execution.executor import ExecutorChoice
from policyfuzz.search.distinct import ALIKE_BEHAVIOUR
from policyfuzz.search.strategies import make_fuzzer
from policyfuzz.store.coverage_file import RANDOM, CampaignCoverage, Coverage, CoverageCurve, Ellipse
from policyfuzz.store.reader import CampaignReader
from policyfuzz.triage.campaign_triage import Tell
from policyfuzz.triage.replay import check_same_code

#: Random episodes that fix the units, and the fewest with which that makes sense.
_UNIT_EPISODES, _FEWEST_EPISODES = 1000, 20
#: Points of a curve.
_POINTS = 20
#: States and crashes of a campaign that a picture shows, and digits that it needs of them.
_SHOWN_STATES, _SHOWN_CRASHES, _DIGITS = 1500, 300, 4


@dataclass(frozen=True, slots=True)
class CoverageSettings:
    """How campaigns are compared. The same settings give the same numbers."""

    episodes: int | None = None  #: of each campaign; None for as many as the shortest has
    is_every_episode: bool = False  #: repeat the campaigns, and look at all of their episodes
    most: int = 10_000  #: episodes of each that are looked at, at most
    seed: int = 0
    radius: float = ALIKE_BEHAVIOUR  #: behaviours within this many standard deviations are alike
    cell: float = 0.5  #: side of a cell of states, in standard deviations

    def __post_init__(self) -> None:
        for name, value in (("episodes", self.episodes), ("most", self.most)):
            if value is not None and value < _FEWEST_EPISODES:
                raise UsageError(f"{name} is {value}, expected {_FEWEST_EPISODES} or more")
        for name, size in (("radius", self.radius), ("cell", self.cell)):
            if not 0 < size < np.inf:
                raise UsageError(f"{name} is {size:g}, expected a number above 0")
        if self.seed < 0:
            raise UsageError(f"seed is {self.seed}, expected 0 or more")


@dataclass(frozen=True, slots=True)
class Label:
    """What a campaign is called."""

    name: str
    group: str  #: of campaigns that differ in their seed alone
    instance: str = ""
    seed: int = 0


def cover_campaigns(
    campaigns: Sequence[CampaignReader],
    target: Target,
    executor: ExecutorChoice,
    settings: CoverageSettings | None = None,
    tell: Tell = lambda _what, _done, _count: None,
) -> Coverage:
    """Compare what `campaigns` on `target` covered within the same number of episodes.

    Random sampling is run beside them: it fixes all units, and its behaviours are part of the reference.
    """
    settings = settings or CoverageSettings()
    _check_named_once(campaigns)
    until = _common_episodes(campaigns, settings)
    for campaign in campaigns:
        _check_same_target(campaign, target)
    run = executor.make_runner(target)
    yardstick, random = _random_sampling(target, run, until, settings, tell)
    share = 1.0 if settings.is_every_episode else _share_looked_at(campaigns, until, settings.most)
    visits = []
    for campaign, label in zip(campaigns, labels_of(campaigns), strict=True):
        visitor = Visitor(yardstick)
        if settings.is_every_episode:
            known = _see_every_episode(campaign, target, executor, until, settings, visitor, label, tell)
        else:
            cases = known_cases(campaign, until, share, settings.seed)
            known, see = cases.known, _telling(visitor.see, label.name, len(cases.numbers), tell)
            run_cases(cases, run, target.batch_size, see)
        visits.append((label, visitor.visited(known)))
    compared = compare_visits(visits, random, until, settings)
    names = tuple(getattr(target.simulator(), "state_names", ()))
    return replace(
        compared,
        target=target.name,
        policy=target.policy_name,
        axes=tuple(yardstick.states.words(direction, names) for direction in range(2)),
        explained=tuple(yardstick.states.explained[:2].tolist()),
    )


def compare_visits(
    visits: Sequence[tuple[Label, Visited]], random: Visited, until: int, settings: CoverageSettings
) -> Coverage:
    """What was visited within `until` episodes, side by side; `random` is random sampling."""
    everything = [*visits, (Label(RANDOM, RANDOM), random)]
    points = np.concatenate([visited.descriptors for _, visited in everything])
    nearest = reference_behaviours(points, settings.radius)
    ends = np.cumsum([len(visited) for _, visited in everything])
    parts = np.split(nearest, ends[:-1])
    *campaigns, of_random = (
        _coverage_of(label, visited, part, until, settings)
        for (label, visited), part in zip(everything, parts, strict=True)
    )
    return Coverage(
        target="",
        policy="",
        seed=settings.seed,
        episodes=until,
        is_every_episode=settings.is_every_episode,
        most=settings.most,
        radius=settings.radius,
        cell=settings.cell,
        directions=DIRECTIONS,
        reference=int(nearest.max()) + 1,
        axes=("", ""),
        explained=(),
        random=of_random,
        campaigns=tuple(campaigns),
    )


def reference_behaviours(points: NDArray[np.float64], radius: float) -> NDArray[np.int64]:
    """(n,) number of the reference behaviour that each of `points` (n, q) is nearest to.

    Reference behaviours are some of the points, all farther than `radius` from each other, and every point is
    within it of one of them. Each is the farthest from all before it, so near-clones of a point never become
    further ones, however many there are.
    """
    points = points - points.mean(axis=0)
    sizes = (points**2).sum(axis=1)
    place = int(sizes.argmin())
    gaps, nearest = np.full(len(points), np.inf), np.zeros(len(points), np.int64)
    count = 0
    while gaps[place] > radius**2:
        # a matrix product is several times as fast as differences
        squared = np.maximum(sizes + sizes[place] - 2 * (points @ points[place]), 0.0)
        squared[place] = 0.0
        nearest[squared < gaps] = count
        np.minimum(gaps, squared, out=gaps)
        count += 1
        place = int(gaps.argmax())
    return nearest


def labels_of(campaigns: Sequence[CampaignReader]) -> list[Label]:
    """What to call `campaigns`: by folder, and in groups by strategy, or by folder if that is not enough."""
    names = [campaign.folder.resolve().name for campaign in campaigns]
    twice = Counter(names)
    names = [
        name if twice[name] == 1 else str(campaign.folder)
        for name, campaign in zip(names, campaigns, strict=True)
    ]
    settings = [replace(campaign.config, seed=0, policy=None) for campaign in campaigns]
    strategies = {
        one.strategy: [other for other in settings if other.strategy == one.strategy] for one in settings
    }
    return [
        Label(
            name,
            one.strategy if all(other == one for other in strategies[one.strategy]) else name,
            campaign.about.get("instance", ""),
            campaign.config.seed,
        )
        for name, one, campaign in zip(names, settings, campaigns, strict=True)
    ]


def _check_named_once(campaigns: Sequence[CampaignReader]) -> None:
    places = [campaign.folder.resolve() for campaign in campaigns]
    if twice := [place for place in places if places.count(place) > 1]:
        raise UsageError(f"the campaign in {twice[0]} is named twice", "name each campaign once")


def _common_episodes(campaigns: Sequence[CampaignReader], settings: CoverageSettings) -> int:
    if not campaigns:
        raise UsageError("no campaign was given", "name the folders of one or more")
    shortest = min(campaigns, key=lambda one: one.progress().executions)
    there = shortest.progress().executions
    wanted = settings.episodes or there
    if there < max(wanted, _FEWEST_EPISODES):
        raise UsageError(
            f"the campaign in {shortest.folder} has {there:,} episodes, expected"
            f" {max(wanted, _FEWEST_EPISODES):,} or more",
            "compare fewer episodes, leave that campaign out, or resume it",
        )
    return wanted


def _share_looked_at(campaigns: Sequence[CampaignReader], until: int, most: int) -> float:
    """The share of what each file knows that is looked at: the same for all, or they would not compare."""
    return min(1.0, most / max(max(count_known(campaign, until) for campaign in campaigns), 1))


def _check_same_target(campaign: CampaignReader, target: Target) -> None:
    config = campaign.config
    if (config.target, config.policy_sha256) != (target.name, target.policy_sha256):
        raise UsageError(
            f"the campaign in {campaign.folder} is on {config.target} with policy"
            f" {config.policy or 'of the target'}, another one than {target.name} with {target.policy_name}",
            "compare campaigns on one target and policy",
        )
    check_same_code(campaign, target)


def _random_sampling(
    target: Target, run: Run, until: int, settings: CoverageSettings, tell: Tell
) -> tuple[Yardstick, Visited]:
    """The units, and what as many random episodes visited as there are of each campaign."""
    places = _places_looked_at(until, settings)
    done, wanted = 0, len(places)
    parts: list[tuple[NDArray[np.int64], Glimpse]] = []
    visitor: Visitor | None = None
    failed = 0
    for numbers, executions in _random_episodes(target, run, places, settings.seed):
        done += len(numbers)
        tell(RANDOM, done, wanted)
        if visitor is not None:
            visitor.see(numbers, executions)
            continue
        could_be_run = executions.sound | executions.crashed
        failed += int(np.count_nonzero(~could_be_run))
        if could_be_run.any():
            parts.append((numbers[could_be_run], Glimpse.of(executions[could_be_run])))
        if done >= min(wanted, _UNIT_EPISODES):
            seen = sum(len(numbers) for numbers, _ in parts)
            if seen < _FEWEST_EPISODES:
                raise UsageError(
                    f"only {seen} of {done} random episodes of {target.name} could be run",
                    "policyfuzz check says what is wrong with the target",
                )
            visitor = Visitor(Yardstick.fit([glimpse for _, glimpse in parts]))
            for part in parts:
                visitor.remember(*part)
    assert visitor is not None  # there are enough episodes to fix the units
    visited = visitor.visited(until)
    return visitor.yardstick, replace(visited, failed=visited.failed + failed)


def _random_episodes(
    target: Target, run: Run, places: NDArray[np.int64], seed: int
) -> Iterator[tuple[NDArray[np.int64], Executions]]:
    """As many random episodes as there are `places` (m,); which of them are left out makes no difference."""
    fuzzer, done = make_fuzzer("random", target, seed=seed), 0
    while done < len(places):
        cases = fuzzer.ask(target.batch_size)[: len(places) - done]
        yield places[done : done + len(cases)], run(cases.inputs, cases.seeds)
        done += len(cases)


def _places_looked_at(until: int, settings: CoverageSettings) -> NDArray[np.int64]:
    """(m,) which of `until` episodes are looked at where all could be, from 1 and in order."""
    rng = np.random.default_rng(settings.seed)
    return np.sort(1 + rng.permutation(until)[: settings.most])


def _see_every_episode(
    campaign: CampaignReader,
    target: Target,
    executor: ExecutorChoice,
    until: int,
    settings: CoverageSettings,
    visitor: Visitor,
    label: Label,
    tell: Tell,
) -> int:
    """Repeat `campaign`, and let `visitor` see the same share of its episodes as of any other."""
    is_wanted = np.zeros(until + 1, np.bool_)
    is_wanted[_places_looked_at(until, settings)] = True

    def see(numbers: NDArray[np.int64], executions: Executions) -> None:
        tell(label.name, int(numbers[-1]), until)
        wanted = np.flatnonzero(is_wanted[np.minimum(numbers, until)] & (numbers <= until))
        if len(wanted):
            visitor.see(numbers[wanted], executions[wanted])

    repeat_campaign(campaign, target, executor, until, see)
    return until


def _telling(
    see: Callable[[NDArray[np.int64], Executions], None], what: str, count: int, tell: Tell
) -> Callable[[NDArray[np.int64], Executions], None]:
    done = 0

    def seen(numbers: NDArray[np.int64], executions: Executions) -> None:
        nonlocal done
        see(numbers, executions)
        done += len(numbers)
        tell(what, done, count)

    return seen


def _coverage_of(
    label: Label, visited: Visited, nearest: NDArray[np.int64], until: int, settings: CoverageSettings
) -> CampaignCoverage:
    times = np.unique(np.rint(np.linspace(until / _POINTS, until, _POINTS)).astype(np.int64))
    behaviour_times = visited.numbers[np.unique(nearest, return_index=True)[1]]
    places = np.floor(visited.states.reshape(-1, visited.states.shape[2]) / settings.cell).astype(np.int64)
    _, first = np.unique(places, axis=0, return_index=True)
    cell_times = visited.numbers[first // visited.states.shape[1]]
    areas, ellipses = [], list[Ellipse]()
    for time in times.tolist():
        rows = visited.states[: np.searchsorted(visited.numbers, time, side="right"), :, :2]
        ellipses = ellipses_of(rows.reshape(-1, 2), settings.seed)
        areas.append(area_of(ellipses))
    rng = np.random.default_rng(settings.seed)
    shown = _some(visited.states[:, :, :2].reshape(-1, 2), _SHOWN_STATES, rng)
    crashes = _some(visited.states[visited.crashed, -1, :2], _SHOWN_CRASHES, rng)
    return CampaignCoverage(
        name=label.name,
        group=label.group,
        instance=label.instance,
        seed=label.seed,
        known=visited.known,
        used=len(visited) + visited.failed,
        crashes=int(visited.crashed.sum()),
        failed=visited.failed,
        curve=CoverageCurve(
            tuple(times.tolist()),
            tuple(int((behaviour_times <= time).sum()) for time in times),
            tuple(int((cell_times <= time).sum()) for time in times),
            tuple(areas),
        ),
        ellipses=tuple(ellipses),
        xs=tuple(shown[:, 0].tolist()),
        ys=tuple(shown[:, 1].tolist()),
        crash_xs=tuple(crashes[:, 0].tolist()),
        crash_ys=tuple(crashes[:, 1].tolist()),
    )


def _some(points: NDArray[np.float64], most: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(m, 2) at most `most` of `points` (n, 2), rounded."""
    return np.round(points[np.sort(rng.permutation(len(points))[:most])], _DIGITS)
