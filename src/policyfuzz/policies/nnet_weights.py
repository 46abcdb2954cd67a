"""Reads networks in the .nnet text format, as weights."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError


@dataclass(frozen=True, slots=True)
class NNet:
    """A ReLU network and the normalisation that its inputs expect."""

    layers: list[tuple[NDArray[Any], NDArray[Any]]]  #: (weights (in, out), bias (out,)) of each layer
    input_means: NDArray[np.float64]  #: (in,)
    input_ranges: NDArray[np.float64]  #: (in,)


def read_nnet(path: Path) -> NNet:
    """The network in `path`."""
    try:
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("//")]
        rows = [np.array([float(item) for item in line.split(",") if item.strip()]) for line in lines]
        sizes = rows[1].astype(int)
        means, ranges = rows[5], rows[6]
        layers: list[tuple[NDArray[Any], NDArray[Any]]] = []
        cursor = 7
        for n_in, n_out in pairwise(sizes):
            weights = np.stack(rows[cursor : cursor + n_out])
            bias = np.concatenate(rows[cursor + n_out : cursor + 2 * n_out])
            if weights.shape != (n_out, n_in) or bias.shape != (n_out,):
                raise ValueError(f"layer {len(layers)} is not {n_out} by {n_in}")
            layers.append((weights.T, bias))
            cursor += 2 * n_out
        return NNet(layers, means[: sizes[0]], ranges[: sizes[0]])
    except (ValueError, IndexError) as error:
        raise PolicyError(f"{path} is not a .nnet file: {error}", hint="the file may be truncated") from error
