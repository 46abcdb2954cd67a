"""Findings for tests of what stores and lists them."""

from typing import Any

import numpy as np

from policyfuzz.store.records import Finding


def a_finding(number: int = 1, **others: Any) -> Finding:
    """A finding whose fields are those of a new one, except `others`."""
    values: dict[str, Any] = {
        "status": "new",
        "is_distinct": False,
        "is_novel": False,
        "kind": "caught",
        "crash_step": 7,
        "episode_return": -1.5,
        "margin": -0.5,
        "outcome": 10**6 + number,
        "repeats": 0,
        "root": number,
        "behaviour": None,
        "reseeded": None,
        "reseeded_crashes": None,
        "survived_by": None,
        "parent": None,
        "case_seed": 2**63 - 1,
        "batch": 1,
        "execution": 10,
        "seconds": 0.5,
        "origin": None,
        "input": np.array([0.1 + number, np.pi, 3.0]),
    }
    return Finding(id=number, **(values | others))
