"""Fits a monitor to campaigns, tests it on lineages it has not seen, and calibrates its alarm."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz.analysis.monitor_episodes import (
    Episodes,
    Lineages,
    MonitorCases,
    crash_cases,
    joined,
    mutant_cases,
    near_misses,
    random_cases,
    recorded,
)
from policyfuzz.analysis.monitor_evaluation import (
    LEAST_LINEAGES,
    Threshold,
    calibrated,
    counted,
    episode_scores,
    first_alarms,
    frame_scores,
    lineage_auc,
    roc_curve,
    warnings_of,
)
from policyfuzz.analysis.monitor_fitting import DENSITY, METHODS, Examples, fit_detector
from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.target import Run, Target
from policyfuzz.monitors.detectors import Detector
from policyfuzz.monitors.monitor import (
    ACTIVATIONS,
    INPUTS,
    OBSERVATIONS,
    Monitor,
    MonitorError,
    MonitorFacts,
)
from policyfuzz.store.monitor_record import (
    Auc,
    Count,
    CrashWarnings,
    Curve,
    LeadAuc,
    MethodRecord,
    MonitorRecord,
)
from policyfuzz.store.reader import CampaignReader

#: Added to seeds, so that neither campaigns nor comparisons have drawn the same episodes, nor fit and test.
_FIT_SEEDS, _TEST_SEEDS = 3 * 2**64, 5 * 2**64
#: Of the lineages, how many of five are held out.
_HELD_OUT, _OF = 2, 5
#: Parts that the training lines are split into, to choose method and input inside the training part.
_INNER_PARTS = 3
#: Steps before a crash for which AUCs are given, beside the lead that was asked for.
_LEADS = (1, 5, 10, 20)
#: Nominal episodes for the threshold, and as many to see what it comes to, at most. Further draws are only
#: looked through for crashes, which is quicker.
_CALIBRATION = 2500
#: Numbers of recorded frames in memory, at most, and the shortest list of episodes for which that holds.
_MOST_NUMBERS, _LEAST_EPISODES = 50_000_000, 60

Candidate = tuple[str, str]  #: method and input
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """What to fit, and how much to run for it."""

    method: str | None = None  #: to store; None for the best inside the training part
    input: str | None = None  #: to store; None for the best inside the training part
    lead: int = 5  #: steps before a crash at which an alarm is in time
    window: int = 20  #: steps before a crash that count as abnormal
    wanted_rate: float = 0.01  #: false alarms per nominal episode
    episodes: int = 400  #: crashes, near-misses and nominal episodes each, at most
    draws: int | None = None  #: random episodes; None for 20 times what the target samples at first
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in (("method", METHODS), ("input", INPUTS)):
            value = getattr(self, name)
            if value is not None and value not in known:
                raise unknown_name(name, value, known)
        if min(self.lead, self.window) < 1 or self.episodes < 20 or self.seed < 0:
            raise UsageError(
                f"lead is {self.lead}, window {self.window}, episodes {self.episodes} and seed {self.seed}",
                "expected 1 or more steps, 20 or more episodes and a seed from 0",
            )
        if not 0 < self.wanted_rate < 1:
            raise UsageError(f"the rate of false alarms is {self.wanted_rate:g}, expected 0 to 1")
        if self.draws is not None and self.draws < 100:
            raise UsageError(f"draws is {self.draws}, expected 100 or more")


@dataclass(frozen=True, slots=True)
class Material:
    """All episodes that a study is about."""

    crashes: Episodes
    near_misses: Episodes
    nominal: Episodes
    rest: MonitorCases  #: further random draws, of which nothing is known yet
    draws: int
    notes: tuple[str, ...] = ()
    lineages: Lineages = field(default_factory=Lineages)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Observations, and activations if there are any."""
        return tuple(name for name in INPUTS if name in self.crashes.frames)

    def part(self, is_train: Callable[[Episodes], NDArray[np.bool_]], window: int) -> Examples:
        """The episodes for which `is_train` holds."""
        crashes, near, nominal = (
            one[is_train(one)] for one in (self.crashes, self.near_misses, self.nominal)
        )
        return Examples(crashes, near, nominal, window)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A monitor, what it and all others are worth, and the detectors of all others."""

    monitor: Monitor
    record: MonitorRecord
    detectors: dict[Candidate, Detector]


def fit_monitor_to(
    target: Target,
    campaigns: Sequence[CampaignReader],
    run: Run,
    settings: MonitorSettings,
    tell: Tell = lambda _what: None,
) -> Fitted:
    """A monitor fitted to a part of the lineages in `campaigns`, and what it shows on the others."""
    extras.load("sklearn", "analysis")  # before any episode is run; all methods are fitted
    rng = np.random.default_rng([settings.seed, 1])
    material = gathered_for_fit(target, campaigns, run, settings, rng, tell)
    held_out = held_out_lineages(material, rng)
    training = material.part(lambda one: ~np.isin(one.lineages, held_out), settings.window)
    testing = material.part(lambda one: np.isin(one.lineages, held_out), settings.window)
    _check_both(training.crashes, training.nominal)
    candidates = [(method, given) for given in material.inputs for method in METHODS]
    _check_choice(settings, material)
    tell("choosing inside the training part")
    selection = _selection(training, candidates, settings.lead, rng, tell)
    lineages = len(np.unique(material.crashes.lineages))
    chosen = _chosen(selection, settings, lineages)
    detectors: dict[Candidate, Detector] = {}
    for method, given in candidates:
        tell(f"fitting {method} to {given}")
        detectors[method, given] = fit_detector(method, given, training, rng)
    methods, thresholds = _examined(target, run, detectors, selection, testing, material, settings, rng, tell)
    method, given = chosen
    threshold = thresholds[chosen]
    facts = MonitorFacts(
        method,
        given,
        target.name,
        target.policy_name,
        target.policy_sha256,
        threshold.value,
        settings.wanted_rate,
        threshold.calibration.of,
        settings.window,
        len(np.unique(training.crashes.lineages)),
    )
    known = np.concatenate([training.crashes.lineages, training.near_misses.lineages])
    monitor = Monitor(facts, detectors[chosen], material.lineages.all_names(known))
    record = _record("fit", target, campaigns, chosen, methods, testing, material, settings)
    record = replace(record, fitted_lineages=facts.crash_lineages)
    if lineages < LEAST_LINEAGES:
        record = _without_auc(record, lineages, campaigns)
    return Fitted(monitor, _with_promise(record, threshold), detectors)


def evaluate_monitor_on(
    monitor: Monitor,
    target: Target,
    campaigns: Sequence[CampaignReader],
    run: Run,
    settings: MonitorSettings,
    tell: Tell = lambda _what: None,
) -> MonitorRecord:
    """What `monitor` shows on the crashes of `campaigns`, and on random episodes, with its own threshold."""
    facts = monitor.facts
    if facts.policy_sha256 != target.policy_sha256 or facts.target != target.name:
        raise MonitorError(
            f"the monitor was fitted to {facts.target} with policy {facts.policy}, and the campaign is of"
            f" {target.name} with policy {target.policy_name}",
            "give campaigns of the same target and policy, or fit another monitor",
        )
    settings = replace(settings, wanted_rate=facts.wanted_rate, window=facts.window)
    rng = np.random.default_rng([settings.seed, 2])
    material = _gathered(target, campaigns, run, settings, _TEST_SEEDS + settings.seed, rng, tell)
    if facts.input not in material.inputs:
        raise MonitorError(f"the policy shows no {facts.input} any more: {material.crashes.why_none}")
    if material.crashes.frames[facts.input].shape[1] != monitor.detector.width:
        raise MonitorError(f"the monitor takes {monitor.detector.width} numbers, and there are others")
    known = material.lineages.all_names(monitor.lineages)
    testing = material.part(lambda one: ~np.isin(one.lineages, known), facts.window)
    chosen = (facts.method, facts.input)
    threshold = Threshold(facts.threshold, Count(0, facts.calibration_episodes), True)
    methods, _ = _examined(
        target, run, {chosen: monitor.detector}, {}, testing, material, settings, rng, tell, threshold
    )
    record = _record("test", target, campaigns, chosen, methods, testing, material, settings)
    record = replace(record, fitted_lineages=facts.crash_lineages)
    names = np.concatenate([material.crashes.lineages, material.near_misses.lineages])
    left_out = len(np.intersect1d(names, known))
    if left_out:
        note = f"{_lineages(left_out)} left out: the monitor was fitted to crashes or near-misses of these"
        record = replace(record, notes=(*record.notes, note))
    if record.lineages < LEAST_LINEAGES:
        record = _without_auc(record, record.lineages, campaigns)
    return record


def gathered_for_fit(
    target: Target,
    campaigns: Sequence[CampaignReader],
    run: Run,
    settings: MonitorSettings,
    rng: np.random.Generator | None = None,
    tell: Tell = lambda _what: None,
) -> Material:
    """The episodes that a monitor is fitted to and tested on, with random ones of their own."""
    rng = rng or np.random.default_rng([settings.seed, 1])
    return _gathered(target, campaigns, run, settings, _FIT_SEEDS + settings.seed, rng, tell)


def held_out_lineages(material: Material, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Lines that are not fitted to: two fifths of those with crashes, alike in size, and of others."""
    names, counts = np.unique(material.crashes.lineages, return_counts=True)
    ordered = names[np.lexsort((rng.random(len(names)), -counts))]
    without = np.setdiff1d(np.concatenate([material.near_misses.lineages, material.nominal.lineages]), names)
    chosen = [_some_of(part, rng) for part in (ordered, rng.permutation(without))]
    return np.concatenate(chosen).astype(np.uint64)


def _some_of(names: NDArray[np.uint64], rng: np.random.Generator) -> NDArray[np.uint64]:
    """Two at random of every five in their order."""
    blocks = [names[start : start + _OF] for start in range(0, len(names), _OF)]
    picks = [rng.permutation(len(block))[: max(1, round(len(block) * _HELD_OUT / _OF))] for block in blocks]
    if len(names) == 1:
        return names[:0]  # all that there is to fit to
    return np.concatenate([names[:0], *(block[pick] for block, pick in zip(blocks, picks, strict=True))])


def _gathered(
    target: Target,
    campaigns: Sequence[CampaignReader],
    run: Run,
    settings: MonitorSettings,
    seed: int,
    rng: np.random.Generator,
    tell: Tell,
) -> Material:
    lineages = Lineages.of(campaigns)
    cases = crash_cases(campaigns, lineages, settings.episodes, rng)
    if not len(cases):
        raise MonitorError(
            f"no confirmed findings in {', '.join(str(one.folder) for one in campaigns)}",
            "a monitor is fitted to crashes: run a longer campaign, or give several",
        )
    draws = settings.draws or 20 * target.samples
    drawn = random_cases(target, draws, seed)
    nominal_count = min(settings.episodes, draws // 4)
    tell("running nominal episodes")
    nominal = joined(list(recorded(target, drawn[:nominal_count])))
    most = _affordable(nominal, settings.episodes)
    nominal = nominal[(nominal.crash_steps < 0) & (np.arange(len(nominal)) < most)]
    tell("running findings")
    crashes = joined(list(recorded(target, cases[:most])))
    crashes = crashes[crashes.crash_steps >= 0]
    tell("looking for near-misses")
    mutants = mutant_cases(campaigns, lineages, most * 4, rng)
    near = near_misses(target, run, mutants, nominal.margins, most)
    nearly = joined(list(recorded(target, near))) if len(near) else crashes[np.zeros(len(crashes), np.bool_)]
    notes = () if len(near) else ("no near-misses: the search kept no mutants that came near a crash",)
    _check_both(crashes, nominal)
    return Material(crashes, nearly, nominal, drawn[nominal_count:], draws, notes, lineages)


def _check_both(crashes: Episodes, nominal: Episodes) -> None:
    late = int((crashes.crash_steps > 0).sum())
    if not late or not len(nominal):
        raise MonitorError(
            f"{late} findings crash after a decision, and {len(nominal)} random episodes pass",
            "a monitor needs both",
        )


def _affordable(sample: Episodes, wanted: int) -> int:
    """Episodes of which all frames fit into memory."""
    numbers = sum(array.size for array in sample.frames.values()) / max(1, len(sample))
    return min(wanted, max(_LEAST_EPISODES, int(_MOST_NUMBERS / max(numbers, 1))))


def _check_choice(settings: MonitorSettings, material: Material) -> None:
    if settings.input == ACTIVATIONS and ACTIVATIONS not in material.inputs:
        raise MonitorError(
            f"the policy shows no activations: {material.crashes.why_none}", "fit to observations"
        )


def _selection(
    training: Examples,
    candidates: Sequence[Candidate],
    lead: int,
    rng: np.random.Generator,
    tell: Tell,
) -> dict[Candidate, Auc]:
    """How well each candidate tells crashes from near-misses of lines that it was not fitted to.

    Lines of the training part only; nothing if they are too few.
    """
    names = np.unique(training.crashes.lineages)
    if len(names) < _INNER_PARTS:
        return {}
    parts = inner_parts(training, rng)
    sets = (training.crashes, training.near_misses, training.nominal)
    wins: dict[Candidate, list[float]] = {one: [] for one in candidates}
    for number, part in enumerate(parts, 1):
        tried = [np.isin(one.lineages, part) for one in sets]
        others = [one[~mask] for one, mask in zip(sets, tried, strict=True)]
        crashes, near, nominal = (one[mask] for one, mask in zip(sets, tried, strict=True))
        passing = near if len(near) else nominal
        if not len(crashes) or not len(passing) or not (others[0].crash_steps > 0).any():
            continue
        examples = Examples(others[0], others[1], others[2], training.window)
        for method, given in candidates:
            tell(f"choosing inside the training part, {number} of {len(parts)}: {method} on {given}")
            detector = fit_detector(method, given, examples, rng)
            high, low = (
                episode_scores(frame_scores(detector, given, one), one, lead) for one in (crashes, passing)
            )
            for name in np.unique(crashes.lineages):
                line = crashes.lineages == name
                wins[method, given].append(lineage_auc(high[line], crashes.lineages[line], low, rng).value)
    return {one: _mean_of(values) for one, values in wins.items() if values}


def _mean_of(values: Sequence[float]) -> Auc:
    """The mean over lineages, and one standard error to both sides."""
    mean, error = float(np.mean(values)), float(np.std(values) / np.sqrt(len(values)))
    return Auc(mean, mean - error, mean + error)


def inner_parts(training: Examples, rng: np.random.Generator) -> list[NDArray[np.uint64]]:
    """The lines of the training part in a few parts, those with crashes shared out evenly."""
    with_crashes = rng.permutation(np.unique(training.crashes.lineages))
    others = np.setdiff1d(
        np.concatenate([training.near_misses.lineages, training.nominal.lineages]), with_crashes
    )
    others = rng.permutation(others)
    return [
        np.concatenate([with_crashes[n::_INNER_PARTS], others[n::_INNER_PARTS]]) for n in range(_INNER_PARTS)
    ]


def _chosen(selection: dict[Candidate, Auc], settings: MonitorSettings, lineages: int) -> Candidate:
    """What is stored. With too few lines to choose by, the density, which needs no crashes.

    Observations win where activations are no better than by chance: they need nothing of the policy, and many
    policies give activations in a second pass only.
    """
    fits = {
        one: auc
        for one, auc in selection.items()
        if settings.method in (None, one[0]) and settings.input in (None, one[1])
    }
    if lineages < LEAST_LINEAGES or not fits:
        return settings.method or DENSITY, settings.input or OBSERVATIONS
    best = max(fits, key=lambda one: fits[one].value)
    seen = {one: auc for one, auc in fits.items() if one[1] == OBSERVATIONS}
    cheap = max(seen, key=lambda one: seen[one].value, default=best)
    return cheap if fits[cheap].value >= fits[best].low else best


@dataclass(slots=True)
class _Tally:
    """What one detector scores on random episodes, gathered batch by batch."""

    calibration: list[NDArray[np.float64]] = field(default_factory=list)  #: scores of nominal episodes
    further: list[NDArray[np.float64]] = field(default_factory=list)  #: the same of further ones
    crashes: list[NDArray[np.float64]] = field(default_factory=list)  #: frame scores of random crashes


def _examined(
    target: Target,
    run: Run,
    detectors: dict[Candidate, Detector],
    selection: dict[Candidate, Auc],
    testing: Examples,
    material: Material,
    settings: MonitorSettings,
    rng: np.random.Generator,
    tell: Tell,
    threshold: Threshold | None = None,
) -> tuple[list[MethodRecord], dict[Candidate, Threshold]]:
    """All that is to be said about each of `detectors`, and their thresholds, calibrated if none is given."""
    tallies = {one: _Tally() for one in detectors}
    crashes = _tally_random(target, run, detectors, material.rest, tallies, threshold is None, tell)
    records, thresholds = [], {}
    for candidate, detector in detectors.items():
        tally = tallies[candidate]
        known = np.concatenate([np.empty(0), *tally.calibration])
        level = threshold or calibrated(known, settings.wanted_rate)
        thresholds[candidate] = level
        further = np.concatenate([np.empty(0), *tally.further])
        random_scores = np.concatenate([np.empty(0), *tally.crashes])
        scores = {
            name: frame_scores(detector, candidate[1], one)
            for name, one in (
                ("crashes", testing.crashes),
                ("near", testing.near_misses),
                ("nominal", testing.nominal),
            )
        }
        near = episode_scores(scores["near"], testing.near_misses)
        records.append(
            MethodRecord(
                *candidate,
                selection.get(candidate, Auc()).value,
                _frames_auc(scores, testing, rng),
                _lead_aucs(scores, testing, settings.lead, rng),
                _curves(scores, testing, settings.lead),
                level.value,
                level.calibration,
                counted(int((further > level.value).sum()), len(further)),
                counted(int((near > level.value).sum()), len(near)),
                _warned(scores["crashes"], testing.crashes, level.value, settings.lead),
                _warned(random_scores, crashes, level.value, settings.lead),
            )
        )
    return records, thresholds


def _tally_random(
    target: Target,
    run: Run,
    detectors: dict[Candidate, Detector],
    cases: MonitorCases,
    tallies: dict[Candidate, _Tally],
    is_calibrated: bool,
    tell: Tell,
) -> Episodes | None:
    """Fill `tallies` from random episodes: nominal ones in turn for calibration and for what it comes to.

    Returns the crashes among them, and among further draws.
    """
    crashed: list[Episodes] = []
    count = (2 if is_calibrated else 1) * _CALIBRATION
    size = min(target.batch_size, max(1, min(count, len(cases)) // 4))  # some for each of the two
    for number, start in enumerate(range(0, min(count, len(cases)), size)):
        tell(f"running random episodes, {start:,} of {len(cases):,}")
        some = cases[: min(count, len(cases))][start : start + size]
        for episodes in recorded(target, some):
            is_crash = episodes.crash_steps >= 0
            passing = episodes[~is_crash]
            crashed.append(episodes[is_crash])
            for candidate, detector in detectors.items():
                tally, given = tallies[candidate], candidate[1]
                best = episode_scores(frame_scores(detector, given, passing), passing)
                (tally.calibration if is_calibrated and number % 2 == 0 else tally.further).append(best)
    for start in range(min(count, len(cases)), len(cases), target.batch_size):
        tell(f"looking for crashes among random episodes, {start:,} of {len(cases):,}")
        some = cases[start : start + target.batch_size]
        runs = run(some.inputs, some.seeds)
        if runs.crashed.any():
            crashed += recorded(target, some[runs.crashed])
    crashes = joined(crashed) if crashed else None
    if crashes is None or not len(crashes):
        return None
    for candidate, detector in detectors.items():
        tallies[candidate].crashes.append(frame_scores(detector, candidate[1], crashes))
    return crashes


def _warned(
    scores: NDArray[np.float64], crashes: Episodes | None, threshold: float, lead: int
) -> CrashWarnings:
    if crashes is None:
        none = np.empty(0, np.int64)
        return warnings_of(none, none, none, lead)
    alarms = first_alarms(scores, crashes, threshold)
    return warnings_of(alarms, crashes.crash_steps, crashes.last_chances, lead)


def _frames_auc(scores: dict[str, NDArray[np.float64]], testing: Examples, rng: np.random.Generator) -> Auc:
    """Of single frames, as the paper counts: those within the window against all of near-misses."""
    is_near = testing.crashes.leads <= testing.window
    lines = testing.crashes.lineages[testing.crashes.rows[is_near]]
    return lineage_auc(scores["crashes"][is_near], lines, scores["near"], rng)


def _lead_aucs(
    scores: dict[str, NDArray[np.float64]], testing: Examples, lead: int, rng: np.random.Generator
) -> tuple[LeadAuc, ...]:
    near = episode_scores(scores["near"], testing.near_misses)
    nominal = episode_scores(scores["nominal"], testing.nominal)
    found = []
    for steps in sorted({lead, *_LEADS}):
        crashes = episode_scores(scores["crashes"], testing.crashes, steps)
        lines = testing.crashes.lineages
        found.append(
            LeadAuc(steps, lineage_auc(crashes, lines, near, rng), lineage_auc(crashes, lines, nominal, rng))
        )
    return tuple(found)


def _curves(scores: dict[str, NDArray[np.float64]], testing: Examples, lead: int) -> tuple[Curve, ...]:
    crashes = episode_scores(scores["crashes"], testing.crashes, lead)
    pairs = (
        ("near-miss", episode_scores(scores["near"], testing.near_misses)),
        ("nominal", episode_scores(scores["nominal"], testing.nominal)),
    )
    return tuple(
        roc_curve(name, crashes, testing.crashes.lineages, passing)
        for name, passing in pairs
        if len(passing) and len(crashes)
    )


def _record(
    what: str,
    target: Target,
    campaigns: Sequence[CampaignReader],
    chosen: Candidate,
    methods: Sequence[MethodRecord],
    testing: Examples,
    material: Material,
    settings: MonitorSettings,
) -> MonitorRecord:
    return MonitorRecord(
        what,
        target.name,
        target.policy_name,
        tuple(str(one.folder) for one in campaigns),
        len(np.unique(testing.crashes.lineages)),
        0,
        len(testing.crashes),
        len(testing.near_misses),
        len(testing.nominal),
        len(material.rest),
        settings.window,
        settings.lead,
        settings.wanted_rate,
        *chosen,
        tuple(methods),
        why_no_activations=material.crashes.why_none,
        notes=material.notes,
    )


def _without_auc(record: MonitorRecord, lineages: int, campaigns: Sequence[CampaignReader]) -> MonitorRecord:
    """`record` without numbers that mean nothing, and how to get more lineages."""
    more = (
        "Get more with a longer campaign (policyfuzz fuzz"
        f" {record.target} -o {campaigns[0].folder} --resume --max-execs N), and with further seeds (-s 1,"
        " -s 2, ...), whose folders you give together"
    )
    if record.what == "test":
        more = "Test on campaigns with other seeds, which the monitor was not fitted to, several together"
    why = (
        f"{_lineages(lineages)}, expected {LEAST_LINEAGES} or more: findings of one lineage are"
        f" near-clones, and below that an AUC means nothing. {more}"
    )
    plain = [replace(one, selection=np.nan, frames=Auc(), leads=(), curves=()) for one in record.methods]
    return replace(record, methods=tuple(plain), why_no_auc=why)


def _lineages(count: int) -> str:
    return f"{count:,} lineage{'s' * (count != 1)}"


def _with_promise(record: MonitorRecord, threshold: Threshold) -> MonitorRecord:
    if threshold.is_promised:
        return record
    note = (
        f"{threshold.calibration.of:,} nominal episodes are too few to promise {record.wanted_rate:.3g} false"
        " alarms per episode: the threshold is their largest score. Give more --draws"
    )
    return replace(record, notes=(*record.notes, note))
