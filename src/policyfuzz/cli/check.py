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
    from policyfuzz.core.target import Diagnosis, Run, Target
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
    from policyfuzz.api.check import target_lines
    from policyfuzz.campaign.health import check_target, is_unhealthy, verdict
    from policyfuzz.cli.console import print_json
    from policyfuzz.cli.steps import showing_steps

    if (episodes is not None and episodes < 1) or seed < 0:
        raise UsageError(f"episodes is {episodes} and seed {seed}, expected at least 1 and 0")
    with showing_steps() as steps, user_prints_to_stderr():

        def announced(target: "Target") -> "Run":
            steps.say(f"running {target.name}")
            return executor.make_runner(target)

        steps.say(f"loading {request.name}")
        loaded = request.load(executor)
        diagnoses = check_target(
            loaded,
            episodes,
            seed,
            lambda done, count: steps.count(f"running random episodes, {done:,} of {count:,}"),
            announced,
        )
        if thorough:
            diagnoses += _conformance(
                request, seed, lambda names: steps.track(names, "running conformance checks")
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
            _print(target_lines(loaded), diagnoses, verdict(diagnoses))
    return 0 if is_healthy else 3


def _print(about: list[str], diagnoses: list["Diagnosis"], verdict: str) -> None:
    for line in about:
        echo(line)
    for diagnosis in diagnoses:
        echo(f"{diagnosis.level.upper():<9} {diagnosis.name}: {diagnosis.message}")
        if diagnosis.hint:
            echo(f"{'':<9}   hint: {diagnosis.hint}")
    echo(f"verdict: {verdict}")


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
