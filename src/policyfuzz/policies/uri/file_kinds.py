"""What a file is, told from its first bytes: the names of model files are often wrong."""

import zipfile
from pathlib import Path

from policyfuzz.errors import PolicyError

#: Kinds that no scheme reads as they are, and what to do about them.
PICKLED_MODULE = "a pickled PyTorch module or its weights (torch.save)"
PICKLE = "a pickle"

_BY_SUFFIX = {
    ".onnx": "onnx",
    ".pt": "torchscript",
    ".pth": "torchscript",
    ".ts": "torchscript",
    ".jit": "torchscript",
    ".pt2": "torchscript",
    ".zip": "sb3",
    ".npz": "npz",
    ".py": "py",
}
_SAVE_AS_SCRIPT = (
    "save it as TorchScript, torch.jit.script(model.eval()).save('model.ts'), or give a Python file with"
    " a function that builds and returns the module: py:FILE.py:FUNCTION"
)


def suggestion(place: str) -> str | None:
    """The URI that was probably meant by the bare path `place`; None for what is no path to a model."""
    if ".py:" in place:
        return f"py:{place}"
    path = Path(place.partition("?")[0]).expanduser()
    scheme = scheme_of(path) if path.is_file() else None
    scheme = scheme or _BY_SUFFIX.get(path.suffix.lower())
    if scheme is None:
        return None
    return f"py:{place}:FUNCTION" if scheme == "py" else f"{scheme}:{place}"


def scheme_of(path: Path) -> str | None:
    """The scheme that reads the file at `path`, judged by its content; None if that does not tell."""
    kind = _content(path)
    return None if kind in (None, PICKLE, PICKLED_MODULE) else kind


def not_a_file_of(scheme: str, path: Path, reason: str) -> PolicyError:
    """The error for a file that `scheme` cannot read for `reason`, with the way that would work."""
    kind = _content(path)
    if kind in (PICKLED_MODULE, PICKLE):
        return PolicyError(f"{path} is {kind}, which {scheme}: cannot read", _SAVE_AS_SCRIPT)
    if kind is not None and kind != scheme:
        return PolicyError(
            f"{path} is no file for {scheme}: ({reason})", hint=f"did you mean {suggestion(str(path))}?"
        )
    return PolicyError(f"{path} cannot be read by {scheme}: ({reason})", hint="the file may be damaged")


def _content(path: Path) -> str | None:
    with path.open("rb") as file:
        start = file.read(4)
    if path.suffix == ".py":
        return "py"
    if start[:2] == b"PK":
        return _archive(path)
    if start[:1] == b"\x80":
        return PICKLED_MODULE if path.suffix in (".pt", ".pth") else PICKLE
    # the first field of an ONNX file is its format version, a small number
    return "onnx" if len(start) > 1 and start[0] == 0x08 and 0 < start[1] < 0x40 else None


def _archive(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return None
    inner = {name.partition("/")[2] for name in names}
    if "data" in names and any(name.endswith(".pth") for name in names):
        return "sb3"
    if "constants.pkl" in inner or "archive_format" in inner:
        return "torchscript"
    if "data.pkl" in inner:
        return PICKLED_MODULE
    return "npz" if names and all(name.endswith(".npy") for name in names) else None
