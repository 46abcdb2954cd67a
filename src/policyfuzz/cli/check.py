"""policyfuzz check: examines a target before it is fuzzed."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import Request, as_json, asks_for_target, asks_for_workers
from policyfuzz.cli.process import user_prints_to_stderr, verdict_stands
from policyfuzz.core.errors import UsageError

if TYPE_CHECKING:
    from policyfuzz.core.inputs import Dimension, InputSpace
    from policyfuzz.core.own_reset import OwnReset
    from policyfuzz.core.target import Diagnosis, Target
    from policyfuzz.execution.executor import ExecutorChoice

EPILOG = """\
\b
Examples:
  policyfuzz check acasxu
  policyfuzz check gym:LunarLander-v3 --policy sb3:ppo.zip --trust   what is varied? what is a crash?
  policyfuzz check my_module:make_target --thorough   does it keep every promise of a target?
  policyfuzz check gym:MyEnv-v0 --policy py:act.py:act -j 1   an environment that may crash or hang"""


@click.command(epilog=EPILOG)
@asks_for_target
@asks_for_workers
@click.option(
    "--episodes", type=int, help="Random episodes to run.  [default: 1000, fewer if they take over 20 s]"
)
@click.option("-s", "--seed", default=0, show_default=True, help="Seed of the random episodes.")
@click.option("--thorough", is_flag=True, help="Also run the conformance checks, short campaigns included.")
@as_json
def command(
    request: Request,
    executor: "ExecutorChoice",
    episodes: int | None,
    seed: int,
    thorough: bool,
    is_json: bool,
) -> int:
    """Run random episodes of TARGET and say what is wrong, with a hint. Exit code 3 if it cannot be fuzzed.

    The same check runs at the start of every campaign.
    """
    from policyfuzz.campaign.health import check_target, is_unhealthy, verdict
    from policyfuzz.cli.console import print_json, progress_bar

    if (episodes is not None and episodes < 1) or seed < 0:
        raise UsageError(f"episodes is {episodes} and seed {seed}, expected at least 1 and 0")
    with progress_bar() as bar, user_prints_to_stderr():
        loaded = request.load(executor)
        diagnoses = check_target(
            loaded,
            episodes,
            seed,
            lambda parts: bar.track(parts, description="random episodes, batches"),
            executor.make_runner,
        )
        if thorough:
            diagnoses += _conformance(
                request, seed, lambda names: bar.track(names, description="conformance checks")
            )
    is_healthy = not is_unhealthy(diagnoses)
    with verdict_stands():
        if is_json:
            report = [dataclasses.asdict(diagnosis) for diagnosis in diagnoses]
            values = {
                "target": loaded.name,
                "healthy": is_healthy,
                "verdict": verdict(diagnoses),
                "notes": list(loaded.notes),
                "own_reset": loaded.own_reset and dataclasses.asdict(loaded.own_reset),
            }
            print_json(values | {"diagnoses": report})
        else:
            _print(loaded, diagnoses, verdict(diagnoses))
    return 0 if is_healthy else 3


def _print(loaded: "Target", diagnoses: list["Diagnosis"], verdict: str) -> None:
    echo(f"{loaded.name}: policy {loaded.policy_name}, horizon {loaded.horizon} steps")
    for note in loaded.notes:
        echo(f"  {note}")
    for names, what in _input_lines(loaded.inputs, loaded.own_reset):
        echo(f"  input {names}: {what}")
    echo(f"  crash kinds: {', '.join(loaded.oracle.kinds)}")
    echo(f"  solvable inputs only: {'yes' if loaded.solvable else 'no, the target has no test of that'}")
    for diagnosis in diagnoses:
        echo(f"{diagnosis.level.upper():<9} {diagnosis.name}: {diagnosis.message}")
        if diagnosis.hint:
            echo(f"{'':<9}   hint: {diagnosis.hint}")
    echo(f"verdict: {verdict}")


def _input_lines(space: "InputSpace", own: "OwnReset | None") -> list[tuple[str, str]]:
    """Names and ranges of the inputs, and what the own reset draws; those of one range together."""
    alike: dict[str, list[str]] = {}
    for dimension in space.dimensions:
        if isinstance(options := getattr(dimension, "options", None), tuple):
            bounds = " or ".join(filter(None, (", ".join(options[:-1]), options[-1])))
        else:
            bounds = f"{dimension.describe(dimension.low)} to {dimension.describe(dimension.high)}"
        what = f"{dimension.kind}, {bounds} {dimension.unit}".rstrip() + _own_range(dimension, own)
        alike.setdefault(what, []).append(dimension.name)
    return [
        (
            ", ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]} ... {names[-1]} ({len(names)})",
            what,
        )
        for what, names in alike.items()
    ]


def _own_range(dimension: "Dimension", own: "OwnReset | None") -> str:
    """What the own reset draws of `dimension`."""
    known = None if own is None or dimension.kind in ("seed", "choice") else own.ranges.get(dimension.name)
    return "" if known is None else f" (own reset: {known.text})"


def _conformance(
    request: Request, seed: int, track: Callable[[list[str]], Iterable[str]]
) -> list["Diagnosis"]:
    """The results of the conformance checks."""
    from policyfuzz.conformance.checks import CHECKS
    from policyfuzz.conformance.subject import Subject, Violation
    from policyfuzz.core.errors import TargetCodeError
    from policyfuzz.core.target import Diagnosis, Level

    subject = Subject(request.name, request.policy, seed=seed, trust=request.trust)
    diagnoses = []
    for name in track(list(CHECKS)):
        claim = " ".join((CHECKS[name].__doc__ or name).split()).rstrip(".")
        try:
            why_skipped = CHECKS[name](subject)
            message = f"nothing to check, {why_skipped}: {claim}" if why_skipped else claim
            level = Level.WARNING if why_skipped else Level.GOOD
            diagnoses.append(Diagnosis("conformance", level, message))
        except (Violation, TargetCodeError) as error:
            diagnoses.append(Diagnosis("conformance", Level.UNHEALTHY, error.message, error.hint))
    return diagnoses
