"""The networks of ACAS Xu: all 45 in one .npz, or a folder with one ONNX file for each."""

import shutil
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Target
from policyfuzz.core.whole_file import whole_file, writing
from policyfuzz.policies.mlp import MlpBank, read_npz, shipped, write_npz
from policyfuzz.policies.onnx_file import OnnxFile
from policyfuzz.repairing.files import BankNetworks, by_previous_action, own_path
from policyfuzz.repairing.networks import Decision, PolicyFile, Trainable
from policyfuzz.targets.acasxu.networks import network_files, networks_in
from policyfuzz.targets.acasxu.target import BUCKETS, networks_of, shipped_networks


def acasxu_file(target: Target, bucket: int) -> PolicyFile:
    """How the networks of `target` are written back; only those of its time `bucket` are changed."""
    path = own_path(target)
    if path is None or path.is_file():
        return PolicyFile(lambda: _in_one_file(path, bucket), ".npz", lambda file: f"acasxu:{file}")
    if any(one.suffix != ".onnx" for one in network_files(path, bucket).values()):
        raise UsageError(
            f"{path} cannot be repaired: .nnet files are read, and not written",
            "convert them to ONNX, or give the networks as one .npz",
        )
    extras.load("onnx", "repair")
    return PolicyFile(lambda: _in_folder(path, bucket), "", lambda folder: f"acasxu:{folder}")


def _in_one_file(path: Path | None, bucket: int) -> Trainable:
    every = read_npz(shipped("acasxu/networks.npz") if path is None else path)

    def write(file: Path, bank: MlpBank) -> None:
        parameters = every.parameters.copy()
        parameters[bucket - 1 :: BUCKETS] = bank.parameters
        with whole_file(file) as unfinished:
            write_npz(unfinished, replace(every, parameters=parameters))

    bank = shipped_networks(bucket) if path is None else networks_of(path, bucket)
    return BankNetworks(bank, Decision.LOWEST, by_previous_action, write)


def _in_folder(folder: Path, bucket: int) -> Trainable:
    files = network_files(folder, bucket)

    def write(place: Path, bank: MlpBank) -> None:
        unfinished = place.with_name(f".unfinished-{uuid4().hex[:8]}")
        with writing(place):
            shutil.copytree(folder, unfinished)
        for number, file in files.items():
            _rewrite(unfinished / file.name, bank, number - 1)
        with writing(place):
            if place.exists():
                shutil.rmtree(place)
            unfinished.replace(place)

    return BankNetworks(networks_in(folder, bucket), Decision.LOWEST, by_previous_action, write)


def _rewrite(path: Path, bank: MlpBank, network: int) -> None:
    """Put the weights of one network of `bank` into the ONNX file at `path`, which it was read from."""
    onnx, helper = extras.load("onnx", "repair"), extras.load("onnx.numpy_helper", "repair")
    model = OnnxFile.read(path).model
    tensors = {one.name: one for one in model.graph.initializer}
    layers = iter(bank.layers(network))
    bias: NDArray[np.float64] | None = None

    def put(name: str, values: NDArray[np.float64]) -> None:
        old = helper.to_array(tensors[name])
        new = np.ascontiguousarray(values.reshape(old.shape), old.dtype)
        tensors[name].CopyFrom(helper.from_array(new, name))

    for node in model.graph.node:
        constants = [name for name in node.input if name in tensors]
        if node.op_type in ("MatMul", "Gemm"):
            weights, bias = next(layers)
            options = {one.name: one.i for one in node.attribute}
            is_turned = bool(options.get("transB")) or node.input[0] in tensors
            put(constants[0], weights.T if is_turned else weights)
            constants = constants[1:]
        if node.op_type in ("Add", "Sub", "Gemm") and bias is not None and constants:
            put(constants[0], -bias if node.op_type == "Sub" else bias)
            bias = None
    with whole_file(path) as unfinished:
        onnx.save_model(model, str(unfinished))
