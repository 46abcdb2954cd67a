"""Policies that can be written back: which files these are, and how their networks are changed."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Target, split_options
from policyfuzz.core.whole_file import whole_file, writing
from policyfuzz.policies.mlp import MlpBank, write_npz
from policyfuzz.repairing.networks import Decision, Examples, PolicyFile, TorchBank, Trainable
from policyfuzz.repairing.states import States

#: What can be written back, for readers.
_KNOWN = "npz:, sb3:, onnx: and torchscript: files, and the networks of acasxu, coopnavi, bipedal and driving"


def policy_file(target: Target) -> PolicyFile:
    """The file of the policy of `target`; refuses what cannot be written back."""
    base, options = split_options(target.name)
    scheme = (target.policy_uri or "").partition(":")[0]
    if scheme in _FORMATS:
        from policyfuzz.repairing import formats

        opened: PolicyFile = getattr(formats, _FORMATS[scheme])(target)
        return opened
    if base in _TARGETS and scheme in ("", base.partition("-")[0]):
        return _TARGETS[base](target, options)
    raise UsageError(
        f"the policy {target.policy_uri or target.policy_name} cannot be repaired: nobody knows how to write"
        " it back",
        f"known are {_KNOWN}; export --what minari writes episodes for training elsewhere",
    )


class BankNetworks:
    """Perceptrons of one bank, in the way in which a target uses them."""

    def __init__(
        self,
        bank: MlpBank,
        decision: Decision,
        split: Callable[[States], Examples],
        write: Callable[[Path, MlpBank], None],
        finish: Callable[[Any], Any] = lambda outputs: outputs,
    ) -> None:
        self._bank, self._torch = bank, TorchBank(bank)
        self.decision, self.examples, self._write, self._finish = decision, split, write, finish

    def parameters(self) -> list[Any]:
        return self._torch.parameters()

    def outputs(self, inputs: Any, which: Any) -> Any:
        return self._finish(self._torch(inputs, which))

    def write(self, path: Path) -> None:
        parameters = self._torch.flat().astype(np.float64)
        self._write(path, replace(self._bank, parameters=parameters))


def one_network(states: States) -> Examples:
    """Examples of a policy with a single network, which is given what it sees."""
    count = len(states)
    return Examples(
        states.observations.reshape(count, -1).astype(np.float32), np.zeros(count, np.int64), states.actions
    )


def by_previous_action(states: States) -> Examples:
    """Examples of a policy with a network for each previous action; the first one begins."""
    previous = np.where(np.isnan(states.previous[:, 0]), 0.0, states.previous[:, 0])
    return Examples(states.observations.astype(np.float32), previous.astype(np.int64), states.actions)


def by_agent(states: States) -> Examples:
    """Examples of a policy with a network for each agent; observations are (m, agents, o)."""
    count, agents = states.observations.shape[:2]
    return Examples(
        states.observations.reshape(count * agents, -1).astype(np.float32),
        np.tile(np.arange(agents), count),
        states.actions.reshape(count * agents, -1),
    )


def own_path(target: Target) -> Path | None:
    """Where the networks of a built-in `target` lie; None for those that come with the package."""
    return None if target.policy_uri is None else Path(target.policy_uri.partition(":")[2])


def _written(path: Path, bank: MlpBank) -> None:
    with whole_file(path) as unfinished:
        write_npz(unfinished, bank)


def _acasxu(target: Target, options: dict[str, str]) -> PolicyFile:
    from policyfuzz.repairing.acasxu_files import acasxu_file

    return acasxu_file(target, int(options.get("bucket", "2")))


def _coopnavi(target: Target, options: dict[str, str]) -> PolicyFile:  # noqa: ARG001 - as all targets
    from policyfuzz.targets.coopnavi.actors import actors_in, shipped_actors

    path = own_path(target)

    def load() -> Trainable:
        bank = shipped_actors() if path is None else actors_in(path)
        return BankNetworks(
            bank, Decision.NUMBERS, by_agent, _written, lambda outputs: outputs.softmax(dim=1)
        )

    return PolicyFile(load, ".npz", lambda file: f"coopnavi:{file}")


def _bipedal(target: Target, options: dict[str, str]) -> PolicyFile:  # noqa: ARG001 - as all targets
    from policyfuzz.targets.bipedal.networks import network_in, shipped_network

    path = own_path(target)
    if path is not None and path.suffix == ".json":
        raise UsageError(
            f"{path.name} cannot be repaired: .json files of networks are read, and not written",
            "save the same weights as .npz, see docs/onnx-controller.md",
        )

    def load() -> Trainable:
        bank = shipped_network() if path is None else network_in(path)
        return BankNetworks(bank, Decision.NUMBERS, one_network, _written)

    return PolicyFile(load, ".npz", lambda file: f"bipedal:{file}")


def _driving(target: Target, options: dict[str, str]) -> PolicyFile:  # noqa: ARG001 - as all targets
    from policyfuzz.targets.driving.networks import ACTION_SIZE, cloned, expert, network_in

    path = own_path(target)

    def load() -> Trainable:
        own = cloned if target.name.startswith("driving-il") else expert
        bank = own() if path is None else network_in(path)
        return BankNetworks(
            bank, Decision.NUMBERS, one_network, _written, lambda outputs: outputs[:, :ACTION_SIZE]
        )

    return PolicyFile(load, ".npz", lambda file: f"driving:{file}")


_TARGETS: dict[str, Callable[[Target, dict[str, str]], PolicyFile]] = {
    "acasxu": _acasxu,
    "bipedal": _bipedal,
    "coopnavi": _coopnavi,
    "driving-il": _driving,
    "driving-rl": _driving,
}
#: Scheme to the function of `formats` that opens its files.
_FORMATS = {"npz": "npz_file", "onnx": "onnx_file", "sb3": "sb3_file", "torchscript": "torchscript_file"}


def whole_numbers(target: Target) -> bool:
    """True if `target` is steered by one choice among several."""
    space = target.actions
    return space is not None and len(space.low) == 1 and bool(space.is_whole[0])


def copied(source: Path, out: Path) -> None:
    """Put the policy at `source`, a file or a folder, to `out`."""
    with writing(out):
        if source.is_dir():
            if out.exists():
                shutil.rmtree(out)
            shutil.copytree(source, out)
            return
    with whole_file(out) as unfinished:
        shutil.copyfile(source, unfinished)
