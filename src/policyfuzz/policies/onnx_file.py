"""ONNX files as data: parsed, with the weights that lie in files beside them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.uri import MOST_BYTES, not_a_file_of, read_model

#: Graphs inside of graphs; control flow of real networks needs two or three.
_MOST_LEVELS = 16


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """A parsed network."""

    model: Any  #: ModelProto, with all weights inside
    content: bytes  #: the network in one piece
    parts: tuple[bytes, ...]  #: contents of the file and of the files with weights, to be hashed

    @classmethod
    def read(cls, path: Path) -> "OnnxFile":
        """The network in `path`, with the weights that lie in files beside it."""
        onnx, content = extras.load("onnx", "onnx"), read_model(path)
        try:
            model = onnx.load_model_from_string(content)
            outside = [tensor for tensor in _tensors(model.graph) if _is_outside(tensor)]
        except PolicyError:
            raise
        except Exception as error:  # the parser has no base class for its errors
            raise not_a_file_of("onnx", path, str(error) or type(error).__name__) from error
        if not outside:
            return cls(model, content, (content,))
        weights = _take_in(path, outside)
        return cls(model, bytes(model.SerializeToString()), (content, *weights))


def _take_in(path: Path, tensors: list[Any]) -> list[bytes]:
    """Put the weights of `tensors` into these, and return the contents of their files by name."""
    places = [{entry.key: _text(entry.value) for entry in tensor.external_data} for tensor in tensors]
    room, files = MOST_BYTES, {}
    for name in sorted({place.get("location", "") for place in places}):
        _check_location(path, name)
        files[name] = read_model(path.parent / name, room)
        room -= len(files[name])
    for tensor, place in zip(tensors, places, strict=True):
        tensor.raw_data = _slice(path, files[place.get("location", "")], place)
        tensor.ClearField("external_data")
        tensor.data_location = 0  # inside
    room_inside = sum(len(tensor.raw_data) for tensor in tensors)
    if room_inside > MOST_BYTES:  # many tensors may name the same bytes
        raise PolicyError(
            f"the weights of {path.name} have {room_inside:,} bytes, expected {MOST_BYTES:,} at most"
        )
    return list(files.values())


def _check_location(path: Path, name: str) -> None:
    """Raise unless `name` is that of a file in the folder of `path` or below, on every system."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    is_inside = not (posix.is_absolute() or windows.drive or windows.root or ".." in windows.parts)
    if not name or "\0" in name or not is_inside:
        raise PolicyError(
            f"{path.name} wants weights from {name!r}, outside of its folder",
            hint="a network may only name files beside it: export it again, with its weights there",
        )


def _text(value: str | bytes) -> str:
    """What should be text; protobuf gives bytes where it is none."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def _slice(path: Path, content: bytes, place: dict[str, str]) -> bytes:
    """The part of `content` that `place` asks for."""
    try:
        offset = int(place.get("offset") or 0)
        length = int(place.get("length") or len(content) - offset)
    except ValueError:
        offset = length = -1
    if not (0 <= offset <= offset + length <= len(content)):
        raise PolicyError(
            f"{path.name} wants bytes of {place.get('location')!r} that are not there",
            hint="is it the right file?",
        )
    return content[offset : offset + length]


def _is_outside(tensor: Any) -> bool:
    return bool(tensor.external_data) or tensor.data_location == 1


def _tensors(graph: Any, level: int = 0) -> Iterator[Any]:
    """All constant tensors of `graph`, and of the graphs inside of its nodes."""
    if level > _MOST_LEVELS:
        raise PolicyError(f"its graphs are nested more than {_MOST_LEVELS} deep", "is the file damaged?")
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
            for inner in (attribute.g, *attribute.graphs):
                if inner.node or inner.initializer:
                    yield from _tensors(inner, level + 1)
