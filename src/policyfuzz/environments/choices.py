"""What is chosen for targets of environment objects where the user is silent, and what options say."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz.core.code_files import absolute_name
from policyfuzz.core.errors import UnhealthyTarget
from policyfuzz.core.target import choice, number
from policyfuzz.environments.find_start import read_changes
from policyfuzz.environments.starts import Start
from policyfuzz.oracles import language
from policyfuzz.oracles.defaults import SUCCESS_KEYS, NominalEpisodes, default_oracle

#: Steps after which an episode is taken to be endless, where the environment declares no limit.
LIMITLESS = 1000
LONGEST = 1_000_000
#: Random inputs before the first is changed: environments of this kind run some dozens of episodes a second.
SAMPLES = 200


def chosen_oracle(text: str | None, start: Start, nominal: Callable[[], NominalEpisodes]) -> tuple[str, str]:
    """What counts as a crash, and why."""
    if text is not None:

        def quantile(share: float) -> float:
            return float(np.quantile(_runnable(nominal()).returns, share))

        return language.resolved(text, quantile), "as you asked"
    if start.oracle is not None:
        return start.oracle, "what goes wrong in this kind of environment"
    chosen = default_oracle(_runnable(nominal()))
    return chosen.text, chosen.reason


def horizon_of(options: Mapping[str, str]) -> int | None:
    """Steps of an episode that the user asks for, None where the environment decides."""
    return number(options, "horizon", 1, int, 1, LONGEST) if "horizon" in options else None


def _runnable(seen: NominalEpisodes) -> NominalEpisodes:
    """`seen` itself, unless there is nothing in it."""
    if len(seen) == 0:
        raise UnhealthyTarget(
            f"no episode from the environment's own reset could be run: {seen.failure}",
            hint="mend the environment; check --oracle terminated tells more",
        )
    return seen


def absolute_options(options: Mapping[str, str]) -> dict[str, str]:
    """`options` that mean the same in any folder."""
    given, wrappers = options.get("input", ""), wrappers_of(options)
    if given.endswith(".toml"):
        given = read_changes(given).text  # what it says, so that the file may go
    elif given.endswith(".py"):
        given = str(Path(given).expanduser().absolute())
    said = {"input": given, "wrap": ";".join(wrappers)}
    return {**options, **{name: text for name, text in said.items() if text}}


def own_files(place: str, options: Mapping[str, str]) -> list[str]:
    """Where the user's own code stands: of the environment, at `place`, its wrappers and its input."""
    given = absolute_options(options).get("input", "")
    files = [place] if ":" in place else []
    return [*files, *wrappers_of(options), *([given] if given.endswith(".py") else [])]


def wrappers_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the wrappers, the innermost first, that load the same from any folder."""
    return tuple(absolute_name(name) for name in options.get("wrap", "").split(";") if name)


def frames_per_second(env: Any) -> int:
    """How fast a film of `env` should be."""
    given = (env.metadata or {}).get("render_fps")
    return min(60, max(1, int(given))) if given else 20


def limit_notes(limit: int | None, endless_after: int | None) -> tuple[str, ...]:
    """What `check` says of episodes that never end."""
    if limit is not None:
        return ()
    meaning = "is cut" if endless_after is None else "is an error"
    return (
        f"horizon: the environment declares no limit, so an episode that has not ended after {LIMITLESS}"
        f" steps {meaning}; set one with --horizon",
    )


def simulator_settings(options: Mapping[str, str]) -> dict[str, Any]:
    """Settings of the simulator that options give."""
    return {
        "is_fresh": choice(options, "fresh", ("no", "yes")) == "yes",
        "may_be_infinite": choice(options, "infinite", ("no", "yes")) == "yes",
        "patience_seconds": number(options, "patience", 60.0, float, 0.01, 1e6),
    }


def oracle_settings(oracle: str, limit: int | None) -> dict[str, Any]:
    """What simulators have to watch for an `oracle`."""
    watched = language.looks_at(oracle)
    # an oracle for episodes that were cut says that it is no error when they are
    is_endless = limit is None and "truncated" not in watched
    return {"endless_after": LIMITLESS if is_endless else None, "watches_space": "out_of_space" in watched}


def nominal_keys(options: Mapping[str, str], start: Start) -> tuple[str, ...]:
    """Keys of `info` that are worth knowing about nominal episodes."""
    named = language.info_keys(options.get("oracle") or start.oracle or "terminated")
    return tuple(sorted({*SUCCESS_KEYS, *named}))
