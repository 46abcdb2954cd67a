"""The shipped networks, and folders of networks."""

from itertools import pairwise

import numpy as np
import pytest

from policyfuzz import Runner, load_target
from policyfuzz.core.errors import PolicyError
from policyfuzz.targets.acasxu import encounter


def write_network(path, rng, sizes=(5, 6, 5), spoil=None):
    """Write a random .nnet file with the usual normalisation."""
    lines = ["// a test network", f"{len(sizes) - 1},{sizes[0]},{sizes[-1]},{max(sizes)},"]
    lines += [",".join(map(str, sizes)) + ",", "0,"]
    centre = [*encounter.OBSERVATION_CENTRE[: sizes[0]], 0.0]
    span = [*encounter.OBSERVATION_SPAN[: sizes[0]], 1.0]
    for row in ([-1e9] * sizes[0], [1e9] * sizes[0], centre, span):
        lines.append(",".join(map(repr, map(float, row))) + ",")
    for n_in, n_out in pairwise(sizes):
        lines += [",".join(map(repr, row)) + "," for row in rng.normal(size=(n_out, n_in)).tolist()]
        lines += [f"{value!r}," for value in rng.normal(size=n_out).tolist()]
    if spoil is not None:
        lines[-1] = spoil
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for advisory in range(1, 6):
        write_network(tmp_path / f"net_{advisory}_2.nnet", rng)
    return tmp_path


def test_folder_of_nnet_files_acts(folder):
    target = load_target("acasxu", f"acasxu:{folder}")
    inputs = target.inputs.sample(np.random.default_rng(1), 10)
    assert len(Runner(target)(inputs, np.zeros(10, np.uint64))) == 10


def test_other_weights_have_another_digest(folder):
    before = load_target("acasxu", f"acasxu:{folder}").policy_sha256
    write_network(folder / "net_3_2.nnet", np.random.default_rng(9))
    assert load_target("acasxu", f"acasxu:{folder}").policy_sha256 != before


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda folder, rng: (folder / "net_4_2.nnet").unlink(), r"lacks networks .* \[4\]"),
        (
            lambda folder, rng: write_network(folder / "net_1_2.nnet", rng, spoil="nan,"),
            "net_1_2.nnet: .*NaN",
        ),
        (lambda folder, rng: write_network(folder / "net_1_2.nnet", rng, (4, 6, 5)), "net_1_2.nnet"),
        (lambda folder, rng: write_network(folder / "net_1_2.nnet", rng, (5, 6, 3)), "expected 5 to 5"),
        (lambda folder, rng: write_network(folder / "net_1_2.nnet", rng, (5, 7, 5)), "must have one shape"),
        (lambda folder, rng: (folder / "net_1_2.nnet").write_text("1,2,"), "is not a .nnet file"),
        (lambda folder, rng: (folder / "net_1_2.nnet").write_bytes(b"\xff\xfe\x00"), "is not a .nnet file"),
        (lambda folder, rng: (folder / "net_1_2.nnet").rename(folder / "net_1_2.onnx"), "net_1_2.onnx"),
    ],
)
def test_damaged_folder_gets_a_message_that_names_the_file(folder, spoil, complaint):
    spoil(folder, np.random.default_rng(5))
    with pytest.raises(PolicyError, match=complaint):
        load_target("acasxu", f"acasxu:{folder}")


@pytest.mark.slow
def test_shipped_networks_avoid_88_percent_of_straight_flight_collisions():
    target = load_target("acasxu")
    drawn = target.inputs.sample(np.random.default_rng(987_654_321), 200_000)
    inputs = drawn[target.inputs.is_valid(drawn)]
    inputs = inputs[encounter.is_solvable(inputs) & ~encounter.survives_turning(inputs, 0)]
    runner = Runner(target)
    crashed = np.concatenate(
        [runner(part, np.zeros(len(part), np.uint64)).crashed for part in np.array_split(inputs, 10)]
    )
    assert len(inputs) > 4000
    assert 1 - crashed.mean() >= 0.88


@pytest.mark.parametrize("bucket", range(1, 10))
def test_every_shipped_bucket_loads_and_acts(bucket):
    target = load_target(f"acasxu:bucket={bucket}")
    inputs = target.inputs.sample(np.random.default_rng(1), 50)
    assert np.isfinite(Runner(target)(inputs, np.zeros(50, np.uint64)).returns).all()
