"""python -m benchmarks estimate: shows whether intervals hold, and how many episodes are saved."""

from dataclasses import dataclass

import click
from rich.table import Table

from benchmarks.estimate import acasxu
from benchmarks.estimate.repeats import Repeats, plain_episodes, plain_error, repeat, repeat_at_once, ripple
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import UsageError

#: Ripple targets, the first three with a goal.
_GOALS = ("ripple:probability=1e-4", "ripple:probability=1e-6", "ripple:probability=1e-8")
_OTHERS = (
    "ripple:probability=1e-2",
    "ripple:probability=1e-3",
    "ripple:dimensions=2,probability=1e-6",
    "ripple:dimensions=20,probability=1e-6",
    "ripple:probability=1e-6,regions=3",
)
#: Least share of intervals that hold the truth; least factor of episodes saved at this relative error.
_COVERAGE, _SAVED, _ERROR = 0.93, 50.0, 0.3
_RARE = "ripple:probability=1e-6"
#: Below this, subset simulation is used.
_COMMON = 5e-4
#: Where the formula of plain sampling is compared with real sampling: the probability, and repeats.
_CHECKED, _CHECKS = 1e-2, 2000


@dataclass(frozen=True, slots=True)
class Line:
    """What one target has shown."""

    target: str
    probability: float
    repeats: int
    coverage: float
    coverage_low: float  #: of its own 95 % interval
    coverage_high: float
    error: float  #: root of the mean squared relative error
    mean: float  #: estimate by truth
    width: float  #: upper end by lower end, median
    episodes: float
    saved: float  #: episodes of plain sampling for the same error, by ours
    is_met: bool | None

    @classmethod
    def of(cls, found: Repeats, has_goal: bool) -> "Line":
        """What the repeats say."""
        low, high = found.coverage_interval
        return cls(
            found.target,
            found.truth,
            len(found.estimates),
            found.coverage,
            low,
            high,
            found.error,
            float(found.ratios.mean()),
            found.width,
            found.episodes,
            plain_episodes(found.truth, found.error) / found.episodes,
            found.coverage >= _COVERAGE if has_goal else None,
        )


@click.command("estimate")
@click.option("--repeats", default=200, show_default=True, help="Estimates of each probability with a goal.")
@click.option("--others", default=100, show_default=True, help="Estimates of each other one.")
@click.option("--acasxu", "flights", default=20, show_default=True, help="Estimates on acasxu.")
@click.option("-s", "--seed", default=0, show_default=True, help="The first seed.")
@as_json
def command(repeats: int, others: int, flights: int, seed: int, is_json: bool) -> int:
    """Measure how often the 95 % intervals of `estimate` hold, and how many episodes it saves (half an hour).

    On ripple the probability is known in closed form; on acasxu from more than a million random draws.
    """
    if min(repeats, others, flights, seed) < 0 or repeats < 1:
        raise UsageError(f"repeats is {repeats}, others {others}, acasxu {flights} and seed {seed}")
    lines, facts = [], {}
    counts = dict.fromkeys(_GOALS, repeats) | dict.fromkeys(_OTHERS, others)
    for name, count in counts.items():
        target, run, truth = ripple(name)
        measure = repeat_at_once if truth < _COMMON else repeat
        if count:
            _say(f"estimating {name}, {count} times")
            lines.append(Line.of(measure(target, run, truth, count, seed), name in _GOALS))
    rare = next(line for line in lines if line.target == _RARE)
    facts["saved_at_1e-6"] = rare.saved
    target, run, truth = ripple(f"ripple:probability={_CHECKED}")
    draws = round(plain_episodes(truth, _ERROR))
    facts["error_of_plain_sampling_where_0.3_is_expected"] = plain_error(
        target, run, truth, draws, _CHECKS, seed
    )
    is_met = all(line.is_met is not False for line in lines) and rare.saved >= _SAVED and rare.error <= _ERROR
    if flights:
        _say(f"estimating acasxu, {flights} times")
        known = acasxu.random_draws(seed)
        found = acasxu.estimates(flights, seed, known.probability)
        lines.append(Line.of(found, False))
        facts |= {"acasxu_by_random_draws": known.probability, "low": known.low, "high": known.high}
        facts |= {"random_draws": known.draws, "mean_of_the_estimates": float(found.estimates[:, 0].mean())}
        is_met = is_met and acasxu.agree(found, known)
    if is_json:
        print_json(
            {"lines": [{name: getattr(one, name) for name in Line.__slots__} for one in lines], **facts}
        )
    else:
        results().print(_table(lines))
        for name, value in facts.items():
            results().print(f"{name.replace('_', ' ')}: {value:.4g}", soft_wrap=True)
    return 0 if is_met else 1


def _say(line: str) -> None:
    """Tell on stderr how far it is."""
    click.echo(line, err=True)


def _table(lines: list[Line]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (
        "target",
        "p",
        "repeats",
        "covered",
        "error",
        "mean/p",
        "width",
        "episodes",
        "saved",
        "goal",
    ):
        table.add_column(name, justify="left" if name == "target" else "right")
    for one in lines:
        table.add_row(
            one.target,
            f"{one.probability:.3g}",
            str(one.repeats),
            f"{one.coverage:.1%} ({one.coverage_low:.1%} to {one.coverage_high:.1%})",
            f"{one.error:.1%}",
            f"{one.mean:.3f}",
            f"{one.width:.2f}",
            f"{one.episodes:,.0f}",
            f"{one.saved:,.1f} x",
            {None: "", True: "met", False: "missed"}[one.is_met],
        )
    return table
