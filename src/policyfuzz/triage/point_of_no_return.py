"""Where a crash was decided: the last step at which a witness can still branch off, if a single step did it.

What branches off holds one action from its step to the horizon, or is the rest of the known witness, and
passes the same checks as a witness. Whether one exists need not be monotone in the step; bisection finds one
step at which it exists and at the next does not.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import action_numbers
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.oracle import accumulated_kinds
from policyfuzz.core.target import Runner, Target
from policyfuzz.store.triage_records import DECIDED, FRAGILE, NOT_KNOWN, NOT_MEANINGFUL, WITNESS, Avoidance
from policyfuzz.triage.candidates import Candidates, action_name, branch_words
from policyfuzz.triage.trials import Branch, Search, Trial
from policyfuzz.triage.witness import Crash, WitnessSettings, rng_of

#: Gives the actions (t, a) of the policy in the episode of an input (d,) and a case seed.
PolicyActions = Callable[[NDArray[np.float64], int], NDArray[np.float64]]

#: Where this share of small disturbances avoids the crash, no single decision is to blame.
FRAGILE_SHARE = 0.75
#: Actions that are held from a step on, at most, to see whether one saves.
_HELD = 5


@dataclass(frozen=True, slots=True)
class PointSearch:
    """Looks for the point of no return of one crash, whose witness, if any, is in `avoidance`."""

    crash: Crash
    target: Target
    settings: WitnessSettings
    avoidance: Avoidance
    look: PolicyActions | None = None  #: None: nobody can say what the policy did

    def run(self) -> Search[Avoidance]:
        """The avoidance, with disturbances, standing and point added."""
        disturbed = yield from self._disturb()
        if self.crash.kind in accumulated_kinds(self.target.oracle):
            words = "the crash is counted over the whole episode, so no single step decides it"
            return replace(disturbed, standing=NOT_MEANINGFUL, blamed=words)
        if disturbed.verdict != WITNESS:
            return replace(disturbed, standing=NOT_KNOWN)
        if disturbed.survived >= FRAGILE_SHARE * disturbed.disturbances > 0:
            words = (
                f"{disturbed.survived} of {disturbed.disturbances} small disturbances avoid the crash, so no"
                " single decision is to blame"
            )
            return replace(disturbed, standing=FRAGILE, blamed=words)
        return (yield from self._bisect(disturbed))

    def _disturb(self) -> Search[Avoidance]:
        """The avoidance, with how many small disturbances of the policy's actions avoid the crash."""
        rng, count = rng_of(self.crash, self.settings, 2), self.settings.disturbances
        branches = [self._candidates.small_disturbance(rng) for _ in range(count)]
        results = yield [self._trial(branch) for branch in branches]
        survived = sum(one.survived for one in results)
        return replace(self.avoidance, disturbances=count, survived=survived, point_episodes=count)

    def _bisect(self, known: Avoidance) -> Search[Avoidance]:
        """`known`, with the last step at which a witness can branch off."""
        looks = int(self.look is not None)
        branch, episodes = known.branch, known.point_episodes
        saves, fails = min(one.start for one in branch), max(self.crash.step, 1) + 1
        while fails - saves > 1:
            left = self.settings.point_episodes - looks - episodes
            found, spent = yield from self.probe(_inner(saves, fails, self._cost, left), branch, left)
            episodes += spent
            if found is None:
                return replace(known, point_episodes=episodes)
            last = max((step for step, one in found.items() if one), default=saves)
            fails = min((step for step in found if step > last), default=fails)
            saves, branch = last, found.get(last) or branch
        words = branch_words(branch, self._candidates.space, self.target.horizon)
        return replace(
            known,
            standing=DECIDED,
            last_chance=saves,
            last_branch=branch,
            point_episodes=episodes + looks,
            blamed=self._blame(saves, words),
        )

    def probe(
        self, steps: list[int], witness: Branch, left: int
    ) -> Search[tuple[dict[int, Branch] | None, int]]:
        """By step, the branch that avoids the crash from there on, empty if none does; and episodes spent.

        None if more than `left` episodes would be needed.
        """
        tried = {step: self._branches_from(step, witness) for step in steps}
        spent = sum(map(len, tried.values()))
        if not steps or spent + len(steps) > left:
            return None, 0
        results = iter((yield [self._trial(branch) for step in steps for branch in tried[step]]))
        hopes = {
            step: [
                branch
                for branch, one in [(branch, next(results)) for branch in tried[step]]
                if one.survived and not one.episode_return < self.avoidance.usual_return
            ]
            for step in steps
        }
        found: dict[int, Branch] = dict.fromkeys(steps, ())
        while asked := [step for step in steps if hopes[step] and not found[step]]:
            if spent + len(asked) > left:
                return None, spent
            longer = yield [self._trial(hopes[step][0], is_long=True) for step in asked]
            spent += len(longer)
            for step, one in zip(asked, longer, strict=True):
                tested = hopes[step].pop(0)
                found[step] = tested if one.survived else ()
        return found, spent

    def _branches_from(self, step: int, witness: Branch) -> list[Branch]:
        """What may save from `step` on: the rest of the `witness`, and the strongest actions held."""
        rest = tuple(replace(one, start=max(one.start, step)) for one in witness if one.stop > step)
        held = [self._candidates.held(macro.numbers, step) for macro in self._candidates.macros]
        others = [branch for branch in held if branch != rest]
        return [*([rest] if rest else []), *others][:_HELD]

    def _blame(self, step: int, saving: str) -> str:
        """What the policy did at `step`, and what would have saved it."""
        saved = f"{saving} would have avoided the crash"
        did = None if self.look is None else self.look(self.crash.row, self.crash.case_seed)
        if did is None or len(did) < step:
            return saved
        return f"{action_name(did[step - 1].tolist(), self._candidates.space)} at step {step}; {saved}"

    @property
    def _cost(self) -> int:
        """Episodes that a look at one step takes, as a rule."""
        return min(_HELD, len(self._candidates.space.macros) + 1) + 1

    @property
    def _candidates(self) -> Candidates:
        assert self.target.actions is not None
        return Candidates(self.target.actions, self.target.horizon, max(1, self.crash.step))

    def _trial(self, branch: Branch, is_long: bool = False) -> Trial:
        return Trial(self.crash.row, self.crash.case_seed, branch, is_long)


def _inner(saves: int, fails: int, cost: int, left: int) -> list[int]:
    """Steps between `saves` and `fails` to look at next: two, in fewer rounds, if the budget allows it."""
    gap = fails - saves
    rounds = math.ceil(math.log(gap, 3))
    if gap > 2 and 2 * cost * rounds <= left:
        return [saves + gap // 3, saves + max(gap // 3 + 1, 2 * gap // 3)]
    return [saves + gap // 2]


def recorded_actions(target: Target) -> PolicyActions:
    """What the policy of `target` does, by running the episode once more in this process."""
    runner = Runner(target)

    def look(row: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
        actions: list[NDArray[np.float64]] = []

        def observer(
            _step: int, _rows: NDArray[np.int64], acted: NDArray[np.generic] | None, _frame: Frame
        ) -> None:
            if acted is not None:
                actions.append(action_numbers(acted)[0])

        runner(row[None], np.array([seed], np.uint64), observer)
        return np.array(actions)

    return look
