"""How many workers can a coordinator keep busy? Measures what it costs, then simulates thousands of workers.

python -m benchmarks coordinator-limit --plot docs/coordinator-limit.png --raw limit.json
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import click

from benchmarks.coordinator.costs import Cost, MessageCost, Shape, campaign_cost, message_cost
from benchmarks.coordinator.simulation import Costs, Outcome, Plan, simulate

#: Small, medium (`bipedal`: 300 steps of 24 numbers) and large episodes.
SHAPES = (Shape(100, 4, 4), Shape(300, 24, 8), Shape(1000, 30, 8))
MEDIUM = SHAPES[1]
#: Cases in a batch, as far as their states fit in memory.
BATCHES = (64, 256, 1024)
WORKERS = (1, 10, 100, 300, 1000, 2000, 4000)
#: Batch and window: as they are by default, and larger.
WINDOWS = ((64, 2), (256, 4), (256, 16), (1024, 4), (1024, 8), (4096, 4))
#: Workers that are really started to measure messages, as many as a small machine bears.
_REAL_WORKERS = 24
#: Times that all work in flight must have been renewed in a simulation.
_FEWEST_ROUNDS = 10


@click.command("coordinator-limit")
@click.option("--plot", type=click.Path(path_type=Path), help="SVG or PNG file for the figure.")
@click.option("--raw", type=click.Path(path_type=Path), help="JSON file for all numbers.")
@click.option("--virtual-seconds", type=float, default=30.0, show_default=True, help="Of each simulation.")
def command(plot: Path | None, raw: Path | None, virtual_seconds: float) -> None:
    """Measure what an episode costs the coordinator, simulate many workers, print tables in Markdown."""
    costs = [campaign_cost(1000, batch, shape) for shape in SHAPES for batch in BATCHES]
    costs += [campaign_cost(workers, 1024, SHAPES[0]) for workers in (10, 100, 4000)]
    costs += [campaign_cost(1000, 1024, shape, strategy="reward") for shape in SHAPES]
    _print_costs(costs)
    kinds = ["processes", *(["ray"] if find_spec("ray") else [])]
    messages = [_message(kind, shape) for kind in kinds for shape in SHAPES]
    _print_messages(messages)
    outcomes = {
        kind: [
            _simulated(
                Plan(workers, batch, window, varies=True), _charged(costs, messages, kind), virtual_seconds
            )
            for batch, window in WINDOWS
            for workers in WORKERS
        ]
        for kind in kinds
    }
    for kind, found in outcomes.items():
        _print_outcomes(kind, found)
    if plot is not None:
        _draw(outcomes, plot)
    if raw is not None:
        plain = {kind: [asdict(one) for one in found] for kind, found in outcomes.items()}
        numbers = {"costs": [asdict(one) for one in costs], "messages": [asdict(one) for one in messages]}
        raw.write_text(json.dumps({**numbers, "simulated": plain}, indent=1))


def _simulated(plan: Plan, costs: Costs, seconds: float) -> Outcome:
    return simulate(plan, costs, max(seconds, _FEWEST_ROUNDS * plan.batch * plan.window / plan.workers))


def _message(kind: str, shape: Shape) -> MessageCost:
    return message_cost(kind, _REAL_WORKERS, shape)


def _charged(costs: Sequence[Cost], messages: Sequence[MessageCost], kind: str) -> Costs:
    """What is charged for medium episodes; dispatching is in the message."""
    mine = next(one for one in costs if one.shape == MEDIUM and one.batch == BATCHES[-1])
    episode = mine.total - mine.dispatch
    message = next(one for one in messages if one.kind == kind and one.shape == MEDIUM)
    return Costs(episode / 1e6, message.coordinator / 1e6, message.bridge / 1e6)


def _print_costs(costs: Sequence[Cost]) -> None:
    parts = ("search", "density", "store", "dispatch", "other", "total")
    _print_row("strategy", "workers", "batch", "steps x state", *parts)
    _print_row(*["---"] * (4 + len(parts)))
    for cost in costs:
        values = (f"{getattr(cost, part):,.0f}" for part in parts)
        _print_row(cost.strategy, f"{cost.workers:,}", f"{cost.batch:,}", str(cost.shape), *values)
    click.echo("")


def _print_messages(messages: Sequence[MessageCost]) -> None:
    _print_row("through", "steps x state", "coordinator", "bridge")
    _print_row(*["---"] * 4)
    for one in messages:
        _print_row(one.kind, str(one.shape), f"{one.coordinator:,.0f} µs", f"{one.bridge:,.0f} µs")
    click.echo("")


def _print_outcomes(kind: str, outcomes: Sequence[Outcome]) -> None:
    _print_row(f"{kind}: batch, window", *(f"{workers:,}" for workers in WORKERS))
    _print_row(*["---"] * (1 + len(WORKERS)))
    for batch, window in WINDOWS:
        row = [one for one in outcomes if (one.plan.batch, one.plan.window) == (batch, window)]
        _print_row(f"{batch:,}, {window}", *(f"{one.utilisation:.0%}" for one in row))
    click.echo("")


def _print_row(*cells: str) -> None:
    click.echo(f"| {' | '.join(cells)} |")


def _draw(outcomes: dict[str, list[Outcome]], file: Path) -> None:
    """How busy workers are, over their number, for each batch and window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(outcomes), 3.4), layout="constrained")
    axes = figure.subplots(1, len(outcomes), sharey=True, squeeze=False)[0]
    for axis, (kind, found) in zip(axes, outcomes.items(), strict=True):
        for (batch, window), marker in zip(WINDOWS, "osv^D*", strict=True):
            row = [one for one in found if (one.plan.batch, one.plan.window) == (batch, window)]
            shares = [100 * one.utilisation for one in row]
            axis.plot(WORKERS, shares, marker=marker, markersize=4, label=f"{batch:,} x {window}")
        axis.set(xscale="log", xlim=(8, 5000), ylim=(0, 104), xlabel="workers", title=kind)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("% of the time busy, episodes of 1 s")
    axes[0].legend(title="batch x window", fontsize="small", frameon=False)
    figure.savefig(file)
