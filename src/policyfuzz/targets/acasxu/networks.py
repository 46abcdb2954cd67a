"""The controller: five networks, one for each previous advisory, and where their weights come from."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyError, PolicyFuzzError
from policyfuzz.policies.mlp import Layers, MlpBank
from policyfuzz.policies.npz import read_npz, shipped
from policyfuzz.targets.acasxu.encounter import ADVISORIES, OBSERVATION_CENTRE, OBSERVATION_SPAN
from policyfuzz.targets.acasxu.weights import read_nnet, read_onnx

BUCKETS = 9
#: Previous advisory and time bucket, both counted from one, as the public files name them.
_FILE_NAME = re.compile(r"_([1-5])_([1-9])(?:_batch_2000)?\.(onnx|nnet)$")


class AdvisoryPolicy:
    """Gives the advisory with the lowest score; the previous advisory chooses the network."""

    def __init__(self, bank: MlpBank) -> None:
        self._bank = bank
        self._previous = np.zeros(0, np.int64)

    def begin(self, count: int) -> None:
        self._previous = np.zeros(count, np.int64)

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        advisories: NDArray[np.int64] = self._bank(observations, self._previous[rows]).argmin(axis=1)
        self._previous[rows] = advisories
        return advisories


@cache
def shipped_networks(bucket: int) -> MlpBank:
    """The five networks of time `bucket` (1-9) that come with the package."""
    every = read_npz(shipped("acasxu/networks.npz"))
    return replace(every, parameters=every.parameters[bucket - 1 :: BUCKETS].copy())


def networks_in(folder: Path, bucket: int) -> MlpBank:
    """The five networks of time `bucket` in a folder of ONNX or .nnet files."""
    if not folder.is_dir():
        raise PolicyError(
            f"no folder {str(folder)!r} with ACAS Xu networks",
            hint="--policy acasxu:DIR wants a folder of .onnx or .nnet files",
        )
    files = {
        int(match[1]): path
        for path in sorted(folder.iterdir())
        if (match := _FILE_NAME.search(path.name)) and int(match[2]) == bucket
    }
    missing = [number for number in range(1, len(ADVISORIES) + 1) if number not in files]
    if missing:
        raise PolicyError(
            f"{folder} lacks networks of bucket {bucket} for previous advisories {missing}",
            hint="expected names that end in _A_B.onnx or _A_B.nnet, A the advisory 1-5, B the bucket 1-9",
        )
    return MlpBank.from_layers([_read(files[number]) for number in sorted(files)])


def _read(path: Path) -> Layers:
    """Layers of one file, for the observations of our simulator."""
    try:
        if path.suffix == ".onnx":
            layers: Sequence[tuple[NDArray[Any], NDArray[Any]]] = read_onnx(path)
        else:
            network = read_nnet(path)
            weights, bias = network.layers[0]
            shift = (OBSERVATION_CENTRE - network.input_means) / network.input_ranges
            stretch = OBSERVATION_SPAN / network.input_ranges
            layers = [(stretch[:, None] * weights, bias + shift @ weights), *network.layers[1:]]
        bank = MlpBank.from_layers([layers])
    except PolicyFuzzError as error:
        raise PolicyError(f"{path.name}: {error.message}", error.hint) from error
    except ValueError as error:
        raise PolicyError(f"{path.name}: {error}", "expected 5 inputs and 5 outputs") from error
    if (bank.sizes[0], bank.sizes[-1]) != (5, len(ADVISORIES)):
        raise PolicyError(
            f"{path.name} maps {bank.sizes[0]} inputs to {bank.sizes[-1]} scores, expected 5 to 5",
            hint="is this an ACAS Xu network?",
        )
    return layers
