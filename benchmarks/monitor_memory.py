"""Would a monitor of coopnavi work if it remembered? Its crash is the sixth contact, which nobody observes.

On the same lineages: the number of contacts so far, as the simulator knows it; boosting on observations with
scores that add up over the episode (of the last sum a part is kept, the score less a drift is added, and it
is never below zero; both numbers are chosen on lineages held out inside the training part); and boosting
that is told the number of contacts, or distances and closing speeds of all pairs, or both.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import combinations, product
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from policyfuzz.analysis.monitor_episodes import Episodes
from policyfuzz.analysis.monitor_evaluation import episode_scores, frame_scores, lineage_auc
from policyfuzz.analysis.monitor_fitting import BOOSTING, Examples, fit_detector
from policyfuzz.analysis.monitor_study import (
    Material,
    MonitorSettings,
    gathered_for_fit,
    held_out_lineages,
    inner_parts,
)
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.core.target import Runner
from policyfuzz.monitors.monitor import OBSERVATIONS
from policyfuzz.store.reader import CampaignReader
from policyfuzz.targets.coopnavi.physics import AGENTS, CONTACT, OBSERVED
from policyfuzz.targets.registry import load_target

#: Steps before the crash.
_LEADS = (1, 3, 5)
#: What a sum may keep, and the drift as a quantile of the scores of episodes that pass.
_KEPT, _DRIFTS = (0.6, 0.8, 1.0), (0.5, 0.75, 0.9, 0.97)
#: Random splits into lineages to fit to and held-out ones, over which numbers are averaged.
_SPLITS = 3
_COUNT, _PAIRS = "count", "pairs"

Memory = tuple[float, float]  #: what is kept, and the quantile that the drift is


@dataclass(frozen=True, slots=True)
class MemoryAuc:
    """How well one monitor tells crashes of held-out lineages from near-misses, mean over splits."""

    what: str
    lead: int
    auc: float


@click.command("monitor-memory")
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=FOLDER)
@click.option("--window", default=6, show_default=True, help="Steps before a crash that count as abnormal.")
@click.option("--episodes", default=400, show_default=True, help="Crashes, near-misses and nominal ones.")
@as_json
def command(folders: tuple[Path, ...], window: int, episodes: int, is_json: bool) -> int:
    """What counting and adding up would bring a monitor of the coopnavi campaigns DIR..."""
    target = load_target("coopnavi")
    settings = MonitorSettings(window=window, episodes=episodes, draws=10 * episodes)
    material = gathered_for_fit(target, [CampaignReader(one) for one in folders], Runner(target), settings)
    parts = (with_contacts(one) for one in (material.crashes, material.near_misses, material.nominal))
    crashes, near, nominal = parts
    found = list(measured(replace(material, crashes=crashes, near_misses=near, nominal=nominal), window))
    if is_json:
        print_json([asdict(one) for one in found])
    else:
        lineages = len(np.unique(crashes.lineages))
        heads = "".join(f"{lead:>8}" for lead in _LEADS)
        results().print(f"AUC against near-misses, {lineages} lineages, by steps before the crash")
        results().print(f"{'':<44}{heads}", highlight=False)
        for what in dict.fromkeys(one.what for one in found):
            cells = "".join(f"{one.auc:8.3f}" for one in found if one.what == what)
            results().print(f"{what:<44}{cells}", highlight=False)
    return 0


def with_contacts(episodes: Episodes) -> Episodes:
    """The same, with two more inputs: contacts so far, and distances and closing speeds of all pairs."""
    seen = episodes.frames[OBSERVATIONS].reshape(-1, AGENTS, OBSERVED)
    speeds, places = seen[:, :, :2], seen[:, :, 2:4]
    contacts, columns = np.zeros(len(seen)), []
    for one, other in combinations(range(AGENTS), 2):
        away, closing = places[:, one] - places[:, other], speeds[:, one] - speeds[:, other]
        distance = np.linalg.norm(away, axis=1)
        contacts += distance < CONTACT
        columns += [distance, (away * closing).sum(axis=1) / np.maximum(distance, 1e-9)]
    contacts[episodes.steps == 0] = 0  # the start is not counted
    total = np.cumsum(contacts)
    count = (total - total[episodes.starts[:-1]][episodes.rows])[:, None]
    pairs, observations = np.column_stack(columns), episodes.frames[OBSERVATIONS]
    frames = {
        OBSERVATIONS: observations,
        _COUNT: count,
        "observations and count": np.hstack([observations, count]),
        _PAIRS: pairs,
        "pairs and count": np.hstack([pairs, count]),
    }
    return replace(episodes, frames=frames)


def measured(material: Material, window: int) -> Iterator[MemoryAuc]:
    """All monitors at all leads."""
    found: dict[tuple[str, int], list[float]] = {}
    for split in range(_SPLITS):
        rng = np.random.default_rng(split)
        held_out = held_out_lineages(material, rng)
        training = material.part(lambda one, names=held_out: ~np.isin(one.lineages, names), window)  # type: ignore[misc]
        testing = material.part(lambda one, names=held_out: np.isin(one.lineages, names), window)  # type: ignore[misc]
        sets = testing.crashes, testing.near_misses
        scores = {"contacts so far": tuple(one.frames[_COUNT][:, 0] for one in sets)}
        for given in (OBSERVATIONS, "observations and count", _PAIRS, "pairs and count"):
            detector = fit_detector(BOOSTING, given, training, rng)
            plain = tuple(frame_scores(detector, given, one) for one in sets)
            scores[f"boosting on {given}"] = plain
            if given == OBSERVATIONS:
                memory = chosen_memory(training, rng)
                drift = _drift(frame_scores(detector, given, training.near_misses), memory)
                sums = (added_up(*pair, memory[0], drift) for pair in zip(plain, sets, strict=True))
                scores["the same, added up"] = tuple(sums)
        for what, (high, low) in scores.items():
            for lead in _LEADS:
                auc = _auc(high, low, testing, lead, rng)
                found.setdefault((what, lead), []).append(auc)
    for (what, lead), values in found.items():
        yield MemoryAuc(what, lead, float(np.mean(values)))


def chosen_memory(training: Examples, rng: np.random.Generator) -> Memory:
    """What is best five steps ahead on lineages held out inside `training`."""
    wins = dict.fromkeys(product(_KEPT, _DRIFTS), 0.0)
    for names in inner_parts(training, rng):
        others, tried = _part(training, names, is_in=False), _part(training, names, is_in=True)
        detector = fit_detector(BOOSTING, OBSERVATIONS, others, rng)
        known = frame_scores(detector, OBSERVATIONS, others.near_misses)
        high, low = (frame_scores(detector, OBSERVATIONS, one) for one in (tried.crashes, tried.near_misses))
        for memory in wins:
            drift = _drift(known, memory)
            both = (
                added_up(high, tried.crashes, memory[0], drift),
                added_up(low, tried.near_misses, memory[0], drift),
            )
            wins[memory] += _auc(*both, tried, max(_LEADS), rng)
    return max(wins, key=lambda memory: wins[memory])


def _part(examples: Examples, names: NDArray[np.uint64], is_in: bool) -> Examples:
    """The episodes of `examples` whose lineages are among `names`, or those whose are not."""
    sets = (examples.crashes, examples.near_misses, examples.nominal)
    crashes, near, nominal = (one[np.isin(one.lineages, names) == is_in] for one in sets)
    return Examples(crashes, near, nominal, examples.window)


def added_up(
    scores: NDArray[np.float64], episodes: Episodes, kept: float, drift: float
) -> NDArray[np.float64]:
    """(f,) the sum at each frame: what is `kept` of the last one and the score less `drift`, from 0 up."""
    sums, lengths = np.empty_like(scores), np.diff(episodes.starts)
    last = np.zeros(len(episodes))
    for step in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > step)
        places = episodes.starts[rows] + step
        last[rows] = np.maximum(0.0, kept * last[rows] + scores[places] - drift)
        sums[places] = last[rows]
    return sums


def _drift(scores: NDArray[np.float64], memory: Memory) -> float:
    return float(np.quantile(scores, memory[1]))


def _auc(
    high: NDArray[np.float64],
    low: NDArray[np.float64],
    episodes: Examples,
    lead: int,
    rng: np.random.Generator,
) -> float:
    crashes = episode_scores(high, episodes.crashes, lead)
    return lineage_auc(
        crashes, episodes.crashes.lineages, episode_scores(low, episodes.near_misses), rng
    ).value
