"""Model files that are damaged or made to harm, one function each: it writes the file into an empty folder.

A function returns the command line that reads it; the table at the end has them all.
"""

import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Hostile = Callable[[Path], list[str]]
GYM = "gym:CartPole-v1"
TABLE: dict[str, Hostile] = {}


def hostile(make: Hostile) -> Hostile:
    TABLE[make.__name__] = make
    return make


def policy(uri: str, target: str = GYM) -> list[str]:
    return ["check", target, "--policy", uri]


def trusted(uri: str, target: str = GYM) -> list[str]:
    return [*policy(uri, target), "--trust"]


def npz_bytes(**arrays: Any) -> bytes:
    data = io.BytesIO()
    np.savez(data, **(arrays or {"W0": np.ones((4, 2)), "b0": np.zeros(2)}))
    return data.getvalue()


def npz(folder: Path, content: bytes) -> list[str]:
    (folder / "p.npz").write_bytes(content)
    return policy("npz:p.npz")


def npy(header: str, data: bytes = b"\0" * 64, version: bytes = b"\x01\x00") -> bytes:
    text = header.encode("latin1").ljust(118) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


def zipped(members: dict[str, bytes], way: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", way) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def zeros_deflated(megabytes: int) -> bytes:
    """A deflate stream of that many zeros: one flushed piece, repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return piece * megabytes + packer.flush()


def bomb(name: str, said_size: int, megabytes: int = 3000, also: dict[str, bytes] | None = None) -> bytes:
    """A zip whose member `name` unpacks to `megabytes`, and says that it has `said_size` bytes."""
    stream, encoded = zeros_deflated(megabytes), name.encode()
    sizes = struct.pack("<LLL", 0, len(stream), said_size)
    local = b"PK\3\4" + struct.pack("<5H", 20, 0, 8, 0, 0) + sizes + struct.pack("<2H", len(encoded), 0)
    body = local + encoded + stream
    central = b"PK\1\2" + struct.pack("<6H", 20, 20, 0, 8, 0, 0) + sizes
    central += struct.pack("<5HLL", len(encoded), 0, 0, 0, 0, 0, 0) + encoded
    end = b"PK\5\6" + struct.pack("<4HLLH", 0, 0, 1, 1, len(central), len(body), 0)
    data = io.BytesIO(body + central + end)
    if also:
        with zipfile.ZipFile(data, "a") as archive:
            for other, content in also.items():
                archive.writestr(other, content)
    return data.getvalue()


def special(folder: Path, kind: str) -> Path:
    """A path that is no regular file of a sensible size."""
    path = folder / f"special-{kind}"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "zero":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "sparse":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "loop":
            path.symlink_to(path)
        case "dangling":
            path.symlink_to(folder / "nowhere")
    return path


# .npz


def _each_npz() -> Iterator[tuple[str, bytes]]:
    good = npz_bytes()
    yield "npz flipped byte of the data", flipped(good, good.index(b"\0\0\0\0\0\0\xf0?"))
    yield "npz flipped byte of the header", flipped(good, good.index(b"descr"))
    yield "npz flipped byte of the shape", good.replace(b"(4, 2)", b"(4, 9)")
    yield "npz cut in half", good[: len(good) // 2]
    yield "npz without its table", good[:-22]
    yield "npz empty", b""
    yield "npz text", b"weights: 1 2 3"
    yield "npz empty archive", zipped({})
    yield "npz that packs differently", zipped({"W0.npy": npy("{}")}, zipfile.ZIP_LZMA)
    yield "npz with a password", flipped_flag(zipped({"W0.npy": npy("{}")}))
    yield "npz bomb that tells", bomb("W0.npy", 0xFFFFFFF0, 1)
    yield "npz bomb that lies", bomb("W0.npy", 100)
    yield "npz with a table of gigabytes", good[:-10] + struct.pack("<L", 0xFFFFFF00) + good[-6:]
    yield "npz with a directory that is not there", good[:-6] + struct.pack("<L", 0x7FFFFF00) + good[-2:]
    headers = {
        "huge shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000)}",
        "overflowing shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
        "negative shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 8)}",
        "shape of text": "{'descr': '<f8', 'fortran_order': False, 'shape': ('a',)}",
        "huge items": "{'descr': '<U2000000000', 'fortran_order': False, 'shape': (1,)}",
        "no type": "{'descr': 'nonsense', 'fortran_order': False, 'shape': (8,)}",
        "pickles": "{'descr': '|O', 'fortran_order': False, 'shape': (8,)}",
        "no dictionary": "[1, 2, 3]",
        "open brackets": "(" * 110,
        "code": "__import__('os').mkdir('marker')",
        "records": "{'descr': [('a', '<f8'), ('b', '<f8')], 'fortran_order': False, 'shape': (4,)}",
    }
    for name, header in headers.items():
        yield f"npz header: {name}", zipped({"W0.npy": npy(header)})
    yield "npz of version 9", zipped({"W0.npy": npy("{}", version=b"\x09\x09")})
    yield "npz weights of text", npz_bytes(W0=np.array([["a", "b"]] * 4))
    yield "npz weights of dates", npz_bytes(W0=np.zeros((4, 2), "M8[s]"))
    yield "npz weights that are NaN", npz_bytes(W0=np.full((4, 2), np.nan))
    yield "npz weights of no rows", npz_bytes(W0=np.zeros((0, 2)))
    yield (
        "npz layer without number",
        npz_bytes(W99999999999999999999=np.ones((4, 2)), Wx=np.ones(2)),
    )
    yield "npz bank with negative sizes", npz_bytes(parameters=np.ones((1, 10)), sizes=np.array([-4, -2]))
    yield (
        "npz bank with huge sizes",
        npz_bytes(parameters=np.ones((1, 10)), sizes=np.array([1 << 62, 1 << 62])),
    )
    yield "npz bank with no networks", npz_bytes(parameters=np.ones((0, 10)), sizes=np.array([4, 2]))
    yield "npz bank with sizes in a square", npz_bytes(parameters=np.ones((1, 10)), sizes=np.array([[4, 2]]))
    yield (
        "npz bank with an activation of a thousand names",
        npz_bytes(parameters=np.ones((1, 10)), sizes=np.array([4, 2]), output=np.array(["x" * 99] * 999)),
    )


def flipped_flag(content: bytes) -> bytes:
    """`content` with its member marked as encrypted."""
    data, place = bytearray(content), content.index(b"PK\1\2")
    data[6] |= 1
    data[place + 8] |= 1
    return bytes(data)


for _name, _content in _each_npz():
    TABLE[_name] = lambda folder, content=_content: npz(folder, content)  # type: ignore[misc]


# what is no regular file, for every scheme

for _kind in ("fifo", "zero", "folder", "sparse", "loop", "dangling"):
    for _scheme in ("npz", "onnx", "sb3", "torchscript", "py"):

        def _special_file(folder: Path, kind: str = _kind, scheme: str = _scheme) -> list[str]:
            path = special(folder, kind)
            return trusted(f"py:{path.rename(folder / 'p.py')}:act" if scheme == "py" else f"{scheme}:{path}")

        TABLE[f"{_kind} as {_scheme}"] = _special_file
    for _target in ("bipedal", "coopnavi"):
        TABLE[f"{_kind} for {_target}"] = lambda folder, kind=_kind, target=_target: policy(  # type: ignore[misc]
            f"{target}:{special(folder, kind)}", target
        )
    TABLE[f"{_kind} as TOML"] = lambda folder, kind=_kind: [  # type: ignore[misc]
        *("check", GYM, "--input", str(special(folder, kind).rename(folder / "input.toml"))),
    ]


# stable-baselines3


def sb3(folder: Path, data: bytes | dict[str, Any], weights: bytes = b"", **others: bytes) -> list[str]:
    text = data if isinstance(data, bytes) else json.dumps({"policy_class": {}} | data).encode()
    (folder / "m.zip").write_bytes(zipped({"data": text, "policy.pth": weights} | others))
    return trusted("sb3:m.zip")


def _each_sb3() -> Iterator[tuple[str, bytes | dict[str, Any]]]:
    yield "sb3 deep JSON", b'{"policy_class": ' + b"[" * 100_000
    yield "sb3 deep objects", b'{"a":' * 50_000
    yield "sb3 JSON cut off", b'{"policy_class": {"a": '
    yield "sb3 JSON list", b"[1, 2]"
    yield "sb3 JSON number", b"1e999"
    yield "sb3 no UTF-8", b"\xff\xfe\x00"
    yield "sb3 huge number", b'{"policy_class": ' + b"9" * 6000 + b"}"
    yield "sb3 empty data", b""
    for value in (None, 7, "text", [], [[]], {":serialized:": 5}, {":serialized:": "no base64"}):
        yield f"sb3 policy_class is {value}", {"policy_class": value}
        yield f"sb3 policy_kwargs are {value}", {"policy_kwargs": value, "observation_space": value}
    yield "sb3 buffer of nonsense", {"ep_info_buffer": [{"r": "x"}, 3]}
    yield "sb3 algorithm of nonsense", {"policy_class": {"__module__": ["recurrent"]}, "clip_range": {}}


for _name, _data in _each_sb3():
    TABLE[_name] = lambda folder, data=_data: sb3(folder, data)  # type: ignore[misc]


@hostile
def sb3_bomb_before_the_question_of_trust(folder: Path) -> list[str]:
    (folder / "m.zip").write_bytes(bomb("data", 100, also={"policy.pth": b""}))
    return policy("sb3:m.zip")


@hostile
def sb3_bomb_that_lies(folder: Path) -> list[str]:
    (folder / "m.zip").write_bytes(bomb("data", 100, also={"policy.pth": b""}))
    return trusted("sb3:m.zip")


@hostile
def sb3_bomb_that_tells(folder: Path) -> list[str]:
    (folder / "m.zip").write_bytes(bomb("data", 3000 << 20, also={"policy.pth": b""}))
    return trusted("sb3:m.zip")


@hostile
def sb3_bomb_of_weights(folder: Path) -> list[str]:
    data = {"data": json.dumps({"policy_class": {}}).encode()}
    (folder / "m.zip").write_bytes(bomb("policy.pth", 3000 << 20, also=data))
    return trusted("sb3:m.zip")


@hostile
def sb3_broken_stream(folder: Path) -> list[str]:
    content = zipped({"data": json.dumps({"policy_class": {"a": "b" * 500}}).encode(), "policy.pth": b""})
    (folder / "m.zip").write_bytes(flipped(content, 40))
    return trusted("sb3:m.zip")


@hostile
def sb3_wrong_checksum(folder: Path) -> list[str]:
    content = zipped({"data": b'{"policy_class": 1}', "policy.pth": b""}, zipfile.ZIP_STORED)
    (folder / "m.zip").write_bytes(content.replace(b'_class": 1', b'_class": 2'))
    return trusted("sb3:m.zip")


@hostile
def sb3_without_weights(folder: Path) -> list[str]:
    (folder / "m.zip").write_bytes(zipped({"data": b"{}"}))
    return trusted("sb3:m.zip")


@hostile
def sb3_without_parameters(folder: Path) -> list[str]:
    (folder / "m.zip").write_bytes(zipped({"policy.pth": b""}))
    return trusted("sb3:m.zip")


@hostile
def sb3_weights_of_noise(folder: Path) -> list[str]:
    return sb3(folder, {"policy_kwargs": {}}, bytes(range(256)))


@hostile
def sb3_weights_cut_off(folder: Path) -> list[str]:
    return sb3(folder, {}, zipped({"archive/data.pkl": pickle.dumps({}), "archive/version": b"3"})[:-9])


class _Marker:
    """Makes a folder when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("marker",)


@hostile
def sb3_weights_with_code(folder: Path) -> list[str]:
    return sb3(folder, {}, zipped({"archive/data.pkl": pickle.dumps(_Marker(), 2), "archive/version": b"3"}))


@hostile
def sb3_code_without_trust(folder: Path) -> list[str]:
    import base64

    code = {":serialized:": base64.b64encode(pickle.dumps(_Marker())).decode()}
    sb3(folder, {"policy_class": code, "observation_space": code, "policy_kwargs": code})
    (folder / "vecnormalize.pkl").write_bytes(pickle.dumps(_Marker()))
    return policy("sb3:m.zip")


for _kind, _statistics in {
    "noise": bytes(range(256)),
    "nothing": b"",
    "a dictionary": pickle.dumps({"a": 1}),
    "half a pickle": pickle.dumps(list(range(999)))[:500],
    "deep tuples": b"\x80\x04" + b"(" * 200_000 + b"." * 10,
}.items():

    def _statistics_of(folder: Path, content: bytes = _statistics) -> list[str]:
        sb3(folder, {})
        (folder / "stats.pkl").write_bytes(content)
        return trusted("sb3:m.zip?normalize=stats.pkl")

    TABLE[f"VecNormalize of {_kind}"] = _statistics_of


@hostile
def statistics_larger_than_any_memory(folder: Path) -> list[str]:
    sb3(folder, {})
    special(folder, "sparse").rename(folder / "vecnormalize.pkl")
    return trusted("sb3:m.zip")


# torch


def torchscript(folder: Path, content: bytes) -> list[str]:
    (folder / "m.ts").write_bytes(content)
    return trusted("torchscript:m.ts")


_SCRIPT = {"m/constants.pkl": pickle.dumps(()), "m/data.pkl": b"\x80\x02}q\x00.", "m/version": b"3\n"}
for _name, _content in {
    "torchscript without code": zipped(_SCRIPT, zipfile.ZIP_STORED),
    "torchscript cut off": zipped(_SCRIPT, zipfile.ZIP_STORED)[:-30],
    "torchscript of noise": zipped(_SCRIPT | {"m/data.pkl": bytes(range(256))}, zipfile.ZIP_STORED),
    "torchscript bomb": bomb("m/constants.pkl", 3000 << 20, also={"m/data.pkl": b""}),
    "torch.export of nothing": zipped({"m/archive_format": b"pt2", "m/version": b"0"}, zipfile.ZIP_STORED),
    "torch.export of noise": zipped(
        {"m/archive_format": b"pt2", "m/models/model.json": b"{"}, zipfile.ZIP_STORED
    ),
    "pickle as torchscript": pickle.dumps(_Marker()),
    "saved weights as torchscript": zipped({"m/data.pkl": pickle.dumps(_Marker())}),
}.items():
    TABLE[_name] = lambda folder, content=_content: torchscript(folder, content)  # type: ignore[misc]


@hostile
def torchscript_without_trust(folder: Path) -> list[str]:
    return torchscript(folder, zipped(_SCRIPT | {"m/code/a.py": b"import os"}))[:-1]


# ONNX


def onnx_graph(folder: Path, nodes: list[Any], tensors: Any = (), ports: Any = None) -> list[str]:
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    inputs, outputs = ports or (
        [value("obs", TensorProto.FLOAT, ["batch", 4])],
        [value("action", TensorProto.FLOAT, None)],
    )
    graph = helper.make_graph(nodes, "policy", inputs, outputs, list(tensors))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / "p.onnx").write_bytes(model.SerializeToString())
    return policy("onnx:p.onnx")


def node(kind: str, given: list[str], outputs: list[str], **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(kind, given, outputs, **attributes)


def tensor(name: str, value: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.asarray(value), name)


def good_onnx(folder: Path) -> bytes:
    onnx_graph(folder, [node("MatMul", ["obs", "W"], ["action"])], [tensor("W", np.ones((4, 2), np.float32))])
    return (folder / "p.onnx").read_bytes()


for _name, _spoil in {
    "empty": lambda _: b"",
    "noise": lambda _: bytes(range(1, 256)),
    "cut in half": lambda content: content[: len(content) // 2],
    "with a misspelt operator": lambda content: content.replace(b"MatMul", b"MatMuk"),
    "with weights of another name": lambda content: content.replace(b"\x01W", b"\x01V", 1),
    "with fewer weights than said": lambda content: content.replace(b"\x08\x04\x08\x02", b"\x08\x04\x08\x03"),
    "deep groups": lambda _: b"\x08\x07" + b"\x3b" * 100_000,
    "a length beyond the end": lambda _: b"\x08\x07\x3a\xff\xff\xff\xff\x0f",
}.items():

    def _spoilt_onnx(folder: Path, spoil: Callable[[bytes], bytes] = _spoil) -> list[str]:
        content = spoil(good_onnx(folder))
        (folder / "p.onnx").write_bytes(content)
        return policy("onnx:p.onnx")

    TABLE[f"onnx {_name}"] = _spoilt_onnx


def external(folder: Path, **place: str) -> list[str]:
    """A network whose weights lie in the file that `place` says."""
    from onnx import TensorProto

    weights = TensorProto(
        name="W", data_type=TensorProto.FLOAT, dims=[4, 2], data_location=TensorProto.EXTERNAL
    )
    for key, value in place.items():
        weights.external_data.add(key=key, value=value)
    return onnx_graph(folder, [node("MatMul", ["obs", "W"], ["action"])], [weights])


for _name, _place in {
    "outside": {"location": "../weights.bin"},
    "far outside": {"location": "a/../../../../etc/passwd"},
    "at an absolute path": {"location": "/etc/passwd"},
    "on another drive": {"location": "C:\\weights.bin"},
    "with a backslash": {"location": "..\\weights.bin"},
    "at no place": {},
    "with NUL": {"location": "a\0b"},
    "that are missing": {"location": "nowhere.bin"},
    "of a device": {"location": "special-zero"},
    "of a pipe": {"location": "special-fifo"},
    "of a terabyte": {"location": "special-sparse"},
    "of a folder": {"location": "special-folder"},
    "behind the end": {"location": "few.bin", "offset": "4", "length": "32"},
    "before the start": {"location": "few.bin", "offset": "-4", "length": "4"},
    "at no number": {"location": "few.bin", "offset": "x"},
    "of another size": {"location": "few.bin"},
}.items():

    def _external_weights(folder: Path, place: dict[str, str] = _place) -> list[str]:
        (folder / "few.bin").write_bytes(bytes(8))
        if place.get("location", "").startswith("special-"):
            special(folder, place["location"].removeprefix("special-"))
        return external(folder, **place)

    TABLE[f"onnx weights {_name}"] = _external_weights


@hostile
def onnx_weights_at_a_place_that_is_no_text(folder: Path) -> list[str]:
    arguments = external(folder, location="weights.bin")
    content = (folder / "p.onnx").read_bytes()
    (folder / "p.onnx").write_bytes(content.replace(b"weights.bin", b"weights.\xff\xfen"))
    return arguments


@hostile
def onnx_external_weights_inside_of_a_node(folder: Path) -> list[str]:
    from onnx import TensorProto

    weights = TensorProto(
        name="W", data_type=TensorProto.FLOAT, dims=[4, 2], data_location=TensorProto.EXTERNAL
    )
    weights.external_data.add(key="location", value="/dev/zero")
    nodes = [node("Constant", [], ["W"], value=weights), node("MatMul", ["obs", "W"], ["action"])]
    return onnx_graph(folder, nodes)


@hostile
def onnx_weights_of_petabytes(folder: Path) -> list[str]:
    from onnx import TensorProto

    huge = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[1 << 40, 1 << 20], raw_data=b"\0" * 8)
    return onnx_graph(folder, [node("MatMul", ["obs", "W"], ["action"])], [huge])


def onnx_growing(folder: Path, kind: str, *shape: Any, **attributes: Any) -> list[str]:
    """A network that makes a tensor of petabytes from a few numbers."""
    nodes = [
        node(kind, [name for name, _ in shape], ["huge"], **attributes),
        node("ReduceSum", ["huge"], ["sum"], keepdims=0),
        node("Cast", ["sum"], ["number"], to=1),
        node("Mul", ["obs", "number"], ["action"]),
    ]
    return onnx_graph(folder, nodes, [tensor(name, value) for name, value in shape])


PETA = np.array([1 << 25, 1 << 25], np.int64)
for _name, _arguments in {
    "ConstantOfShape": [("shape", PETA)],
    "Expand": [("one", np.ones(1, np.float32)), ("shape", PETA)],
    "Tile": [("one", np.ones((1, 1), np.float32)), ("shape", PETA)],
    "Range": [("a", np.int64(0)), ("b", np.int64(1 << 60)), ("c", np.int64(1))],
}.items():
    TABLE[f"onnx {_name} of petabytes"] = lambda folder, kind=_name, given=_arguments: onnx_growing(  # type: ignore[misc]
        folder, kind, *given
    )


@hostile
def onnx_that_doubles_fifty_times(folder: Path) -> list[str]:
    nodes = [
        node("Concat", [name, name], [f"x{step}"], axis=1)
        for step, name in enumerate(["obs", *(f"x{n}" for n in range(49))])
    ]
    return onnx_graph(folder, [*nodes, node("ReduceSum", ["x49"], ["action"])])


@hostile
def onnx_loop_that_never_ends(folder: Path) -> list[str]:
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Identity", ["going"], ["still"]), node("Sin", ["x"], ["y"])],
        "body",
        [
            value("step", TensorProto.INT64, []),
            value("going", TensorProto.BOOL, []),
            value("x", TensorProto.FLOAT, None),
        ],
        [value("still", TensorProto.BOOL, []), value("y", TensorProto.FLOAT, None)],
    )
    rounds, going = tensor("rounds", np.int64(1 << 60)), tensor("yes", np.True_)
    return onnx_graph(
        folder, [node("Loop", ["rounds", "yes", "obs"], ["action"], body=body)], [rounds, going]
    )


@hostile
def onnx_in_a_circle(folder: Path) -> list[str]:
    return onnx_graph(
        folder,
        [node("Identity", ["a"], ["b"]), node("Identity", ["b"], ["a"]), node("Identity", ["a"], ["action"])],
    )


@hostile
def onnx_of_unknown_operators(folder: Path) -> list[str]:
    return onnx_graph(folder, [node("System", ["obs"], ["action"], domain="evil", command="mkdir marker")])


@hostile
def onnx_that_takes_text(folder: Path) -> list[str]:
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    ports = ([value("obs", TensorProto.STRING, ["batch", 4])], [value("action", TensorProto.STRING, None)])
    return onnx_graph(folder, [node("Identity", ["obs"], ["action"])], (), ports)


@hostile
def onnx_without_nodes(folder: Path) -> list[str]:
    return onnx_graph(folder, [])


# ACAS Xu


def acasxu(folder: Path, content: bytes, ending: str = "nnet") -> list[str]:
    for number in range(1, 6):
        (folder / f"net_{number}_2.{ending}").write_bytes(content)
    return policy("acasxu:.", "acasxu")


def nnet(sizes: str = "5,4,5", rows: int = 30, number: str = "0.1") -> bytes:
    head = ["2,5,5,5", sizes, "0", "0", "1", "0,0,0,0,0,0", "1,1,1,1,1,1"]
    return "\n".join([*head, *[",".join([number] * 5)] * rows]).encode()


for _name, _content in {
    "empty": b"",
    "noise": bytes(range(256)),
    "cut off": nnet(rows=3),
    "negative sizes": nnet("5,-4,5"),
    "endless sizes": nnet("5,inf,5"),
    "sizes that are no numbers": nnet("5,nan,5"),
    "sizes beyond all bounds": nnet("5,1e300,5"),
    "many layers": nnet("5," * 5000 + "5"),
    "one size": nnet("5"),
    "weights that are NaN": nnet(number="nan"),
    "no commas": b"1" * 100_000,
    "ranges of nothing": nnet().replace(b"1,1,1,1,1,1", b"0,0,0,0,0,0"),
}.items():
    TABLE[f".nnet {_name}"] = lambda folder, content=_content: acasxu(folder, content)  # type: ignore[misc]


def _acasxu_onnx(folder: Path, make: Callable[[Path], Any]) -> list[str]:
    made = make(folder)
    path = folder / "p.onnx"
    content = made if isinstance(made, bytes) else path.read_bytes()
    path.unlink(missing_ok=True)
    return acasxu(folder, content, "onnx")


for _name, _graph in {
    "noise": lambda _: bytes(range(256)),
    "weights outside": lambda folder: external(folder, location="/dev/zero"),
    "weights of petabytes": onnx_weights_of_petabytes,
    "weights of one dimension": lambda folder: onnx_graph(
        folder, [node("MatMul", ["obs", "W"], ["action"])], [tensor("W", np.ones(5, np.float32))]
    ),
    "a product of nothing": lambda folder: onnx_graph(folder, [node("Gemm", [], ["action"])]),
    "a sum of one": lambda folder: onnx_graph(
        folder,
        [node("MatMul", ["obs", "W"], ["x"]), node("Add", ["x"], ["action"])],
        [tensor("W", np.ones((5, 5), np.float32))],
    ),
    "text as weights": lambda folder: onnx_graph(
        folder, [node("MatMul", ["obs", "W"], ["action"])], [tensor("W", np.array([["a"] * 5] * 5, object))]
    ),
    "a loop": onnx_loop_that_never_ends,
}.items():
    TABLE[f"acasxu of onnx with {_name}"] = lambda folder, graph=_graph: _acasxu_onnx(folder, graph)  # type: ignore[misc]


@hostile
def acasxu_of_a_name_too_long(folder: Path) -> list[str]:
    return policy(f"acasxu:{'a' * 300}", "acasxu")


@hostile
def acasxu_of_pipes(folder: Path) -> list[str]:
    for number in range(1, 6):
        os.mkfifo(folder / f"net_{number}_2.nnet")
    return policy("acasxu:.", "acasxu")


# bipedal and coopnavi

for _name, _text in {
    "deep": b"[" * 100_000,
    "an object": b'{"0": [1]}',
    "a number": b"7",
    "nothing": b"",
    "no UTF-8": b"\xff\xff",
    "numbers beyond all bounds": b"[[" + b"9" * 400 + b"]]",
    "nested lists": b"[[[1, 2], [3]]]",
    "text": b'[["a", "b"]]',
    "NaN": b"[[" + b", ".join([b"NaN"] * 35) + b"]]",
    "a digit too many": b"[[" + b"1" * 5000 + b"]]",
}.items():

    def _bipedal_json(folder: Path, text: bytes = _text) -> list[str]:
        (folder / "p.json").write_bytes(text)
        return policy("bipedal:p.json", "bipedal")

    TABLE[f"bipedal JSON of {_name}"] = _bipedal_json


def coopnavi(folder: Path, content: bytes) -> list[str]:
    (folder / "p.npz").write_bytes(content)
    return policy("coopnavi:p.npz", "coopnavi")


_PUBLIC = {
    f"agent_{agent}__p_func__{layer}__{part}": np.zeros((18, 18) if part == "weights" else 18)
    for agent in range(3)
    for layer in ("fully_connected", "fully_connected_1", "fully_connected_2")
    for part in ("weights", "biases")
}
for _name, _content in {
    "noise": bytes(range(256)),
    "no actors": npz_bytes(a=np.ones(3)),
    "one actor": npz_bytes(**dict(list(_PUBLIC.items())[:6])),
    "actors of text": npz_bytes(**{name: value.astype(str) for name, value in _PUBLIC.items()}),
    "actors without dimensions": npz_bytes(**dict.fromkeys(_PUBLIC, np.float64(1))),
    "actors of another width": npz_bytes(**_PUBLIC),
    "a bomb": bomb("agent_0.npy", 100),
}.items():
    TABLE[f"coopnavi with {_name}"] = lambda folder, content=_content: coopnavi(folder, content)  # type: ignore[misc]


# --input FILE.toml and .py files

for _name, _text in {
    "deep arrays": b"a = " + b"[" * 50_000,
    "deep tables": b"[" + b"a." * 20_000 + b"a]\n",
    "a number of 6,000 digits": b"[bounds]\nx = [0, " + b"9" * 6000 + b"]\n",
    "a number of 400 digits": b"[bounds]\nx = [0, " + b"9" * 400 + b"]\n",
    "endless bounds": b"[bounds]\nx = [-inf, inf]\n",
    "bounds that are no numbers": b"[bounds]\nx = [nan, nan]\n",
    "a fixed list": b"[fixed]\nx = [1]\n",
    "a fixed date": b"[fixed]\nx = 1979-05-27\n",
    "a fixed number of 400 digits": b"[fixed]\nx = " + b"9" * 400 + b"\n",
    "a way that is a table": b"[way]\na = 1\n",
    "binary": bytes(range(256)),
    "NUL": b"way = 'se\0ed'",
    "keys that are not known": b"[[bounds]]\nx = [0, 1]\n",
}.items():

    def _toml(folder: Path, text: bytes = _text) -> list[str]:
        (folder / "input.toml").write_bytes(text)
        return ["check", GYM, "--policy", "npz:p.npz", "--input", "input.toml"]

    TABLE[f"TOML with {_name}"] = _toml


for _name, _text in {"NUL": b"x = 1\0\n", "noise": bytes(range(256)), "deep": b"(" * 5000}.items():

    def _python(folder: Path, text: bytes = _text) -> list[str]:
        (folder / "p.py").write_bytes(text)
        return policy("py:p.py:act")

    TABLE[f".py with {_name}"] = _python
