"""The network of a saved model: how it is built, and how it acts.

Replay buffers, schedules, optimisers and environments are not needed to act. Without them models load fast,
even those that other versions saved.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.network import Arrays
from policyfuzz.policies.sb3_file import Archive
from policyfuzz.policies.torch import one_thread

#: Before version 1.7 these parts were stored once, under the name of the part that they share.
_SHARED_PARTS = ("pi_features_extractor.", "vf_features_extractor.")
_SHARED_LAYERS = "mlp_extractor.shared_net."


def build(archive: Archive, spaces: Spaces, algorithm: str) -> Any:
    """The network of `archive` (a `BasePolicy`) for `spaces` that it was trained with, ready to act."""
    extras.load("stable_baselines3", "sb3")
    if "sb3_contrib" in str(archive.data["policy_class"]):
        extras.load("sb3_contrib", "sb3")
    policy_class = archive.unpickle("policy_class")
    weights, kept = archive.weights(), archive.unpickle("policy_kwargs")
    schedule = () if algorithm == "ARS" else (_no_learning,)
    try:
        arguments = dict(kept or {})
        for unused in ("device", "optimizer_class", "optimizer_kwargs"):
            arguments.pop(unused, None)
        if archive.data.get("use_sde"):
            arguments["use_sde"] = True
        if "optimizer_class" in inspect.signature(policy_class).parameters:
            arguments["optimizer_class"] = _NoOptimiser
        _modernise(arguments, weights)
        network = policy_class(spaces.observation, spaces.action, *schedule, **arguments)
        missing, unexpected = network.load_state_dict(weights, strict=False)
        network.set_training_mode(False)
        network.to("cpu")
    except Exception as error:  # whatever the classes of the policy raise, or parameters of wrong types
        raise _unusable(archive, f"{type(error).__name__}: {error}") from error
    missing = [name for name in missing if not name.startswith(_SHARED_PARTS)]
    if missing or unexpected:
        found = f"no {missing[0]}" if missing else f"{unexpected[0]}, which its policy class does not have"
        raise _unusable(archive, f"its weights hold {found}")
    return network


def runner(network: Any, keys: Sequence[str]) -> Callable[..., Arrays]:
    """The function from the parts `keys` of observations, each (rows, ...), to actions (rows, ...).

    A recurrent network takes its two states (rows, layers, width) behind them and gives the new ones behind
    its actions.
    """
    torch = extras.load("torch", "sb3")
    choose = _deterministic_action(network)

    def run(*blocks: NDArray[Any]) -> Arrays:
        with _quiet_inference(torch):
            tensors = [torch.from_numpy(_writable(block)) for block in blocks]
            inputs, states = tensors[: len(keys)], tensors[len(keys) :]
            observations = inputs[0] if keys == ("",) else dict(zip(keys, inputs, strict=True))
            if not states:
                return (_in_bounds(network, choose(observations)),)
            layers_first = tuple(state.transpose(0, 1).contiguous() for state in states)
            going_on = torch.zeros(len(blocks[0]))  # a new episode begins with states of zero instead
            actions, after = network._predict(observations, layers_first, going_on, deterministic=True)
            return _in_bounds(network, actions), *(state.transpose(0, 1).numpy() for state in after)

    return run


def initial_states(network: Any) -> Arrays:
    """The states of a recurrent network at the beginning of an episode; empty for all others."""
    shape = getattr(network, "lstm_hidden_state_shape", None)
    if shape is None:
        return ()
    layers, _, width = shape
    return np.zeros((layers, width), np.float32), np.zeros((layers, width), np.float32)


class _NoOptimiser:
    """In place of the optimiser that a policy makes: one of torch imports its compiler, for seconds."""

    def __init__(self, *_arguments: Any, **_named: Any) -> None: ...


def _no_learning(_progress: float) -> float:
    """A learning rate for the optimiser that a policy insists on making."""
    return 0.0


def _modernise(arguments: dict[str, Any], weights: dict[str, Any]) -> None:
    """Rewrite in place what policies before version 1.8 wrote differently.

    Their `net_arch` was a list, and the first layers could be shared by actor and critic. Acting is
    the same if each of them has a copy.
    """
    shared = _widths(weights, _SHARED_LAYERS)
    if shared:
        heads = {head: f"mlp_extractor.{name}_net." for head, name in (("pi", "policy"), ("vf", "value"))}
        arguments["net_arch"] = {head: shared + _widths(weights, name) for head, name in heads.items()}
        for name in heads.values():
            _put_below(weights, name, 2 * len(shared))
        for name in [name for name in weights if name.startswith(_SHARED_LAYERS)]:
            del weights[name]
    elif isinstance(arguments.get("net_arch"), list | tuple):
        layers = list(arguments["net_arch"])
        arguments["net_arch"] = layers[0] if layers and isinstance(layers[0], dict) else layers


def _widths(weights: dict[str, Any], prefix: str) -> list[int]:
    """Outputs of each linear layer below `prefix`, in order."""
    places = {
        int(name.removeprefix(prefix).split(".")[0]): len(tensor)
        for name, tensor in weights.items()
        if name.startswith(prefix) and name.endswith(".weight")
    }
    return [places[place] for place in sorted(places)]


def _put_below(weights: dict[str, Any], prefix: str, offset: int) -> None:
    """Move the layers below `prefix` up by `offset` places, and put the shared ones below them."""
    own = {name: weights.pop(name) for name in list(weights) if name.startswith(prefix)}
    for name, tensor in own.items():
        place, _, kind = name.removeprefix(prefix).partition(".")
        weights[f"{prefix}{int(place) + offset}.{kind}"] = tensor
    for name in [name for name in weights if name.startswith(_SHARED_LAYERS)]:
        weights[prefix + name.removeprefix(_SHARED_LAYERS)] = weights[name]


def _unusable(archive: Archive, reason: str) -> PolicyError:
    here = extras.load("stable_baselines3", "sb3").__version__
    version = (
        f"It was saved by stable-baselines3 {archive.version}, this is {here}. " if archive.version else ""
    )
    return PolicyError(
        f"the network in {archive.path.name} cannot be built: {reason}",
        hint=f"{version}Load and save it with a newer version, or export it to ONNX and use onnx:",
    )


def _deterministic_action(network: Any) -> Callable[[Any], Any]:
    """The function from observations to deterministic actions, both tensors.

    The standard policy of PPO, A2C and TRPO goes straight through its layers: twice as fast as through a
    distribution of which only the mode is needed.
    """
    torch = extras.load("torch", "sb3")
    distributions = extras.load("stable_baselines3.common.distributions", "sb3")
    policies = extras.load("stable_baselines3.common.policies", "sb3")
    plain = policies.ActorCriticPolicy
    kind = type(getattr(network, "action_dist", None))
    own = ("_predict", "get_distribution", "_get_action_dist_from_latent")
    is_plain = isinstance(network, plain) and all(getattr(type(network), n) is getattr(plain, n) for n in own)
    modes: dict[Any, Callable[[Any], Any]] = {
        distributions.CategoricalDistribution: lambda scores: torch.argmax(torch.softmax(scores, 1), 1),
        distributions.DiagGaussianDistribution: lambda mean: mean,
    }
    if not is_plain or kind not in modes:
        return lambda observations: network._predict(observations, deterministic=True)
    mode: Callable[[Any], Any] = modes[kind]
    extract: Callable[..., Any] = policies.BasePolicy.extract_features

    def straight(observations: Any) -> Any:
        features = extract(network, observations, network.pi_features_extractor)
        return mode(network.action_net(network.mlp_extractor.forward_actor(features)))

    return straight


def _in_bounds(network: Any, actions: Any) -> NDArray[Any]:
    """`actions` as the environment takes them: (rows, ...), stretched to their bounds or clipped."""
    space = network.action_space
    numbers: NDArray[Any] = actions.numpy().reshape(-1, *space.shape)
    if not hasattr(space, "low"):
        return numbers
    if network.squash_output:
        stretched: NDArray[Any] = network.unscale_action(numbers)
        return stretched
    clipped: NDArray[Any] = np.clip(numbers, space.low, space.high)
    return clipped


def _writable(block: NDArray[Any]) -> NDArray[Any]:
    """`block` in one piece of writable memory, as torch wants it."""
    block = np.ascontiguousarray(block)
    return block if block.flags.writeable else block.copy()


@contextmanager
def _quiet_inference(torch: Any) -> Iterator[None]:
    """One thread, no gradients, no checks of distributions inside.

    The checks cost time, and would stop all episodes where one has diverged.
    """
    distribution = torch.distributions.Distribution
    checks = distribution._validate_args
    distribution.set_default_validate_args(False)
    try:
        with one_thread(torch), torch.inference_mode():
            yield
    finally:
        distribution.set_default_validate_args(checks)
