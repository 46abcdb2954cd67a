"""The checks: each states one property of a target, and raises `Violation` if it does not hold."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.conformance.subject import Subject, Violation, differences, interrupt_after
from policyfuzz.core import variables
from policyfuzz.core.errors import TargetCodeError
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import Frame, Renders
from policyfuzz.core.target import Runner
from policyfuzz.store.records import FLAKY
from policyfuzz.targets.registry import load_target

#: Inputs that are drawn to look at an input space.
_DRAWS = 200


def name_rebuilds_the_target(subject: Subject) -> None:
    """Its name builds the same target again."""
    target = subject.target
    again = load_target(target.name, subject.policy_uri, subject.trust)
    for what in ("name", "horizon", "decay", "policy_sha256"):
        first, second = getattr(target, what), getattr(again, what)
        _demand(first == second, f"{what} is {first!r}, and {second!r} when {target.name} is loaded again")
    _demand(target.inputs.names == again.inputs.names, f"{target.name} loaded again has other inputs")


def draws_depend_on_the_generator_only(subject: Subject) -> None:
    """Two generators with one seed draw and change inputs alike."""
    space = subject.target.inputs
    first, second = (space.sample(np.random.default_rng(subject.seed), _DRAWS) for _ in range(2))
    _demand(np.array_equal(first, second), "the sampler draws other inputs from the same generator")
    first, second = (space.perturb(first, np.random.default_rng(subject.seed)) for _ in range(2))
    _demand(np.array_equal(first, second), "noise differs from the same generator")


def inputs_survive_the_unit_cube(subject: Subject) -> None:
    """Inputs mapped to the unit cube and back are what they were."""
    space, inputs = subject.target.inputs, subject.cases.inputs
    unit = space.to_unit(inputs)
    _demand(bool(((unit >= 0) & (unit <= 1)).all()), "valid inputs lie outside the unit cube")
    apart = space.distance(inputs, space.from_unit(unit))
    _demand(bool((apart < 1e-9).all()), "inputs change on the way to the unit cube and back")


def validity_is_a_property_of_the_input(subject: Subject) -> None:
    """Whether an input is valid and solvable does not depend on the other rows, and edits nothing."""
    target = subject.target
    inputs = target.inputs.sample(np.random.default_rng(subject.seed), _DRAWS)
    questions = {"constraint": target.inputs.is_valid, "solvability": target.solvable}
    for name, question in questions.items():
        if question is None:
            continue
        if name == "solvability":
            inputs = inputs[target.inputs.is_valid(inputs)]
        given = inputs.copy()
        together = question(given)
        _demand(np.array_equal(given, inputs, equal_nan=True), f"the {name} edits the inputs it is given")
        alone = np.array([question(row[None])[0] for row in inputs[:20]], np.bool_)
        _demand(np.array_equal(alone, together[:20]), f"the {name} of a row depends on the other rows")


def frames_have_the_shapes_they_promise(subject: Subject) -> None:
    """Frames hold a row for each episode that runs, finite numbers, and a value for each signal."""
    simulator, policy = subject.runner.simulator, subject.runner.policy
    count = min(len(subject.cases), simulator.capacity or len(subject.cases))
    cases = subject.cases[:count]
    policy.begin(count)
    frame = simulator.reset(cases.inputs, cases.seeds)
    _demand(not frame.rewards.any(), "rewards are not zero after a reset")
    _demand(not frame.ended.any(), "an episode is over before its first step")
    rows = np.arange(count)
    for step in range(min(subject.target.horizon, 5)):
        _check_frame(frame, len(rows), simulator.signals, step)
        rows, observations = rows[~frame.ended], frame.observations[~frame.ended]
        if step % 2:  # rows may be missing, as they are once episodes have ended
            rows, observations = rows[::2], observations[::2]
        if len(rows) == 0:
            break
        frame = simulator.step(policy.act(observations, rows), rows)


def _check_frame(frame: Frame, rows: int, names: tuple[str, ...], step: int) -> None:
    shapes = {"observations": None, "states": 2, "signals": 2, "rewards": 1, "ended": 1}
    for name, dimensions in shapes.items():
        values: NDArray[Any] = getattr(frame, name)
        fits = len(values) == rows and dimensions in (None, values.ndim)
        _demand(fits, f"{name} have shape {values.shape} for {rows} episodes at step {step}")
    width = frame.signals.shape[1]
    _demand(width == len(names), f"{width} signals, but {len(names)} names")
    for name in ("states", "rewards"):
        _demand(bool(np.isfinite(getattr(frame, name)).all()), f"{name} are not finite at step {step}")
    # keys of an environment's info may be missing
    required = [column for column, name in enumerate(names) if not name.startswith("info.")]
    _demand(bool(np.isfinite(frame.signals[:, required]).all()), f"signals are not finite at step {step}")


def arguments_are_not_edited(subject: Subject) -> None:
    """An episode leaves its input and seed as they were."""
    inputs, seeds = subject.cases.inputs.copy(), subject.cases.seeds.copy()
    subject.runner(inputs, seeds)
    same = np.array_equal(inputs, subject.cases.inputs) and np.array_equal(seeds, subject.cases.seeds)
    _demand(same, "the simulator edits the inputs or seeds it is given")


def episode_alone_equals_episode_in_a_batch(subject: Subject) -> None:
    """An episode run alone is, bit for bit, the same as in a batch."""
    for row in range(len(subject.cases)):
        one = slice(row, row + 1)
        _compare(subject.run(subject.cases[one]), subject.executions_together[one], "run alone")


def order_in_the_batch_does_not_matter(subject: Subject) -> None:
    """Episodes in another order have the same results."""
    backwards = slice(None, None, -1)
    reordered = subject.run(subject.cases[backwards])[backwards]
    _compare(reordered, subject.executions_together, "in another order")


def earlier_episodes_leave_no_trace(subject: Subject) -> None:
    """A simulator and policy that have run other episodes act as new ones."""
    subject.run(subject.cases[::-1])
    used = subject.run(subject.cases)
    _compare(subject.run(subject.cases, Runner(subject.target)), used, "with a new simulator")


def another_process_gives_the_same(subject: Subject) -> None:
    """Another process computes the same, bit for bit."""
    cases = subject.cases[:2]
    code = "from policyfuzz.conformance.checks import _print_digest; _print_digest()"
    arguments = [subject.target.name, subject.policy_uri or ""]
    case_seeds = [str(seed) for seed in cases.seeds]
    finished = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments, str(len(cases)), *case_seeds],
        input=cases.inputs.astype("<f8").tobytes(),
        capture_output=True,
        check=False,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
        | ({variables.TRUST: "1"} if subject.trust else {}),
    )
    if finished.returncode:
        last = finished.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Violation(f"the target cannot be run in another process: {' '.join(last)}")
    printed = finished.stdout.decode().split()[-1]
    _demand(printed == _digest(subject.run(cases)), "another process gives other episodes")


def _print_digest() -> None:
    """The other process: target, policy, count and seeds as arguments, inputs on stdin."""
    name, policy, count, *seeds = sys.argv[1:]
    target = load_target(name, policy or None)
    inputs = np.frombuffer(sys.stdin.buffer.read(), "<f8").reshape(int(count), -1).copy()
    executions = Runner(target)(inputs, np.array([int(seed) for seed in seeds], np.uint64))
    sys.stdout.write(_digest(executions) + "\n")


def _digest(executions: Executions) -> str:
    digest = hashlib.sha256()
    verdicts = executions.verdicts
    for part in (executions.returns, executions.lengths, executions.states, verdicts.kinds, verdicts.steps):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def rendering_changes_nothing(subject: Subject) -> str | None:
    """An episode that is filmed is the same episode, and its pictures have one size."""
    from policyfuzz.core.recording import record
    from policyfuzz.report.film import Camera

    if not isinstance(subject.target.for_film().simulator(), Renders):
        return "its simulator does not render"
    case, camera = subject.cases[:1], Camera()

    def look(step: int, simulator: Renders) -> None:
        if step % 10 == 0:
            camera.shoot(simulator)

    try:
        recording = record(subject.target, case.inputs[0], int(case.seeds[0]), look)
    except TargetCodeError as error:
        raise Violation(error.message, error.hint) from error
    _compare(recording.executions, subject.run(case), "when rendered")
    return None


def campaign_repeats(subject: Subject) -> None:
    """Two campaigns with one seed have the same findings and the same corpus."""
    same = subject.campaign.rows == subject.run_campaign().rows
    _demand(same, "a second campaign with the same seed differs")


def interrupted_campaign_ends_the_same(subject: Subject) -> None:
    """A campaign that is interrupted and resumed ends as one that was not."""
    same = subject.campaign.rows == subject.run_campaign(interrupt_after(2), runs=2).rows
    _demand(same, "a campaign that was interrupted and resumed differs")


def findings_are_valid_and_replay(subject: Subject) -> str | None:
    """Findings are valid, solvable where that is tested, and crash again alone, exactly as recorded."""
    target = subject.target
    for finding in subject.campaign.findings:
        row = finding.input[None]
        _demand(bool(target.inputs.is_valid(row)[0]), f"finding {finding.id} is not valid")
        solved = target.solvable is None or bool(target.solvable(row)[0])
        _demand(solved, f"finding {finding.id} is not solvable")
        _demand(finding.status != FLAKY, f"finding {finding.id} is flaky")
        again = subject.runner(row, np.array([finding.case_seed], np.uint64))
        same = (again.returns[0], again.verdicts.steps[0]) == (finding.episode_return, finding.crash_step)
        _demand(same, f"finding {finding.id} does not replay as recorded")
    return None if subject.campaign.findings else f"{subject.executions} episodes found no crash to replay"


#: Each returns None, or why there was nothing to check.
CHECKS: Mapping[str, Callable[[Subject], str | None]] = {
    check.__name__: check
    for check in (
        name_rebuilds_the_target,
        draws_depend_on_the_generator_only,
        inputs_survive_the_unit_cube,
        validity_is_a_property_of_the_input,
        frames_have_the_shapes_they_promise,
        arguments_are_not_edited,
        episode_alone_equals_episode_in_a_batch,
        order_in_the_batch_does_not_matter,
        earlier_episodes_leave_no_trace,
        another_process_gives_the_same,
        rendering_changes_nothing,
        campaign_repeats,
        interrupted_campaign_ends_the_same,
        findings_are_valid_and_replay,
    )
}


def _compare(first: Executions, second: Executions, how: str) -> None:
    different = differences(first, second)
    _demand(not different, f"an episode {how} differs in its {', '.join(different)}")


def _demand(holds: bool, complaint: str) -> None:
    if not holds:
        raise Violation(complaint, "see docs/own-simulator.md, what must hold")
