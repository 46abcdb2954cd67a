"""What a policy whose actions are numbers should have done on the way to a crash: what a witness did."""

import numpy as np

from policyfuzz.core.branches import Branches
from policyfuzz.repairing.choices import Lessons, Runners
from policyfuzz.repairing.states import Cases, States, ends_of, record_moments
from policyfuzz.store.triage_records import WITNESS, Avoidance
from policyfuzz.triage.trials import Search, run_together
from policyfuzz.triage.witness import Crash, WitnessSearch, WitnessSettings


def learn_numbers(runners: Runners, crashes: Cases, seed: int) -> Lessons:
    """What witnesses do in the episodes of `crashes`, all of which crash.

    A witness branches off before the point of no return by its nature: it survives, and still does when the
    episode goes on.
    """
    target, batch = runners.target, max(runners.target.batch_size, 64)
    assert target.actions is not None
    width = len(target.actions.low)
    ends = ends_of(runners.short, crashes, batch)
    settings = WitnessSettings(seed=seed)
    rows = np.flatnonzero(ends.crashed)
    searches = [
        _search(
            Crash(
                crashes.inputs[row],
                int(crashes.seeds[row]),
                int(ends.steps[row]),
                target.oracle.kinds[0],
                float(ends.returns[row]),
            ),
            runners,
            settings,
        )
        for row in rows.tolist()
    ]
    found = sorted(run_together(searches, runners.short, runners.long, width), key=lambda pair: pair[0])
    episodes = len(crashes) + sum(one.episodes for _, (one, _) in found)
    branches = {place: one.branch for place, (one, verdict) in found if verdict == WITNESS and one.branch}
    saved = rows[np.array(list(branches), np.int64)]
    moments = record_moments(
        runners.short, crashes[saved], batch, Branches.of(list(branches.values()), width)
    )
    starts = np.array([min(one.start for one in branch) for branch in branches.values()], np.int64)
    stops = np.array([max(one.stop for one in branch) for branch in branches.values()], np.int64)
    since, until = starts[moments.episodes], stops[moments.episodes]
    is_changed = (moments.steps >= since) & (moments.steps < until)
    states = moments.states
    actions = target.actions.allowed(states.actions) if len(states) else states.actions
    states = States(states.observations, states.previous, actions)
    return Lessons(states[is_changed], states[moments.steps >= until], len(branches), episodes)


def _search(crash: Crash, runners: Runners, settings: WitnessSettings) -> Search[tuple[Avoidance, str]]:
    found = yield from WitnessSearch(crash, runners.target, settings).run()
    return found, found.verdict
