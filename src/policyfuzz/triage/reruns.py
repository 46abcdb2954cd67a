"""Runs findings of a campaign again: with other policies, and with other case seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import SEED_END
from policyfuzz.core.target import Run
from policyfuzz.store.records import Finding
from policyfuzz.store.triage_file import FindingTriage

#: Findings that are run together.
_AT_ONCE = 64


def run_again(
    findings: Sequence[Finding],
    known: Mapping[int, FindingTriage],
    run: Run,
    references: Mapping[str, Run],
    seeds: int,
) -> Iterator[dict[int, FindingTriage]]:
    """What some findings at a time have shown, by their number, added to what is `known`.

    Each is run by all `references`, and by `run` with `seeds` other case seeds. What is known already is not
    run again.
    """
    for start in range(0, len(findings), _AT_ONCE):
        some = findings[start : start + _AT_ONCE]
        looks = {one.id: known.get(one.id, FindingTriage()) for one in some}
        for name, reference in references.items():
            _try_reference(some, looks, name, reference)
        _try_seeds(some, looks, run, seeds)
        yield looks


def _try_reference(
    findings: Sequence[Finding], looks: dict[int, FindingTriage], name: str, reference: Run
) -> None:
    def is_known(look: FindingTriage) -> bool:
        return name in look.survived_by or name in look.not_survived_by

    left = [one for one in findings if not is_known(looks[one.id])]
    if not left:
        return
    runs = reference(_inputs(left), np.array([one.case_seed for one in left], np.uint64))
    for one, survives in zip(left, runs.sound & ~runs.crashed, strict=True):
        looks[one.id] = looks[one.id].merged(
            FindingTriage(survived_by=(name,)) if survives else FindingTriage(not_survived_by=(name,))
        )


def _try_seeds(findings: Sequence[Finding], looks: dict[int, FindingTriage], run: Run, seeds: int) -> None:
    left = [one for one in findings if looks[one.id].seeds_tried < seeds]
    if not left:
        return
    drawn = [
        np.random.default_rng([one.case_seed, one.id]).integers(0, SEED_END, seeds, dtype=np.uint64)
        for one in left
    ]
    runs = run(np.repeat(_inputs(left), seeds, axis=0), np.concatenate(drawn))
    crashed = runs.crashed.reshape(len(left), seeds).sum(axis=1)
    known = (runs.sound | runs.crashed).reshape(len(left), seeds).sum(axis=1)
    for one, count, crashes in zip(left, known.tolist(), crashed.tolist(), strict=True):
        looks[one.id] = replace(looks[one.id], seeds_tried=seeds, seeds=count, seed_crashes=crashes)


def _inputs(findings: Sequence[Finding]) -> NDArray[np.float64]:
    return np.array([one.input for one in findings], np.float64)
