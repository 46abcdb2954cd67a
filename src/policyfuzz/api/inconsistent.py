"""Asks from Python how much single decisions of a policy matter."""

from collections.abc import Mapping, Sequence
from typing import Any

from policyfuzz.analysis.inconsistent import SHARES, InconsistentDecisions, replace_decisions
from policyfuzz.api.subjects import Input, as_target
from policyfuzz.core.oracle import Oracle
from policyfuzz.execution.executor import choose_executor


def inconsistent(
    target: Any,
    policy: Any = None,
    *,
    oracle: str | Oracle | None = None,
    input: Input | None = None,  # noqa: A002 - as --input on the command line
    bounds: str | float | None = None,
    horizon: int | None = None,
    options: Mapping[str, str] | None = None,
    trust: bool = False,
    episodes: int = 1000,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    workers: int | None = None,
) -> InconsistentDecisions:
    """How many normal episodes crash when some `shares` of the policy's decisions are replaced by others.

    See `as_target` for what the first arguments may be.
    """
    executor = choose_executor(None, workers)
    subject = as_target(
        target,
        policy,
        oracle=oracle,
        input=input,
        bounds=bounds,
        horizon=horizon,
        options=options,
        trust=trust,
        make_runner=executor.make_runner,
        executor=executor,
    )
    return replace_decisions(subject, executor.make_runner(subject), episodes, seed, shares)
