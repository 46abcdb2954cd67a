import io

import numpy as np
import pytest

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.policies.npz import read_npz, write_npz


def test_bank_survives_its_file(tmp_path):
    bank = MlpBank.from_parameters(np.arange(8.0)[None], (3, 2), "tanh", "tanh")
    write_npz(tmp_path / "networks.npz", bank)
    assert read_npz(tmp_path / "networks.npz").sha256 == bank.sha256


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"parameters": np.zeros((1, 8))},
        {"parameters": np.zeros((1, 8)), "sizes": np.array(3)},
        {"parameters": np.zeros((1, 8)), "sizes": np.array([3.9, 2.0])},
        {"parameters": np.zeros((1, 8), complex), "sizes": np.array([3, 2])},
        {"parameters": np.array([["a"] * 8]), "sizes": np.array([3, 2])},
        {"parameters": np.zeros((1, 9)), "sizes": np.array([3, 2])},
        {"parameters": np.full((1, 8), np.nan), "sizes": np.array([3, 2])},
        {"parameters": np.zeros((1, 8)), "sizes": np.array([3, 2]), "output": np.array("swish")},
    ],
)
def test_file_that_holds_no_networks_is_refused(tmp_path, arrays):
    np.savez(tmp_path / "networks.npz", **arrays)
    with pytest.raises(PolicyError):
        read_npz(tmp_path / "networks.npz")


@pytest.mark.parametrize("content", ["text", "array"])
def test_file_of_another_kind_is_refused(tmp_path, content):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    (tmp_path / "x.npz").write_bytes(b"hello" if content == "text" else buffer.getvalue())
    with pytest.raises(PolicyError, match=r"x\.npz holds no networks"):
        read_npz(tmp_path / "x.npz")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(PolicyError, match="no file"):
        read_npz(tmp_path / "nowhere.npz")
