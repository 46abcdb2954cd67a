"""Policies by URI: the scheme says what kind it is, the rest is a file or name with options.

`sb3:FILE.zip`, `onnx:FILE`, `torchscript:FILE`, `npz:FILE`, `py:MODULE:FUNCTION` and `py:FILE.py:FUNCTION`.
A package adds a scheme with an entry point of the group `policyfuzz.policies`: its name is the scheme, and
its object a function `load(rest, spaces, trust) -> LoadedPolicy`, where `rest` is the text after the colon.
"""

import difflib
import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from policyfuzz.core.code_files import search_last
from policyfuzz.core.errors import PolicyError, UsageError, blamed_on, unknown_name
from policyfuzz.core.files import absolute_path, is_file, names_in, open_regular, read_regular
from policyfuzz.core.zip_files import DamagedZip, ZipReader
from policyfuzz.policies.loaded import LoadedPolicy, Spaces

GROUP = "policyfuzz.policies"
Loader = Callable[[str, Spaces, bool], LoadedPolicy]

#: Scheme to the module that has `load`; imported only when it is used.
_MODULES = {
    "npz": "policyfuzz.policies.npz",
    "onnx": "policyfuzz.policies.onnx",
    "py": "policyfuzz.policies.python",
    "sb3": "policyfuzz.policies.sb3",
    "torchscript": "policyfuzz.policies.torch",
}
#: Schemes of policies that are code, or files that can run code while they are loaded.
_RUN_CODE = ("py", "sb3", "torchscript")
#: Other names for these schemes, too different for a did-you-mean by spelling.
_OTHER_NAMES = {
    "jit": "torchscript",
    "numpy": "npz",
    "pt": "torchscript",
    "python": "py",
    "pytorch": "torchscript",
    "stable-baselines3": "sb3",
    "stable_baselines3": "sb3",
    "torch": "torchscript",
}
#: Of a model file, and of what an archive unpacks to.
MOST_BYTES = 1 << 30
#: Kinds of file that no scheme reads.
_PICKLED_MODULE = "a pickled PyTorch module or its weights (torch.save)"
_PICKLE = "a pickle"

#: Ending of a file to the scheme that usually reads it.
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


def load_policy(uri: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:
    """The policy at `uri`, after a trial in `spaces`.

    `trust` allows files that can run code: pickles, and TorchScript. Without it, they are not loaded.
    """
    scheme, colon, rest = uri.partition(":")
    meant = None if scheme in _MODULES else suggestion(uri)
    if not colon or len(scheme) == 1:  # one letter is the drive of a Windows path
        raise _no_scheme(uri, meant)
    if trust:
        search_last()  # a pickle may need modules of the user
    loaded = _loader(scheme, meant)(rest, spaces, trust)
    if not isinstance(loaded, LoadedPolicy):
        raise PolicyError(f"the loader of {scheme}: returned {type(loaded).__name__}, expected LoadedPolicy")
    return loaded


def is_data(uri: str) -> bool:
    """True if no code is run to load `uri`, except by an installed package that brings its scheme."""
    scheme, colon, _ = uri.partition(":")
    return bool(colon) and scheme not in _RUN_CODE and (scheme in _MODULES or scheme in schemes())


def schemes() -> tuple[str, ...]:
    """All schemes, including those of installed packages."""
    return tuple(sorted({*_MODULES, *(point.name for point in entry_points(group=GROUP))}))


@dataclass(frozen=True, slots=True)
class Address:
    """PLACE?option&option=value, taken apart.

    Not by urllib.parse, which would change paths: it decodes + and %, and cuts a place at #.
    """

    scheme: str
    place: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, scheme: str, rest: str, known: Mapping[str, str]) -> "Address":
        """`rest` of a URI of `scheme`, whose options are `known`: name to what it means."""
        place, _, text = rest.partition("?")
        options: dict[str, str] = {}
        for item in filter(None, text.split("&")):
            key, _, value = item.partition("=")
            if key not in known:
                raise unknown_name(f"option of {scheme}:", key, known)
            if key in options:
                raise PolicyError(f"option {key} of {scheme}:{rest} is given twice")
            options[key] = value
        if not place:
            raise PolicyError(f"{scheme}:{rest} names no file", hint=f"write {scheme}:FILE")
        return cls(scheme, place, options)

    def file(self) -> Path:
        """The file at this address, which exists; absolute."""
        path = absolute_path(self.place, PolicyError)
        if is_file(path):
            return path
        folder, names = path.parent, names_in(path.parent)
        if (not path.name or path.name in names) and path.is_dir():
            raise PolicyError(f"{path} is a folder, expected a file", hint=_inside(self.scheme, path))
        close = difflib.get_close_matches(path.name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "" if names else f"there is no folder {folder}"
        raise PolicyError(f"no file {str(path)!r} for policy {f'{self.scheme}:{self.place}'!r}", hint)

    def uri(self, place: str | Path) -> str:
        """The whole URI again, with `place` instead of the one that was given."""
        text = "&".join(f"{key}={value}" if value else key for key, value in self.options.items())
        return f"{self.scheme}:{place}?{text}" if text else f"{self.scheme}:{place}"

    def sha256(self, *contents: bytes) -> str:
        """Digest of `contents`; of one alone without options, it is what `sha256sum` says of the file."""
        if len(contents) == 1 and not self.options:
            return hashlib.sha256(contents[0]).hexdigest()
        parts = [hashlib.sha256(content).hexdigest() for content in contents]
        return hashlib.sha256(repr((parts, sorted(self.options.items()))).encode()).hexdigest()


def suggestion(place: str) -> str | None:
    """The URI that was probably meant by the bare path `place`; None for what is no path to a model."""
    if ".py:" in place:
        return f"py:{place}"
    path = absolute_path(place.partition("?")[0])
    scheme = scheme_of(path) if is_file(path) else None
    scheme = scheme or _BY_SUFFIX.get(path.suffix.lower())
    if scheme is None:
        return None
    return f"py:{place}:FUNCTION" if scheme == "py" else f"{scheme}:{place}"


def read_model(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a model file, which a stranger may have made."""
    return read_regular(path, most_bytes, PolicyError)


def scheme_of(path: Path) -> str | None:
    """The scheme that reads the file at `path`, judged by its content; None if that does not tell."""
    kind = _content(path)
    return None if kind in (None, _PICKLE, _PICKLED_MODULE) else kind


def not_a_file_of(scheme: str, path: Path, reason: str) -> PolicyError:
    """The error for a file that `scheme` cannot read; the first line of `reason` says why."""
    kind, reason = _content(path), reason.strip().partition("\n")[0]
    if kind in (_PICKLED_MODULE, _PICKLE):
        return PolicyError(f"{path} is {kind}, which {scheme}: cannot read", _SAVE_AS_SCRIPT)
    if kind is not None and kind != scheme:
        return PolicyError(
            f"{path} is no file for {scheme}: ({reason})", hint=f"did you mean {suggestion(str(path))}?"
        )
    return PolicyError(f"{path} cannot be read by {scheme}: ({reason})", hint="the file may be damaged")


def _loader(scheme: str, meant: str | None) -> Loader:
    if scheme in _MODULES:
        load: Loader = importlib.import_module(_MODULES[scheme]).load
        return load
    points = list(entry_points(group=GROUP, name=scheme))
    if points:
        return _from_package(scheme, points)
    other = _OTHER_NAMES.get(scheme.lower(), scheme.lower())
    if other in _MODULES:
        raise UsageError(f"unknown policy scheme {scheme!r}", hint=f"did you mean {other!r}?")
    error = unknown_name("policy scheme", scheme, schemes())
    raise UsageError(error.message, hint=f"did you mean {meant}?" if meant else error.hint)


def _from_package(scheme: str, points: list[EntryPoint]) -> Loader:
    """The loader that an installed package brings for `scheme`."""
    names = sorted(f"{point.value} of {point.dist.name if point.dist else 'unknown'}" for point in points)
    if len(set(names)) > 1:
        raise PolicyError(
            f"several packages bring policy scheme {scheme!r}: {', '.join(names)}",
            hint="uninstall all but one",
        )
    whose = f"policy scheme {scheme}: ({names[0]})"
    with blamed_on(whose):
        load: Loader = points[0].load()

    def guarded(rest: str, spaces: Spaces, trust: bool) -> LoadedPolicy:
        with blamed_on(whose):
            return load(rest, spaces, trust)

    return guarded


def _no_scheme(uri: str, meant: str | None) -> UsageError:
    if meant is not None:
        return UsageError(f"policy {uri!r} does not say what it is", hint=f"did you mean {meant}?")
    close = unknown_name("policy scheme", uri, schemes()).hint
    return UsageError(f"policy {uri!r} is not of the form SCHEME:FILE", hint=close)


def _inside(scheme: str, folder: Path) -> str:
    files = [name for name in names_in(folder) if is_file(folder / name)]
    return f"did you mean {scheme}:{folder / files[0]}?" if len(files) == 1 else "name the file in it"


def _content(path: Path) -> str | None:
    try:
        with open_regular(path, MOST_BYTES) as file:
            start = file.read(4)
    except (UsageError, OSError):
        return None
    if path.suffix == ".py":
        return "py"
    if start[:2] == b"PK":
        return _archive(path)
    if start[:1] == b"\x80":
        return _PICKLED_MODULE if path.suffix in (".pt", ".pth") else _PICKLE
    # the first field of an ONNX file is its format version, a small number
    return "onnx" if len(start) > 1 and start[0] == 0x08 and 0 < start[1] < 0x40 else None


def _archive(path: Path) -> str | None:
    try:
        with open_regular(path, MOST_BYTES) as file:
            names = ZipReader(file).names
    except (DamagedZip, UsageError, OSError):
        return None
    inner = {name.partition("/")[2] for name in names}
    if "data" in names and any(name.endswith(".pth") for name in names):
        return "sb3"
    if "constants.pkl" in inner or "archive_format" in inner:
        return "torchscript"
    if "data.pkl" in inner:
        return _PICKLED_MODULE
    return "npz" if names and all(name.endswith(".npy") for name in names) else None
