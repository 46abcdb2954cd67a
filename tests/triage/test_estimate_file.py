"""The file that an estimation goes on from."""

import io
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz.core.errors import CampaignError
from policyfuzz.triage.estimate_file import estimation_bytes, read_estimation
from policyfuzz.triage.estimation import Estimation

sys.path.insert(0, str(Path(__file__).parent))
from known_chances import SMALL, corner, cube, finished

RUN = corner(0.003)


def stored(path, steps, run=RUN, settings=SMALL):
    estimation = Estimation.begin(cube(), run, settings)
    for _ in range(steps):
        estimation.advance()
    path.write_bytes(estimation_bytes(estimation))
    return path


@pytest.fixture(scope="module")
def uninterrupted():
    return finished(cube(), RUN)


@pytest.mark.parametrize("steps", [0, 3, 20, 100])
def test_stored_estimation_goes_on_as_if_it_had_not_stopped(tmp_path, steps, uninterrupted):
    again = read_estimation(stored(tmp_path / "e.npz", steps), cube(), RUN, SMALL)
    while not again.is_done:
        again.advance()
    assert again.estimate == uninterrupted


def test_stored_plain_sampling_goes_on(tmp_path):
    run = corner(0.1)
    again = read_estimation(stored(tmp_path / "e.npz", 9, run), cube(), run, SMALL)
    while not again.is_done:
        again.advance()
    assert again.estimate == finished(cube(), run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy_sha256": "other"}, "another policy file"),
        ({"code_sha256": "other"}, "another code of the target"),
        ({"name": "other"}, "another target"),
    ],
)
def test_other_target_is_refused(tmp_path, change, message):
    path = stored(tmp_path / "e.npz", 3)
    with pytest.raises(CampaignError, match=message):
        read_estimation(path, cube(**change), RUN, SMALL)


@pytest.mark.parametrize("change", [{"seed": 2}, {"replicates": 9}, {"max_episodes": 10**6}])
def test_other_settings_are_refused(tmp_path, change):
    path = stored(tmp_path / "e.npz", 3)
    with pytest.raises(CampaignError, match="is an estimate with another"):
        read_estimation(path, cube(), RUN, replace(SMALL, **change))


def changed(path, **arrays):
    """The file with other arrays in it."""
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files} | arrays
    data = io.BytesIO()
    np.savez(data, **{name: array for name, array in content.items() if array is not None})
    path.write_bytes(data.getvalue())
    return path


@pytest.mark.parametrize(
    "damage",
    [
        {"facts": np.zeros(3, np.uint8)},
        {"facts": np.frombuffer(b"[1]", np.uint8)},
        {"counts": np.zeros(3, np.int64)},
        {"counts": np.array([9, 0, 0, 0, 0, 0, 0])},
        {"counts": np.array([2, 0, 1600, 0, 10, 20, 2000])},
        {"counts": np.array([0, 0, 10**6, 0, 10, 0, 2000])},
        {"first_scores": np.zeros(5)},
        {"climb_step": None},
        {"climb_step": np.array([-1])},
        {"climb_uniform": np.full((8, 20, 2), 2.0)},
        {"climb_scores": np.full((8, 20), np.nan)},
        {"climb_seeds": np.full((8, 20), 2**63, np.uint64)},
        {"climb_thresholds": np.full(8, np.nan)},
        {"climb_log_probabilities": np.full(8, 1.0)},
        {"climb_sizes": np.full((8, 2), np.inf)},
        {"climb_walks": np.ones((8, 20))},
    ],
)
def test_damaged_file_is_refused(tmp_path, damage):
    path = changed(stored(tmp_path / "e.npz", 20), **damage)
    with pytest.raises(CampaignError, match="holds no estimate"):
        read_estimation(path, cube(), RUN, SMALL)


def test_file_that_is_something_else_is_refused(tmp_path):
    (tmp_path / "e.npz").write_text("hello")
    with pytest.raises(CampaignError, match="holds no estimate"):
        read_estimation(tmp_path / "e.npz", cube(), RUN, SMALL)
    with pytest.raises(CampaignError, match="is a folder"):
        read_estimation(tmp_path, cube(), RUN, SMALL)
