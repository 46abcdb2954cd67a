"""Repairs a policy in rounds: look for crashes, learn what would have saved them, fine-tune, validate.

Every stage is a function of what the stages before it have left in the journal and of seeds, so a repair that
was killed goes on as if nothing had happened.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Runner, Target
from policyfuzz.repairing.choices import Lessons, Runners, learn_choices
from policyfuzz.repairing.files import policy_file, whole_numbers
from policyfuzz.repairing.journal import Arrays, Journal
from policyfuzz.repairing.networks import PolicyFile, Trainable
from policyfuzz.repairing.seeds import DRAWS, Purpose, seed_for
from policyfuzz.repairing.states import Cases, Ends, States, cases_near, ends_of, random_cases, record_moments
from policyfuzz.repairing.training import Corpus, TrainingSettings, blend, outputs_of, train, weights_of
from policyfuzz.repairing.verdict import return_line

#: Shares of the budget of a round: searching for crashes, drawing at random, labelling. The rest validates.
_SEARCHING, _DRAWING, _LABELLING = 0.25, 0.2, 0.35
#: Episodes that a label costs, about.
_PER_CRASH = 60
#: Share of all random draws, those with the smallest margins, that validate candidates.
_NEAREST = 0.12
#: Random draws that validate the nominal return of candidates, at most.
_USUAL = 2_000
#: Share of the fall in nominal return that the verdict allows, which luck may be taken for at most.
_LUCK_SHARE = 0.5
#: Findings that validate candidates, at most.
_HELD_OUT = 500
#: States of each kind that are learnt in a round, at most.
_MOST_STATES = 60_000
#: A candidate that is no better than the policy before it passes with this chance, at most.
_CHANCE = 0.05
#: Shares of the way from the policy before a round to its last candidate, which are tried if all candidates
#: are refused: what a change fixes often survives half of it, and what it breaks or costs does not.
_BLENDS = (0.5, 0.25, 0.125)
#: Episodes whose states are kept as they are, at most: near misses and nominal ones.
_MOST_EPISODES = 2_000

Rows = TypeVar("Rows", Cases, States)
Tell = Callable[[str], None]
#: Gives the target with the policy in a file.
LoadTarget = Callable[[Path], Target]
#: Runs a campaign on a target with so many episodes and a seed in a folder, and gives its crashes.
Search = Callable[[Target, int, int, Path], Cases]


@dataclass(frozen=True, slots=True)
class RepairSettings:
    """How a policy is repaired."""

    rounds: int = 3
    budget: int = 300_000  #: episodes of all rounds, about
    seed: int = 0
    longer: int = 3  #: a label must hold for this many times the horizon
    allowed: float = 0.1  #: newly broken cases of the validation for each fixed one, at most
    training: TrainingSettings | None = None  #: the usual ones of its kind of network

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.budget < 100 * self.rounds:
            raise UsageError(
                f"{self.rounds} rounds with {self.budget:,} episodes in all",
                "give one round or more, and 100 episodes or more for each",
            )
        if not 0.0 <= self.allowed <= 1.0:
            raise UsageError(
                f"{self.allowed:g} newly broken cases are allowed for each fixed one, expected 0 to 1",
                "with more than 1 a policy that crashes more often would do",
            )

    @property
    def per_round(self) -> int:
        """Episodes of a round."""
        return self.budget // self.rounds


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one round."""

    number: int
    crashes: int  #: that were learnt from
    saved: int  #: for which something else was found
    labels: int
    looks: int  #: candidates that were validated
    is_accepted: bool
    crashes_before: int  #: of the validation, with the policy before the round
    crashes_after: int
    fixed: int  #: against the policy before the repair
    newly_broken: int

    @property
    def text(self) -> str:
        """For a reader."""
        verdict = "accepted" if self.is_accepted else "rejected"
        return (
            f"round {self.number}: {verdict}; learnt from {self.crashes:,} crashes, of which"
            f" {self.saved:,} can be avoided, with {self.labels:,} labels;"
            f" validation {self.crashes_before:,} to {self.crashes_after:,} crashes,"
            f" {self.fixed:,} fixed and {self.newly_broken:,} newly broken since the start"
        )


@dataclass(frozen=True, slots=True)
class Repaired:
    """The rounds of a repair, and the file of the best candidate; None if all were rejected."""

    rounds: tuple[Round, ...]
    candidate: Path | None


@dataclass(frozen=True, slots=True)
class Exam:
    """What candidates of a round are validated on."""

    cases: Cases
    is_usual: NDArray[np.bool_]  #: (m,) of the first cases, True for those drawn at random
    old: Ends  #: of the policy before the repair, on the first of the cases
    before: Ends  #: of the policy before the round, on all of them

    def since_start(self, ends: Ends) -> tuple[int, int]:
        """How many cases a candidate with these `ends` has fixed, and how many newly broken."""
        mine = ends[: len(self.old)]
        return int((self.old.crashed & mine.passed).sum()), int((self.old.passed & mine.crashed).sum())

    def badness(self, ends: Ends, allowed: float) -> int | None:
        """How bad a candidate with these `ends` is; None if it is refused.

        It must crash less than the policy before the round by more than chance, must not newly break more
        than is `allowed` for each case that is fixed since the start, and must keep the nominal return.
        """
        fixed, newly = self.since_start(ends)
        lost = int((self.before.passed & ends.crashed).sum())
        gained = int((self.before.crashed & ends.passed).sum())
        if newly > allowed * fixed or paired_chance(gained, lost) > _CHANCE:
            return None
        if self.is_usual.any() and not self._keeps_return(ends[: len(self.old)]):
            return None
        errors = int((~ends.sound).sum() - (~self.before.sound).sum())
        return int(ends.crashed.sum()) + newly + max(0, errors)

    def _keeps_return(self, ends: Ends) -> bool:
        """True if the nominal return would not fall by more than the verdict allows, less a standard error.

        Candidates are many and these cases few, so the one that is chosen was lucky.
        """
        line = return_line(self.old[self.is_usual], ends[self.is_usual])
        luck = min(line.standard_error, _LUCK_SHARE * line.tolerance)
        return line.cases > 0 and line.difference - luck >= -line.tolerance


class Repair:
    """One repair, stage by stage."""

    def __init__(
        self,
        target: Target,
        file: PolicyFile,
        journal: Journal,
        settings: RepairSettings,
        load: LoadTarget,
        search: Search,
        tell: Tell = lambda _text: None,
    ) -> None:
        """`load` gives the target with a candidate; `search` fuzzes it."""
        if target.actions is None:
            raise UsageError(
                f"nobody knows what else {target.name} could do, so there is nothing to learn",
                "its target has no action space: give it actions=ActionSpace.box(low, high)",
            )
        self._target, self._file, self._journal = target, file, journal
        self._settings, self._load, self._search, self._tell = settings, load, search, tell
        self._batch = max(target.batch_size, 64)

    def run(self, findings: Cases) -> Repaired:
        """All rounds; the first learns from `findings` of the campaign."""
        best: Path | None = None
        rounds: list[Round] = []
        validation = self._validation()
        for number in range(1, self._settings.rounds + 1):
            target = self._target if best is None else self._load(best)
            crashes, passing = self._cases(number, target, findings if number == 1 else None)
            if not len(crashes) or not len(passing):
                what = "crash was found to learn from" if not len(crashes) else "case passes"
                self._tell(f"round {number}: no {what}")
                break
            if not self._lessons(number, target, crashes, passing):
                self._tell(f"round {number}: nothing was found that avoids a crash")
                break
            exam = self._exam(number, target, validation)
            result, candidate = self._candidate(number, best, exam)
            rounds.append(result)
            self._tell(result.text)
            best = candidate or best
        return Repaired(tuple(rounds), best)

    def _validation(self) -> "Exam":
        """Random cases, above all those that come nearest to a crash, and how the old policy ends them."""
        share = 1 - _SEARCHING - _DRAWING - _LABELLING
        count = max(50, int(share * self._settings.budget / 2))

        def draw() -> Arrays:
            self._tell(f"running {count:,} random cases for the validation")
            cases = random_cases(
                self._target, count, seed_for(Purpose.VALIDATION, self._settings.seed, DRAWS)
            )
            ends = ends_of(Runner(self._target), cases, self._batch)
            nearest = np.argsort(np.where(np.isnan(ends.margins), np.inf, ends.margins), kind="stable")
            is_graded = not np.isnan(ends.margins).all()
            kept = np.sort(nearest[: max(50, int(_NEAREST * count))]) if is_graded else np.arange(count)
            usual = np.arange(min(count, _USUAL))  # whatever becomes of them
            kept = np.union1d(np.union1d(kept, usual), np.flatnonzero(ends.crashed))
            held_out = self._held_out(0, self._target)
            more = ends_of(Runner(self._target), held_out, self._batch)
            kept_cases, kept_ends = Cases.joined([cases[kept], held_out]), Ends.joined([ends[kept], more])
            is_usual = np.arange(len(kept_cases)) < len(usual)
            return _packed_cases(kept_cases) | kept_ends.arrays() | {"is_usual": is_usual}

        values = self._journal.arrays("validation", draw)
        old = Ends.from_arrays(values)
        return Exam(_cases_in(values), values["is_usual"], old, old)

    def _held_out(self, number: int, target: Target) -> Cases:
        """Findings of a search in the policy of `target` that nothing is learnt from, and cases near them."""
        seed = seed_for(Purpose.VALIDATION, self._settings.seed, number)
        episodes = max(20, int(_SEARCHING * self._settings.per_round))
        folder = self._journal.folder / f"validation-{number}-campaign"
        rng = np.random.default_rng([seed, 1])
        found, most = _some(self._search(target, episodes, seed, folder), _HELD_OUT, rng), 2 * _HELD_OUT
        return Cases.joined([found, _some(cases_near(target, found, rng, most), most, rng)])

    def _exam(self, number: int, target: Target, validation: "Exam") -> "Exam":
        """What candidates of this round are validated on: the same cases as ever, and findings in `target`.

        The latter were searched for with the policy before the round. They show what it still has to learn;
        what is newly broken since the start they cannot show, because they all crash with one policy.
        """

        def prepare() -> Arrays:
            run = Runner(target)
            found = self._held_out(number, target) if number > 1 else validation.cases[:0]
            ends = ends_of(run, Cases.joined([validation.cases, found]), self._batch)
            return _packed_cases(found) | ends.arrays()

        values = self._journal.arrays(f"round-{number}-exam", prepare)
        return replace(
            validation,
            cases=Cases.joined([validation.cases, _cases_in(values)]),
            before=Ends.from_arrays(values),
        )

    def _cases(self, number: int, target: Target, findings: Cases | None) -> tuple[Cases, Cases]:
        """Cases that crash in this round, and near ones that do not."""
        settings = self._settings
        seed = seed_for(Purpose.TRAINING, settings.seed, number)

        def find() -> Arrays:
            rng = np.random.default_rng(seed)
            run = Runner(target)
            wanted = max(20, int(_LABELLING * settings.per_round / _PER_CRASH))
            draws = _DRAWING if findings is None else _DRAWING + _SEARCHING
            self._tell(f"round {number}: looking for crashes")
            pool = random_cases(target, max(20, int(draws * settings.per_round)), seed + DRAWS)
            ends = ends_of(run, pool, self._batch)
            found = findings
            if found is None:
                episodes = max(20, int(_SEARCHING * settings.per_round))
                found = self._search(
                    target, episodes, seed, self._journal.folder / f"round-{number}-campaign"
                )
            drawn = pool[np.flatnonzero(ends.crashed)]
            some = Cases.joined([_some(drawn, wanted, rng), _some(found, wanted, rng)])
            near = _some(cases_near(target, some, rng, 4 * wanted), 4 * wanted, rng)
            near_ends = ends_of(run, near, self._batch)
            crashes = Cases.joined([some, _some(near[np.flatnonzero(near_ends.crashed)], wanted, rng)])
            is_crash = ends_of(run, crashes, self._batch).crashed
            nearest = np.argsort(np.where(ends.passed, ends.margins, np.inf), kind="stable")
            nearest = nearest[: int(_NEAREST * len(pool)) + 20]
            nearest = nearest[ends.passed[nearest]]
            passing = Cases.joined(
                [
                    _some(near[np.flatnonzero(near_ends.passed)], _MOST_EPISODES, rng),
                    _some(pool[nearest], _MOST_EPISODES, rng),
                    _some(pool[np.flatnonzero(ends.passed)], _MOST_EPISODES, rng),
                ]
            )
            learnt = _some(crashes[np.flatnonzero(is_crash)], wanted, rng)
            return _packed_cases(learnt) | _packed_cases(passing, "passing_")

        values = self._journal.arrays(f"round-{number}-cases", find)
        return _cases_in(values), _cases_in(values, "passing_")

    def _lessons(self, number: int, target: Target, crashes: Cases, passing: Cases) -> int:
        """Store what is learnt in this round; returns the number of labels."""
        rng = np.random.default_rng([seed_for(Purpose.TRAINING, self._settings.seed, number), 1])

        def learn() -> Arrays:
            self._tell(f"round {number}: trying what else could be done in {len(crashes):,} crashes")
            runners = Runners.of(target, self._settings.longer)
            lessons = self._learn(runners, crashes)
            moments = record_moments(runners.short, passing, self._batch)
            stays = _some(moments.states, 2 * _MOST_STATES, rng)
            kept = States.joined([_some(lessons.kept, _MOST_STATES, rng), stays])
            return {
                **_packed_states(_some(lessons.changes, _MOST_STATES, rng), "changes_"),
                **_packed_states(kept, "kept_"),
                "saved": np.array(lessons.saved),
                "crashes": np.array(len(crashes)),
            }

        return len(self._journal.arrays(f"round-{number}-lessons", learn)["changes_actions"])

    def _learn(self, runners: Runners, crashes: Cases) -> Lessons:
        if whole_numbers(self._target):
            return learn_choices(runners, crashes)
        from policyfuzz.repairing.numbers import learn_numbers

        return learn_numbers(runners, crashes, self._settings.seed)

    def _candidate(self, number: int, best: Path | None, exam: "Exam") -> tuple[Round, Path | None]:
        """Train from the best candidate so far, and keep what the validation likes most."""
        path = self._journal.folder / f"round-{number}{self._file.suffix}"
        values = self._journal.arrays(f"round-{number}-lessons", dict)

        def attempt() -> dict[str, Any]:
            networks = self._networks(best)
            training = self._settings.training or TrainingSettings.usual(networks.decision)
            corpus, before = self._corpus(number), weights_of(networks)
            rng = np.random.default_rng([seed_for(Purpose.TRAINING, self._settings.seed, number), 2])
            chosen: tuple[int, Ends] | None = None
            looks, misses = 0, 0
            trial = path.with_name(f"trial{self._file.suffix}")

            def look(words: str = "") -> None:
                nonlocal chosen, looks, misses
                looks, misses = looks + 1, misses + 1
                networks.write(trial)
                ends = ends_of(Runner(self._load(trial)), exam.cases, self._batch)
                self._tell(
                    f"round {number}: candidate {looks}{words} crashes in {ends.crashed.sum():,} of"
                    f" {len(ends):,} validation cases, the policy before in {exam.before.crashed.sum():,}"
                )
                badness = exam.badness(ends, self._settings.allowed)
                if badness is not None and (chosen is None or badness < chosen[0]):
                    chosen, misses = (badness, ends), 0
                    networks.write(path)

            for _ in train(networks, corpus, training, rng):
                look()
                if chosen is not None and misses >= training.patience:
                    break
            if chosen is None:
                for share in blend(networks, before, _BLENDS):
                    look(f", {share:g} of the way,")
            ends = exam.before if chosen is None else chosen[1]
            fixed, newly = exam.since_start(ends)
            return asdict(
                Round(
                    number=number,
                    crashes=int(values["crashes"]),
                    saved=int(values["saved"]),
                    labels=len(values["changes_actions"]),
                    looks=looks,
                    is_accepted=chosen is not None,
                    crashes_before=int(exam.before.crashed.sum()),
                    crashes_after=int(ends.crashed.sum()),
                    fixed=fixed,
                    newly_broken=newly,
                )
            )

        result = Round(**self._journal.report(f"round-{number}", attempt))
        return result, path if result.is_accepted else None

    def _networks(self, best: Path | None) -> Trainable:
        if best is None:
            return self._file.load()
        return policy_file(self._load(best)).load()

    def _corpus(self, number: int) -> Corpus:
        """All lessons up to round `number`; outputs are held to those of the policy before the repair."""
        stages = [self._journal.arrays(f"round-{one}-lessons", dict) for one in range(1, number + 1)]
        old = self._file.load()
        changes = States.joined([_states_in(one, "changes_") for one in stages])
        kept = States.joined([_states_in(one, "kept_") for one in stages])
        anchors = old.examples(_states_in(stages[0], "kept_"))
        newest = old.examples(_states_in(stages[-1], "changes_"))
        return Corpus(
            old.examples(changes), len(newest.which), old.examples(kept), anchors, outputs_of(old, anchors)
        )


def paired_chance(gained: int, lost: int) -> float:
    """The chance that so many or more of the pairs that differ are `gained`, if either is as likely."""
    from scipy.stats import binomtest

    differing = gained + lost
    return float(binomtest(gained, differing, alternative="greater").pvalue) if differing else 1.0


def _some(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    """At most so many of `rows`, at random."""
    return rows if len(rows) <= most else rows[np.sort(rng.permutation(len(rows))[:most])]


def _packed_cases(cases: Cases, prefix: str = "") -> Arrays:
    return {f"{prefix}inputs": cases.inputs, f"{prefix}seeds": cases.seeds}


def _cases_in(values: Arrays, prefix: str = "") -> Cases:
    return Cases(values[f"{prefix}inputs"], values[f"{prefix}seeds"])


def _packed_states(states: States, prefix: str) -> Arrays:
    return {f"{prefix}{name}": getattr(states, name) for name in States.__slots__}


def _states_in(values: Arrays, prefix: str) -> States:
    parts: Sequence[NDArray[Any]] = [values[f"{prefix}{name}"] for name in States.__slots__]
    return States(*parts)
