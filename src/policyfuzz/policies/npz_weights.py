"""Perceptrons in .npz files: the format of the models that come with the package."""

import zipfile
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from policyfuzz.errors import PolicyError
from policyfuzz.policies.mlp import MlpBank


def shipped(name: str) -> Traversable:
    """The file of a model that comes with the package, such as acasxu/networks.npz."""
    return resources.files("policyfuzz.models").joinpath(name)


def read_npz(file: Traversable) -> MlpBank:
    """The networks in `file`: parameters (networks, p), sizes, and the names of the activations if not ReLU.

    `hidden` and `output` name the activation of the hidden layers and of the last one.
    """
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            parameters, widths = archive["parameters"], archive["sizes"]
            if parameters.dtype.kind not in "fiu" or widths.dtype.kind not in "iu":
                raise ValueError(f"parameters are {parameters.dtype} and sizes {widths.dtype}")
            sizes = tuple(int(size) for size in widths)
            hidden, output = (
                str(archive[name]) if name in archive else default
                for name, default in (("hidden", "relu"), ("output", "linear"))
            )
            return MlpBank.from_parameters(parameters, sizes, hidden, output)
    except FileNotFoundError as error:
        raise PolicyError(f"no file {str(file)!r} with networks") from error
    except (OSError, ValueError, TypeError, KeyError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise PolicyError(
            f"{file.name} holds no networks: {error}",
            hint="expected an .npz file with numbers: parameters (networks, p) and whole sizes",
        ) from error


def write_npz(path: Path, bank: MlpBank) -> None:
    """Write `bank` into `path`, weights as float32."""
    np.savez_compressed(
        path,
        parameters=bank.parameters.astype(np.float32),
        sizes=np.array(bank.sizes, np.int64),
        hidden=bank.activations[0] if len(bank.activations) > 1 else "relu",
        output=bank.activations[-1],
    )
