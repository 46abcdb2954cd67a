"""The zip file of a saved model, written by any version of its packages."""

import base64
import binascii
import hashlib
import io
import json
import pickle
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.files import open_regular
from policyfuzz.core.zip_files import DamagedZip, ZipReader, read_arrays
from policyfuzz.policies.uri import MOST_BYTES, not_a_file_of, read_model

#: Where numpy keeps what arrays are pickled with; the name has changed with numpy 2.
_NUMPY_CORE = "numpy._core" if hasattr(np, "_core") else "numpy.core"
#: Of the parameters in JSON, and of a file of statistics: they hold a few observations at most.
MOST_PARAMETER_BYTES = 1 << 26
_MOST_TEXT_BYTES = 1 << 20
_SAVE_HINT = "expected the file that model.save(...) of stable-baselines3 or sb3-contrib has written"

#: Parameters that only one algorithm has, the most telling first.
_TELLING_KEYS = {
    "cg_max_steps": "TRPO",
    "top_quantiles_to_drop_per_net": "TQC",
    "n_quantiles": "QRDQN",
    "delta_std_schedule": "ARS",
    "target_policy_noise": "TD3",
    "exploration_rate": "DQN",
    "target_entropy": "SAC",
    "clip_range": "PPO",
    "gae_lambda": "A2C",
}
#: Parts of the module of a policy class that only one algorithm uses.
_TELLING_MODULES = {"recurrent": "RecurrentPPO", "maskable": "MaskablePPO", "crossq": "CrossQ"}

#: Every algorithm by the names that people use for it.
ALGORITHMS = {
    **{name.lower(): name for name in (*_TELLING_KEYS.values(), *_TELLING_MODULES.values(), "DDPG")},
    "maskable_ppo": "MaskablePPO",
    "ppo_mask": "MaskablePPO",
    "ppo_lstm": "RecurrentPPO",
    "recurrent_ppo": "RecurrentPPO",
}


@dataclass(frozen=True, slots=True)
class Archive:
    """A saved model, held as its bytes so that what acts is what was hashed."""

    path: Path  #: absolute
    content: bytes
    data: Mapping[str, Any]  #: parameters of the algorithm; what is no JSON stays pickled

    @classmethod
    def read(cls, path: Path) -> "Archive":
        """The archive at `path`, an absolute path to a file; nothing in it is unpickled."""
        check_names(path)
        content = read_model(path)
        try:
            data = json.loads(ZipReader(content).read("data", MOST_PARAMETER_BYTES))
        except (ValueError, RecursionError, DamagedZip) as error:
            raise PolicyError(
                f"the parameters in {path} cannot be read: {error}", "is the file damaged?"
            ) from error
        if not isinstance(data, dict) or "policy_class" not in data:
            raise PolicyError(f"the parameters in {path} name no policy class", _SAVE_HINT)
        return cls(path, content, data)

    @property
    def sha256(self) -> str:
        """Digest of the file."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def algorithm(self) -> str:
        """Name of the class that saved it, judged by its parameters; empty if unknown."""
        return _algorithm(self.data)

    @property
    def version(self) -> str:
        """The version of stable-baselines3 that saved it, empty if unknown."""
        return self._text("_stable_baselines3_version").strip()

    def unpickle(self, key: str) -> Any:
        """The parameter `key`, None if there is none; runs the code that its pickle brings along."""
        value = self.data.get(key)
        if not isinstance(value, dict) or ":serialized:" not in value:
            return value
        try:
            content = base64.b64decode(value[":serialized:"])
        except (binascii.Error, TypeError, ValueError) as error:
            raise PolicyError(f"{key} in {self.path.name} is damaged: {error}", _SAVE_HINT) from error
        return unpickled(content, f"{key} in {self.path.name}", self._python)

    def weights(self) -> dict[str, Any]:
        """Tensors of the policy by name, on the CPU."""
        torch = extras.load("torch", "sb3")
        try:
            stored = ZipReader(self.content).read("policy.pth", MOST_BYTES)
            if stored.startswith(b"PK"):  # and not the format before PyTorch 1.6
                ZipReader(stored).check_total(MOST_BYTES)
            weights = torch.load(io.BytesIO(stored), map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises many kinds for damaged or hostile files
            reason = str(error).partition(". ")[0]  # what follows tells programmers how to load it unsafely
            raise PolicyError(f"the weights in {self.path} cannot be read: {reason}", _SAVE_HINT) from error
        if not isinstance(weights, dict) or not all(isinstance(name, str) for name in weights):
            raise PolicyError(f"the weights in {self.path} are no tensors by name", _SAVE_HINT)
        return weights

    def recorded_return(self) -> float | None:
        """Mean return of the last episodes in training, or of the evaluation that made it the best model."""
        try:
            episodes = self.unpickle("ep_info_buffer")
            returns = [float(episode["r"]) for episode in episodes or ()]
        except (PolicyError, KeyError, TypeError, ValueError):
            returns = []  # optional, and that of another version may be unreadable
        finite = [value for value in returns if np.isfinite(value)]
        return float(np.mean(finite)) if finite else self._best_evaluation()

    def _best_evaluation(self) -> float | None:
        """From the file that EvalCallback keeps beside the best model."""
        evaluations = self.path.with_name("evaluations.npz")
        if self.path.stem != "best_model" or not evaluations.is_file():
            return None
        try:
            stored = read_arrays(read_model(evaluations, MOST_PARAMETER_BYTES), MOST_PARAMETER_BYTES)
            results = stored["results"].astype(np.float64)
        except (KeyError, TypeError, ValueError, DamagedZip, PolicyError):
            return None
        return float(results.mean(axis=1).max()) if results.ndim == 2 and results.size else None

    @property
    def _python(self) -> str:
        """The version of Python that saved it, empty if unknown."""
        lines = self._text("system_info.txt").splitlines()
        found = [line.partition("Python:")[2].strip() for line in lines if "Python:" in line]
        return found[0] if found else ""

    def _text(self, name: str) -> str:
        try:
            archive = ZipReader(self.content)
            return (
                archive.read(name, _MOST_TEXT_BYTES).decode(errors="replace") if name in archive.names else ""
            )
        except DamagedZip:
            return ""  # only for a reader


def check_names(path: Path) -> None:
    """Raise unless the file at `path` is an archive of stable-baselines3; looks at its names alone."""
    try:
        with open_regular(path, MOST_BYTES, PolicyError) as file:
            names = frozenset(ZipReader(file).names)
    except DamagedZip as error:
        raise not_a_file_of("sb3", path, f"no zip, or a damaged one: {error}") from error
    if not {"data", "policy.pth"} <= names:
        raise _unknown_zip(path, names)


def unpickled(content: bytes, what: str, saved_with: str = "") -> Any:
    """The object in `content`, which errors call `what`. Runs the code that the pickle brings along."""
    try:
        return _Unpickler(io.BytesIO(content)).load()
    except ModuleNotFoundError as error:
        raise PolicyError(
            f"{what} needs the module {error.name!r}, which cannot be imported",
            hint="run from the folder that holds it, put that folder on PYTHONPATH, or install it",
        ) from error
    except Exception as error:  # whatever the pickled classes raise
        made = f"it was saved with Python {saved_with}; " if saved_with else ""
        raise PolicyError(
            f"{what} cannot be read: {type(error).__name__}: {error}",
            hint=f"{made}this is Python {platform.python_version()}."
            " Save it again with this one, or export it to ONNX",
        ) from error


class _Unpickler(pickle.Unpickler):
    """Looks up renamed modules under the names that they have here."""

    def find_class(self, module: str, name: str) -> Any:
        top, _, rest = module.partition(".")
        if module.startswith("numpy.random.") or module == "gym.utils.seeding":
            return _Ignored
        if top == "gym":
            module = f"gymnasium.{rest}" if rest else "gymnasium"
        for core in ("numpy._core", "numpy.core"):
            if module == core or module.startswith(f"{core}."):
                module = _NUMPY_CORE + module.removeprefix(core)
                break
        return super().find_class(module, name)


class _Ignored:
    """Stands for a random generator: no network needs one to act, and other versions cannot be read."""

    def __init__(self, *args: object) -> None: ...

    def __setstate__(self, state: object) -> None: ...


def _algorithm(data: Mapping[str, Any]) -> str:
    policy_class = data["policy_class"]
    module = str(policy_class.get("__module__", "")) if isinstance(policy_class, dict) else ""
    for part, name in _TELLING_MODULES.items():
        if part in module:
            return name
    name = next((name for key, name in _TELLING_KEYS.items() if key in data), "")
    is_plain = data.get("policy_delay") == 1 and data.get("target_noise_clip") == 0.0
    return "DDPG" if name == "TD3" and is_plain else name


def _unknown_zip(path: Path, names: frozenset[str]) -> PolicyError:
    """The error for a zip with files `names` that stable-baselines3 did not write."""
    if "parameter_list" in names:
        return PolicyError(
            f"{path} was saved by stable-baselines 2, which needs TensorFlow",
            hint="export the policy to ONNX there, and use onnx:",
        )
    if "data" in names:
        return PolicyError(f"{path} holds no weights of a policy (policy.pth)", _SAVE_HINT)
    return not_a_file_of("sb3", path, "a zip, but not of stable-baselines3")
