"""Runtime monitors: what they are worth on lineages and random crashes not seen, and their cost."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.campaigns import finished_campaign
from benchmarks.measurement import Measurement, best_seconds, progress, ratio_table
from policyfuzz.analysis.decisions import record_inside
from policyfuzz.analysis.monitor_episodes import random_cases
from policyfuzz.analysis.monitor_study import Fitted, MonitorSettings, fit_monitor_to
from policyfuzz.api.monitor import draw_monitor, save_fitted
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.core.activations import act_and_activations, activations_of, flattened
from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.settings import CampaignOptions
from policyfuzz.core.target import Runner, Target
from policyfuzz.monitors.monitor import ACTIVATIONS, Monitor
from policyfuzz.report.monitor_text import monitor_lines
from policyfuzz.store.monitor_record import Auc, MethodRecord, MonitorRecord
from policyfuzz.store.reader import CampaignReader
from policyfuzz.targets.registry import load_target


@dataclass(frozen=True, slots=True)
class Budget:
    """What one target gets."""

    campaigns: int  #: of different seeds
    episodes: int  #: of each
    draws: int  #: random episodes


#: A small budget for each target, and a full one.
_BUDGETS = {
    "acasxu": (Budget(3, 20_000, 50_000), Budget(3, 60_000, 400_000)),
    "coopnavi": (Budget(4, 20_000, 10_000), Budget(6, 40_000, 100_000)),
    "bipedal": (Budget(3, 1_500, 1_500), Budget(5, 5_000, 6_000)),
    "driving-il": (Budget(3, 150, 150), Budget(8, 1_000, 1_000)),
}
_USUAL = ("acasxu", "coopnavi", "bipedal")
#: Against near-misses: least AUC for each target.
_LEAST_AUC = {"acasxu": 0.97, "coopnavi": 0.9, "bipedal": 0.9, "driving-il": 0.9}
#: Where crashes of random sampling are common enough to be asked for: share warned, and false alarms.
_RANDOM_GOAL, _WARNED, _FALSE_ALARMS = ("acasxu",), 0.95, 0.01
#: Share of the time of a policy call that a score may take.
_MOST_COST = 0.05
#: Episodes of each kind that monitors are fitted to where only their cost is asked for: the size of trees,
#: clusters and mixtures is the same as with many.
_COST_EPISODES = 100
#: Times that a call is measured, and observations of a batch.
_REPEATS, _BATCH = 3000, 1024


@click.command("monitor")
@click.option("--target", "names", multiple=True, help=f"May be repeated.  [default: {', '.join(_USUAL)}]")
@click.option("--full", is_flag=True, help="The full budget instead of a small one (hours).")
@click.option("--campaigns", "count", type=click.IntRange(min=1), help="Of each target.")
@click.option("--episodes", type=click.IntRange(min=10), help="Of each campaign.")
@click.option("--draws", type=click.IntRange(min=100), help="Random episodes.")
@click.option("--campaign", "folders", type=FOLDER, multiple=True, help="Take these, of the one --target.")
@click.option("-o", "--out", type=FOLDER, help="Folder for monitors, their records and pictures.")
@click.option("--seed", default=1, show_default=True, help="Of the first campaign.")
@click.option("--cost", "is_cost", is_flag=True, help="Only what a score costs: fits to few episodes.")
@as_json
def command(
    names: tuple[str, ...],
    full: bool,
    count: int | None,
    episodes: int | None,
    draws: int | None,
    folders: tuple[Path, ...],
    out: Path | None,
    seed: int,
    is_cost: bool,
    is_json: bool,
) -> int:
    """Fit monitors to campaigns, and compare them on crashes that they have not seen."""
    chosen = names or _USUAL
    for name in chosen:
        if name not in _BUDGETS:
            raise unknown_name("target of this benchmark", name, _BUDGETS)
    if folders and len(chosen) != 1:
        raise UsageError("--campaign needs exactly one --target")
    lines: list[Measurement] = []
    pages: list[str] = []
    with progress() as track:
        for name in track(chosen, "targets"):
            budget = _BUDGETS[name][full]
            budget = Budget(count or budget.campaigns, episodes or budget.episodes, draws or budget.draws)
            target = load_target(name)
            fitted = _fitted(target, budget, seed, folders, _COST_EPISODES if is_cost else None)
            if is_cost:
                lines += [replace(line, what=f"{name}: {line.what}") for line in cost(target, fitted)]
                continue
            if out is not None:
                save_fitted(fitted.monitor, fitted.record, out / f"{name}.npz")
                draw_monitor(fitted.record, out / f"{name}.png")
            pages += [*monitor_lines(fitted.record), ""]
            measured = [*_worth(name, fitted.record), *cost(target, fitted)]
            lines += [replace(line, what=f"{name}: {line.what}") for line in measured]
    if is_json:
        print_json([asdict(line) for line in lines])
    else:
        for line in pages:
            results().print(line, highlight=False, markup=False, soft_wrap=True)
        results().print(ratio_table(lines))
    return int(any(line.is_met is False for line in lines))


def _fitted(
    target: Target, budget: Budget, seed: int, folders: Sequence[Path], episodes: int | None
) -> Fitted:
    settings = MonitorSettings(draws=budget.draws)
    if episodes is not None:
        settings = MonitorSettings(draws=8 * episodes, episodes=episodes)
    with ExitStack() as stack:
        campaigns = [CampaignReader(folder) for folder in folders] or [
            stack.enter_context(
                finished_campaign(target, budget.episodes, CampaignOptions(seed=seed + number), force=True)
            )
            for number in range(budget.campaigns)
        ]
        return fit_monitor_to(target, campaigns, Runner(target), settings)


def _worth(name: str, record: MonitorRecord) -> Iterator[Measurement]:
    chosen = record.chosen
    lineages = record.lineages + record.fitted_lineages
    yield Measurement("lineages with crashes", lineages, "", goal=">= 10", is_met=lineages >= 10)
    auc = _auc_of(chosen, record.lead)
    least = _LEAST_AUC[name]
    is_met = None if record.why_no_auc else auc.value >= least
    what = f"AUC against near-misses, {record.lead} steps ahead, stored ({chosen.method}, {chosen.input})"
    yield Measurement(what, auc.value, f"{auc.low:.3f} to {auc.high:.3f}", goal=f">= {least}", is_met=is_met)
    rate, warned = chosen.false_alarms, chosen.random.in_time
    is_goal = name in _RANDOM_GOAL
    yield Measurement(
        "realised false alarms per nominal episode",
        rate.count,
        "",
        f"of {rate.of:,}, 95 %: {rate.low:.2%} to {rate.high:.2%}",
        rate.rate,
        "<= 1 %" if is_goal else "",
        rate.rate <= _FALSE_ALARMS if is_goal else None,
    )
    yield Measurement(
        f"random crashes warned {record.lead} steps ahead or more",
        warned.count,
        "",
        f"of {warned.of:,}, 95 %: {warned.low:.0%} to {warned.high:.0%}",
        warned.rate if warned.of else None,
        ">= 95 %" if is_goal else "",
        warned.rate >= _WARNED if is_goal and warned.of else None,
    )


def _auc_of(one: MethodRecord, lead: int) -> Auc:
    return next((auc.near_miss for auc in one.leads if auc.lead == lead), Auc())


def cost(target: Target, fitted: Fitted) -> Iterator[Measurement]:
    """The time of a score as a share of that of a policy call: of one observation, and of one in a batch."""
    for rows in (1, _BATCH):
        policy, observations = target.policy(), _observations(target, rows)
        places = np.arange(rows)
        policy.begin(rows)
        has_activations = any(given == ACTIVATIONS for _, given in fitted.detectors)
        given_rows = {"observations": flattened(observations)}
        repeats = _REPEATS if rows == 1 else _REPEATS // 100
        call = best_seconds(lambda p=policy, o=observations, r=places: p.act(o, r), repeats)  # type: ignore[misc]
        label = "one observation" if rows == 1 else f"each of {rows:,}"
        yield Measurement(f"a policy call, {label}", call / rows * 1e6, "us")
        if has_activations:
            policy.begin(rows)
            given_rows[ACTIVATIONS] = activations_of(policy, observations, places).values
            both = best_seconds(
                lambda p=policy, o=observations, r=places: act_and_activations(p, o, r),  # type: ignore[misc]
                repeats,
            )
            yield Measurement(
                f"activations with the action instead of the action alone, {label}",
                (both - call) / rows * 1e6,
                "us",
                "a policy call",
                (both - call) / call,
            )
        for (method, given), detector in fitted.detectors.items():
            facts = replace(fitted.monitor.facts, method=method, input=given)
            monitor = Monitor(facts, detector)
            values = given_rows[given]
            single = values[0] if rows == 1 else values
            seconds = best_seconds(lambda m=monitor, v=single: m.score(v, v), repeats)  # type: ignore[misc]
            yield Measurement(
                f"score by {method} on {given}, {label}",
                seconds / rows * 1e6,
                "us",
                "a policy call",
                seconds / call,
                "< 0.05" if rows == 1 else "",
                seconds / call < _MOST_COST if rows == 1 else None,
            )


def _observations(target: Target, count: int) -> NDArray[np.float64]:
    """(count, ...) what the policy of `target` sees at first."""
    cases = random_cases(target, count, seed=0)
    simulator = target.simulator()
    if simulator.capacity is not None and simulator.capacity < count:
        inside = record_inside(target, cases.inputs[:8], cases.seeds[:8])
        shape = simulator.reset(cases.inputs[:1], cases.seeds[:1]).observations.shape[1:]
        rows = np.resize(inside.observations, (count, inside.observations.shape[1]))
        return np.asarray(rows.reshape(count, *shape))
    return np.asarray(simulator.reset(cases.inputs, cases.seeds).observations)
