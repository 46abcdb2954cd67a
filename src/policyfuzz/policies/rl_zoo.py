"""What a model was trained with, as the files say that RL Zoo writes beside it: config.yml and args.yml.

Only plain values are read. Tags that would make Python objects are looked through, never followed.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.core.files import read_regular

#: Files, the most specific last.
_FILES = ("args.yml", "config.yml", "env_kwargs.yml")
#: Bytes and values of a file at most: such files are small.
_LARGEST_FILE, _MOST_VALUES = 65536, 5000
#: Packages that have another name today.
_RENAMED = {"gym.": "gymnasium.", "utils.wrappers.": "rl_zoo3.wrappers."}


def training_notes(model: Path, has_statistics: bool) -> tuple[str, ...]:
    """What the environment of `model`, a zip, had in training, and the option that gives it the same here."""
    files = list(_files(model))
    if files and find_spec("yaml") is None:
        return (f"{files[0].name} beside it was not read: pip install pyyaml",)
    notes: dict[str, None] = {}
    for path in files:
        for note in _notes(_values(path), has_statistics):
            notes[f"trained with {note} ({path.name})"] = None
    return tuple(notes)


def _files(model: Path) -> Iterator[Path]:
    """The files of `model`: beside it, or in the folder of its environment beside it."""
    folders = [model.parent]
    if not any((model.parent / name).is_file() for name in _FILES):
        inner = [path.parent for path in sorted(model.parent.glob("*/config.yml"))]
        named = [folder for folder in inner if folder.name == model.stem]
        folders = named or (inner if len(inner) == 1 else [])
    for folder in folders:
        yield from (folder / name for name in _FILES if (folder / name).is_file())


def _notes(values: Mapping[str, Any], has_statistics: bool) -> Iterator[str]:
    wrappers = values.get("env_wrapper") or []
    for wrapper in wrappers if isinstance(wrappers, list) else [wrappers]:
        yield from _wrapper_notes(wrapper)
    arguments = values.get("env_kwargs")
    for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
        yield f"{name}={value}: gym:ENVIRONMENT:env.{name}={value} sets it"
    frames = values.get("frame_stack")
    if isinstance(frames, int) and frames > 1:
        yield (
            f"{frames} stacked frames: the environment needs a wrapper that stacks them,"
            " gym:ENVIRONMENT:wrap=FILE.py:FUNCTION"
        )
    if values.get("normalize") and not has_statistics:
        yield "VecNormalize, whose statistics were not found: sb3:FILE.zip?normalize=FILE.pkl names them"


def _wrapper_notes(wrapper: Any) -> Iterator[str]:
    arguments = ""
    if isinstance(wrapper, Mapping) and len(wrapper) == 1:
        ((wrapper, given),) = wrapper.items()
        arguments = f" with {given}" if given else ""
    if not isinstance(wrapper, str):
        return
    name = wrapper
    for old, new in _RENAMED.items():
        name = new + name.removeprefix(old) if name.startswith(old) else name
    module, _, kind = name.rpartition(".")
    if arguments:
        yield f"the wrapper {wrapper}{arguments}: gym:ENVIRONMENT:wrap=FILE.py:FUNCTION can make it"
    else:
        yield f"the wrapper {wrapper}: gym:ENVIRONMENT:wrap={module}:{kind} adds it"


def _values(path: Path) -> dict[str, Any]:
    """The mapping in a file; empty if it holds none."""
    yaml = extras.load("yaml", "sb3")
    try:
        content = read_regular(path, _LARGEST_FILE)
        values = _Reader().read(yaml.compose(content, Loader=yaml.SafeLoader))
    except (UsageError, yaml.YAMLError, ValueError, TypeError, RecursionError):  # no such file after all
        return {}
    if not isinstance(values, dict):
        return {}
    return {"env_kwargs": values} if path.name == "env_kwargs.yml" else values


class _Reader:
    """Turns nodes of YAML into plain values."""

    def __init__(self) -> None:
        self._read = 0

    def read(self, node: Any) -> Any:
        """The value of `node`, whatever its tag would make of it."""
        self._read += 1
        if self._read > _MOST_VALUES:  # references can multiply what a small file says
            raise ValueError("too many values")
        if node is None:
            return None
        if node.id == "scalar":
            return _scalar(node.tag.rpartition(":")[2], node.value)
        if node.id == "mapping":
            return {str(self.read(key)): self.read(value) for key, value in node.value}
        if node.tag.endswith("OrderedDict"):  # its arguments: one list of pairs
            pairs = self.read(node.value[0]) if node.value else []
            return {str(key): value for key, value in pairs}
        return [self.read(one) for one in node.value]


def _scalar(kind: str, text: str) -> Any:
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on")
    if kind in ("int", "float"):
        try:
            return int(text) if kind == "int" else float(text)
        except ValueError:  # 0x10 and the like
            return text
    return text
