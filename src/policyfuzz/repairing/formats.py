"""Policies by URI that can be written back: npz, stable-baselines3, ONNX and TorchScript."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Target
from policyfuzz.core.whole_file import whole_file
from policyfuzz.core.zip_files import ZipReader
from policyfuzz.policies import npz, onnx, torch
from policyfuzz.policies.mlp import MlpBank, plain_arrays, write_npz
from policyfuzz.policies.onnx_file import OnnxFile
from policyfuzz.policies.sb3 import Recipe
from policyfuzz.policies.sb3_network import build
from policyfuzz.policies.spaces import views
from policyfuzz.policies.uri import MOST_BYTES, Address, read_model
from policyfuzz.repairing.networks import PolicyFile, TorchBank, Trainable
from policyfuzz.repairing.onnx_graph import TorchGraph
from policyfuzz.repairing.single import SingleNetwork, acting_policy


def npz_file(target: Target) -> PolicyFile:
    """A perceptron in an .npz file."""
    address = _address(target, npz.OPTIONS)
    policy, path = acting_policy(target), address.file()
    arrays = plain_arrays(path.name, read_model(path), "")
    bank, _ = npz.bank_in(path.name, arrays, policy.spaces)
    names = None if "parameters" in arrays else _layer_names(path.name, arrays, bank)

    def load() -> Trainable:
        layers = TorchBank(bank)

        def write(out: Path) -> None:
            new = MlpBank(layers.flat().astype(np.float64), bank.sizes, bank.activations)
            with whole_file(out) as unfinished:
                if names is None:
                    write_npz(unfinished, new)
                else:
                    np.savez(unfinished, **_named(arrays, names, new))  # type: ignore[arg-type]

        return SingleNetwork(
            target,
            lambda inputs: layers(inputs, inputs.new_zeros(len(inputs)).long()),
            layers.parameters(),
            write,
            policy.network.layouts[0],
            "rescale" in address.options,
        )

    return PolicyFile(load, ".npz", address.uri)


def _layer_names(name: str, arrays: npz.NamedArrays, bank: MlpBank) -> list[tuple[str, bool, str]]:
    """Of each layer the names of its weights and bias, and whether the weights are stored (out, in)."""
    left = {key: value for key, value in arrays.items() if value.dtype.kind == "f"}
    names = []
    for weights, bias in bank.layers():
        found = [
            (key, is_turned)
            for key, value in left.items()
            for is_turned in (False, True)
            if value.ndim == 2 and np.array_equal(value.T if is_turned else value, weights)
        ]
        biases = [key for key, value in left.items() if value.ndim == 1 and np.array_equal(value, bias)]
        if not found or not biases:
            raise UsageError(
                f"{name} cannot be repaired: it has layers of whole numbers, or without a bias",
                "save weights and biases of all layers as floating-point numbers",
            )
        names.append((*found[0], biases[0]))
        del left[found[0][0]], left[biases[0]]
    return names


def _named(
    arrays: npz.NamedArrays, names: list[tuple[str, bool, str]], bank: MlpBank
) -> dict[str, NDArray[Any]]:
    """`arrays` with the weights of `bank` in their places."""
    values = dict(arrays)
    for (weight_name, is_turned, bias_name), (weights, bias) in zip(names, bank.layers(), strict=True):
        values[weight_name] = (weights.T if is_turned else weights).astype(arrays[weight_name].dtype)
        values[bias_name] = bias.astype(arrays[bias_name].dtype)
    return values


def onnx_file(target: Target) -> PolicyFile:
    """A network in an ONNX file."""
    extras.load("onnx", "repair")
    address = _address(target, onnx.OPTIONS)
    policy, file = acting_policy(target), OnnxFile.read(address.file())
    output = onnx.action_output(file, policy.spaces, address)
    TorchGraph(file.content, output)  # refuses operators that cannot be trained through

    def load() -> Trainable:
        graph = TorchGraph(file.content, output)

        def write(out: Path) -> None:
            with whole_file(out) as unfinished:
                unfinished.write_bytes(graph.content())

        layout, rescale = policy.network.layouts[0], "rescale" in address.options
        return SingleNetwork(target, graph, graph.parameters(), write, layout, rescale)

    return PolicyFile(load, ".onnx", address.uri)


def torchscript_file(target: Target) -> PolicyFile:
    """A module of TorchScript."""
    library = extras.load("torch", "repair")
    address = _address(target, torch.OPTIONS)
    policy, path = acting_policy(target), address.file()
    content = read_model(path)
    if any(name.endswith("archive_format") for name in ZipReader(content).names):
        raise UsageError(
            f"{path.name} cannot be repaired: archives of torch.export are read, and not written",
            "save the module as TorchScript or ONNX",
        )
    layout = _first_view(policy.spaces.observation)

    def load() -> Trainable:
        module = torch.StoredModule(content)
        script = module.module
        parameters = [one.requires_grad_() for one in script.parameters() if one.is_floating_point()]

        def write(out: Path) -> None:
            buffer = io.BytesIO()  # of a file, the archive would hold its name
            library.jit.save(script, buffer)
            with whole_file(out) as unfinished:
                unfinished.write_bytes(buffer.getvalue())

        return SingleNetwork(
            target,
            lambda inputs: torch.action_part(script(inputs)),
            parameters,
            write,
            layout,
            "rescale" in address.options,
        )

    return PolicyFile(load, path.suffix, address.uri)


def sb3_file(target: Target) -> PolicyFile:
    """A model that stable-baselines3 has saved."""
    recipe: Any = target.policy
    policy = acting_policy(target)
    if not isinstance(recipe, Recipe):
        raise UsageError(
            f"{target.policy_name} cannot be repaired: it was not loaded in this process",
            "name it by sb3:FILE",
        )
    uri = target.policy_uri or ""
    place, _, options = uri.partition(":")[2].partition("?")
    _scores_or_numbers(build(recipe.archive, recipe.trained, recipe.algorithm), place)

    def load() -> Trainable:
        module = build(recipe.archive, recipe.trained, recipe.algorithm)
        forward, parts = _scores_or_numbers(module, place)
        stored = recipe.archive.weights()
        if stored.keys() != module.state_dict().keys():
            raise UsageError(
                f"{place} cannot be repaired: an old version of stable-baselines3 saved it",
                "load and save it with a newer one",
            )
        parameters = [one for part in parts for one in part.parameters()]
        unique = list({id(one): one for one in parameters}.values())

        def write(out: Path) -> None:
            with whole_file(out) as unfinished:
                unfinished.write_bytes(_with_weights(recipe.archive.content, module.state_dict()))

        return SingleNetwork(target, forward, unique, write, policy.network.layouts[0])

    return PolicyFile(load, ".zip", lambda out: f"sb3:{out}" + (f"?{options}" if options else ""))


def _scores_or_numbers(module: Any, name: str) -> tuple[Callable[[Any], Any], list[Any]]:
    """The function from observations to scores or actions of a policy of stable-baselines3, and its parts."""
    policies = extras.load("stable_baselines3.common.policies", "sb3")
    distributions = extras.load("stable_baselines3.common.distributions", "sb3")
    plain = (distributions.CategoricalDistribution, distributions.DiagGaussianDistribution)
    if isinstance(module, policies.ActorCriticPolicy) and type(module.action_dist) in plain:
        extract = policies.BasePolicy.extract_features

        def straight(observations: Any) -> Any:
            features = extract(module, observations, module.pi_features_extractor)
            return module.action_net(module.mlp_extractor.forward_actor(features))

        return straight, [
            module.pi_features_extractor,
            module.mlp_extractor.policy_net,
            module.action_net,
        ]
    if hasattr(module, "q_net"):
        return module.q_net, [module.q_net]
    actor: Any = getattr(module, "actor", None)
    if hasattr(actor, "get_action_dist_params") and hasattr(actor, "mu"):

        def squashed(observations: Any) -> Any:
            return _stretched(module, actor.get_action_dist_params(observations)[0].tanh())

        return squashed, [actor.features_extractor, actor.latent_pi, actor.mu]
    if actor is not None and hasattr(actor, "mu"):
        return (lambda observations: _stretched(module, actor(observations))), [actor]
    raise UsageError(
        f"{name} cannot be repaired: nobody knows the network of a {type(module).__name__}",
        "PPO, A2C, TRPO, DQN, SAC, TD3, DDPG and TQC can",
    )


def _stretched(module: Any, actions: Any) -> Any:
    """`actions` between -1 and 1, stretched to their bounds."""
    low, high = (actions.new_tensor(one) for one in (module.action_space.low, module.action_space.high))
    return low + 0.5 * (actions + 1.0) * (high - low)


def _with_weights(content: bytes, weights: Any) -> bytes:
    """The zip `content` with other `weights` of its policy; all else stays as it is."""
    library, stored, out = extras.load("torch", "repair"), io.BytesIO(), io.BytesIO()
    library.save(weights, stored)
    source = ZipReader(content)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in source.names:
            # the time of writing must not be in it: the same weights are the same file
            entry = zipfile.ZipInfo(name)
            archive.writestr(
                entry, stored.getvalue() if name == "policy.pth" else source.read(name, MOST_BYTES)
            )
    return out.getvalue()


def _address(target: Target, options: Any) -> Address:
    scheme, _, rest = (target.policy_uri or "").partition(":")
    return Address.parse(scheme, rest, options)


def _first_view(space: Any) -> Callable[[NDArray[Any]], NDArray[Any]]:
    found = views(space)
    if not found:
        raise UsageError(
            "the policy cannot be repaired: it does not see numbers alone",
            "a network that sees an array of numbers can be",
        )
    return found[0].convert
