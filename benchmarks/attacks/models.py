"""Attack by model files: pickles that run code where their format, or the user, asks for nothing of it."""

import base64
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.attacks.victim import Outcome

_TARGET = "gym:CartPole-v1"


class _Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def untrusted_models(work: Path, times: int, _rng: np.random.Generator) -> Outcome:
    """Files of each format whose pickles make a file; without --trust none may appear."""
    work.mkdir()
    done, differences = 0, []
    for number in range(times):
        scheme, write = list(_FORMATS.items())[number % len(_FORMATS)]
        verb = ("check", "fuzz")[number // len(_FORMATS) % 2]
        mark, model = work / f"ran-{number}", work / f"{number}.{scheme}"
        payload = pickle.dumps(_Touch(mark))
        pickle.loads(payload)
        done += mark.exists()  # the weapon works
        mark.unlink()
        write(model, payload)
        command = [sys.executable, "-m", "policyfuzz", verb, _TARGET, "--policy", f"{scheme}:{model}"]
        ended = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if mark.exists():
            differences.append(f"{model.name}: its code was run by {verb}")
        if ended.returncode != 2 or "Traceback" in ended.stderr:
            differences.append(f"{model.name}: exit code {ended.returncode} of {verb}, {ended.stderr!r}")
    return Outcome("hostile model without --trust", done, tuple(differences))


def _write_sb3(path: Path, payload: bytes) -> None:
    entry = {":type:": "<class 'object'>", ":serialized:": base64.b64encode(payload).decode()}
    names = ("policy_class", "policy_kwargs", "observation_space", "action_space", "lr_schedule")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(dict.fromkeys(names, entry)))
        archive.writestr("policy.pth", payload)
        archive.writestr("_stable_baselines3_version", "2.9.2")


def _write_torchscript(path: Path, payload: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data.pkl", "constants.pkl"):
            archive.writestr(f"model/{name}", payload)
        archive.writestr("model/version", "3\n")


def _write_npz(path: Path, payload: bytes) -> None:
    """Arrays of objects are pickles: `payload` takes the place of the real one."""
    header = b"\x93NUMPY\x01\x00"
    about = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    about += b" " * (63 - (len(header) + 2 + len(about)) % 64) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("parameters", "sizes", "hidden", "output"):
            archive.writestr(f"{name}.npy", header + len(about).to_bytes(2, "little") + about + payload)


def _write_onnx(path: Path, payload: bytes) -> None:
    path.write_bytes(payload)


_FORMATS: dict[str, Callable[[Path, bytes], None]] = {
    "sb3": _write_sb3,
    "torchscript": _write_torchscript,
    "npz": _write_npz,
    "onnx": _write_onnx,
}
