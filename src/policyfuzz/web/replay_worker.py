"""The process that runs a finding again, films it and notes its numbers, for one page."""

import json
import logging
import os
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import CampaignError, PolicyFuzzError
from policyfuzz.execution.processes.worker import end_before_coordinator, explain_exits


def main() -> None:
    """Make what a server asks for, at the other end of a socket whose descriptor is the argument."""
    end_before_coordinator()
    explain_exits()
    server: Connection[Any, Any] = Connection(int(sys.argv[1]))
    process = os.getpid()
    with suppress(EOFError, OSError):  # the server has ended
        asked = json.loads(server.recv_bytes())
        answer = _answer(asked)
        if os.getpid() == process:  # not a copy that the simulator has made
            server.send_bytes(json.dumps(answer, allow_nan=False).encode())


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return made(
            Path(asked["folder"]),
            asked["instance"],
            asked["finding"],
            bool(asked["trust"]),
            Path(asked["out"]),
        )
    except PolicyFuzzError as error:
        return {"problem": error.message, "hint": error.hint}
    except Exception as error:  # of the user's own code
        return {"problem": f"{type(error).__name__}: {error}"}


def made(folder: Path, instance: str, number: int, trust: bool, out: Path) -> dict[str, Any]:
    """Run finding `number` again and film it into `out`; return the strips.

    Code that only the campaign names is not run without `trust`, as `replay` does it.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from policyfuzz.report.episode_panels import look_at, panels_of
    from policyfuzz.report.film import best_format, can_film, film_replay, film_steps
    from policyfuzz.store.triage_file import triage_of
    from policyfuzz.triage.replay import is_safe_to_run, replay
    from policyfuzz.web.catalogue import opened

    with opened(folder) as campaign:
        if campaign.about.get("instance", "") != instance:
            raise CampaignError("another campaign is in this folder now", "load the page again")
        finding, avoidance = campaign.finding(number), triage_of(campaign).of(number).avoidance
        result = replay(campaign, finding, trust=trust)
        seen = look_at(result, avoidance, is_safe_to_run(campaign))
    film, problem = "", ""
    if can_film(result.target):
        try:
            film_replay(result, out / f"film{best_format()}", avoidance)
            film = best_format()
        except PolicyFuzzError as error:
            problem = error.message
    return {
        "film": film,
        "not_filmed": problem or ("" if film else "the simulator of this target does not render"),
        "rate": result.target.film_steps_per_second,
        "frames": film_steps(result, avoidance, None if seen.witness is None else seen.witness.executions),
        "steps": result.steps,
        "crash_step": result.crash_step,
        "last_chance": seen.last_chance,
        "is_identical": result.is_identical,
        "crashes": result.crashes,
        "kind": result.kind,
        "witness": seen.witness_name,
        "panels": [_panel_values(one) for one in panels_of(result, seen)],
    }


def _panel_values(panel: Any) -> dict[str, Any]:
    return {
        "name": panel.name,
        "policy": _plain(panel.policy),
        "witness": None if panel.witness is None else _plain(panel.witness),
        "low": None if panel.low is None else _plain(panel.low),
        "high": None if panel.high is None else _plain(panel.high),
        "left_at": panel.left_at,
        "is_held": panel.is_held,
        "choices": {str(value): name for value, name in panel.choices.items()},
    }


def _plain(values: Any) -> list[float | None]:
    """Numbers as JSON knows them, in six digits: a screen shows no more."""
    return [float(f"{one:.6g}") if abs(one) < float("inf") else None for one in values.tolist()]


if __name__ == "__main__":
    main()
