"""How apart crashes are from other episodes inside a policy: in the plane, and as numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.analysis.episode_classes import Points, collect_points
from policyfuzz.analysis.projection import check_method, project
from policyfuzz.analysis.separation import Scores, chance, distances_of, judge, purity
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.target import Target
from policyfuzz.store.activations_file import (
    ACTIVATIONS,
    CLASSES,
    CRASH,
    MUTATED,
    NEAR_MISS,
    NORMAL,
    OBSERVATIONS,
    ActivationMap,
    ModeSeparation,
    Separation,
)
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.triage_file import Triage, triage_of
from policyfuzz.triage.campaign_triage import Tell
from policyfuzz.triage.modes import choose
from policyfuzz.triage.replay import check_safe_to_run, check_same_code

#: Which classes are told apart. The last is a control: noise on a random start changes hardly anything.
PAIRS = ((CRASH, NORMAL), (CRASH, MUTATED), (CRASH, NEAR_MISS), (MUTATED, NORMAL))
#: Other classes that the crashes of a mode are told from.
_MODE_NEGATIVES = (NORMAL, NEAR_MISS)
#: Digits that a picture needs.
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class MapSettings:
    """What to look at. The same settings give the same numbers."""

    method: str = "tsne"  #: how points come into the plane: tsne, umap or pca
    count: int = 300  #: episodes of each class, at most
    window: int = 10  #: decisions before the crash whose mean is a point
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("episodes", self.count, 2),
            ("window", self.window, 1),
            ("seed", self.seed, 0),
        ):
            if value < least:
                raise UsageError(f"{name} is {value}, expected {least} or more")


def map_activations(
    campaign: CampaignReader,
    target: Target,
    settings: MapSettings | None = None,
    tell: Tell = lambda _what, _done, _count: None,
) -> ActivationMap:
    """Compare crashes of `campaign` with near misses, random mutants and normal episodes inside the policy.

    Crashes are taken from all lineages in turn. Episodes run in this process.
    """
    settings = settings or MapSettings()
    check_method(settings.method)
    check_same_code(campaign, target)
    check_safe_to_run(campaign)
    findings = list(campaign.records(Finding, "findings", "status = ?", (CONFIRMED,)))
    if not findings:
        raise CampaignError(
            f"the campaign in {campaign.folder} has no confirmed findings",
            hint="there are no crashes to tell from normal episodes yet",
        )
    chosen, triage = choose(findings, settings.count), triage_of(campaign)
    modes = [0 if (mode := triage.mode_of(one.id)) is None else mode.number for one in chosen]
    points = collect_points(target, chosen, modes, settings.count, settings.window, settings.seed, tell)
    return map_points(
        points,
        settings,
        instance=campaign.about.get("instance", ""),
        target=target.name,
        policy=target.policy_name,
        findings=len(findings),
        mode_words=_mode_words(triage, modes),
    )


def map_points(
    points: Points,
    settings: MapSettings,
    *,
    instance: str = "",
    target: str = "",
    policy: str = "",
    findings: int = 0,
    mode_words: dict[str, str] | None = None,
) -> ActivationMap:
    """What `points` show, in the plane and as numbers, both of activations and of observations."""
    tables = {OBSERVATIONS: points.observations}
    if points.activations is not None:
        tables = {ACTIVATIONS: points.activations} | tables
    words = mode_words or {}
    separations: list[Separation] = []
    of_modes: list[ModeSeparation] = []
    for of, table in tables.items():
        for positive, negative in PAIRS:
            pair = _Pair.of(points, table, positive, negative, settings.seed)
            separations.append(_separation(pair, of, positive, negative, settings.seed))
            if positive == CRASH and negative in _MODE_NEGATIVES and pair.scores is not None:
                of_modes += _of_modes(pair, pair.scores, of, negative, words)
    shown = next(iter(tables))
    places, explained = project(tables[shown], settings.method, settings.seed)
    crashes = np.flatnonzero(points.modes > 0)
    pure = np.nan, np.nan
    if len(np.unique(points.modes[crashes])) > 1:
        pure = purity(tables[shown][crashes], points.modes[crashes], points.lineages[crashes])
    return ActivationMap(
        instance=instance,
        target=target,
        policy=policy,
        seed=settings.seed,
        method=settings.method,
        of=shown,
        why_none=points.why_none,
        width=tables[shown].shape[1],
        window=settings.window,
        findings=findings,
        explained=explained,
        xs=tuple(np.round(places[:, 0], _DIGITS).tolist()),
        ys=tuple(np.round(places[:, 1], _DIGITS).tolist()),
        classes=tuple(points.classes.tolist()),
        modes=tuple(points.modes.tolist()),
        mode_words=words,
        separations=tuple(separations),
        mode_separations=tuple(of_modes),
        mode_purity=pure[0],
        mode_chance=pure[1],
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """The m episodes of two classes."""

    distances: NDArray[np.float64]  #: (m, m)
    is_positive: NDArray[np.bool_]  #: (m,)
    lineages: NDArray[np.int64]  #: (m,)
    modes: NDArray[np.int64]  #: (m,)
    scores: Scores | None

    @classmethod
    def of(
        cls, points: Points, table: NDArray[np.float64], positive: str, negative: str, seed: int
    ) -> "_Pair":
        rows = points.rows(positive, negative)
        is_positive = points.classes[rows] == CLASSES.index(positive)
        distances, lineages = distances_of(table[rows]), points.lineages[rows]
        scores = judge(distances, is_positive, lineages, seed)
        return cls(distances, is_positive, lineages, points.modes[rows], scores)


def _separation(pair: _Pair, of: str, positive: str, negative: str, seed: int) -> Separation:
    lineages = len(np.unique(pair.lineages[pair.is_positive]))
    if pair.scores is None:
        nothing = np.nan, np.nan, np.nan, np.nan
        return Separation(of, positive, negative, *nothing, len(pair.lineages), lineages)
    low, high = pair.scores.interval(seed)
    shuffled = chance(pair.distances, pair.is_positive, pair.lineages, seed)
    area = pair.scores.area()
    return Separation(of, positive, negative, area, low, high, shuffled, len(pair.lineages), lineages)


def _of_modes(
    pair: _Pair, scores: Scores, of: str, negative: str, words: dict[str, str]
) -> list[ModeSeparation]:
    found = []
    for mode in np.unique(pair.modes[pair.modes > 0]).tolist():
        of_mode = pair.modes == mode
        lineages = len(np.unique(pair.lineages[of_mode]))
        said, area = words.get(str(mode), ""), scores.area(of_mode)
        found.append(ModeSeparation(of, mode, said, negative, area, int(of_mode.sum()), lineages))
    return found


def _mode_words(triage: Triage, modes: Sequence[int]) -> dict[str, str]:
    known = () if triage.modes is None else triage.modes.modes
    return {str(mode.number): mode.words or mode.kind for mode in known if mode.number in modes}
