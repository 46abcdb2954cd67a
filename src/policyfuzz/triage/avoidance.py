"""Which crashes could have been avoided, how, and up to when: many findings at once."""

from collections.abc import Iterable, Iterator

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import RunBranches, Target
from policyfuzz.store.triage_records import Avoidance
from policyfuzz.triage.point_of_no_return import PointSearch, PolicyActions
from policyfuzz.triage.trials import Search, run_together
from policyfuzz.triage.witness import Crash, WitnessSearch, WitnessSettings


def find_witnesses(
    target: Target,
    crashes: Iterable[Crash],
    run: RunBranches,
    run_longer: RunBranches,
    settings: WitnessSettings | None = None,
    look: PolicyActions | None = None,
) -> Iterator[tuple[int, Avoidance]]:
    """Position and avoidance of each of `crashes`, as they are found out.

    `run` runs episodes of `target`, and `run_longer` those of `target.prolonged(settings.longer)`. `look`
    tells what the policy did, for words only. What is found out about a crash depends on its input, its case
    seed, the target and the settings, and on nothing else.
    """
    if target.actions is None:
        raise UsageError(
            f"nobody knows what else {target.name} could do, so there are no witnesses",
            "its target has no action space: give it actions=ActionSpace.box(low, high)",
        )
    chosen = settings or WitnessSettings()
    searches = (_avoidance(one, target, chosen, look) for one in crashes)
    return run_together(searches, run, run_longer, len(target.actions.low))


def _avoidance(
    crash: Crash, target: Target, settings: WitnessSettings, look: PolicyActions | None
) -> Search[Avoidance]:
    witness = WitnessSearch(crash, target, settings)
    found = yield from witness.run()
    return (yield from PointSearch(crash, target, settings, found, look).run())
