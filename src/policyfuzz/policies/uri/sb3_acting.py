"""How a network of stable-baselines3 acts: as `model.predict(..., deterministic=True)`, but faster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz import extras
from policyfuzz.policies.torch_threads import one_thread
from policyfuzz.policies.uri.network import Arrays


def runner(network: Any, keys: Sequence[str]) -> Callable[..., Arrays]:
    """The function from the parts `keys` of observations, each (rows, ...), to actions (rows, ...).

    A recurrent network takes its two states (rows, layers, width) behind them and gives the new ones behind
    its actions.
    """
    torch = extras.load("torch", "sb3")
    choose = _choice(network)

    def run(*blocks: NDArray[Any]) -> Arrays:
        with _undisturbed(torch):
            tensors = [torch.from_numpy(_own(block)) for block in blocks]
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
    """What a recurrent network remembers at the beginning of an episode; nothing for all others."""
    shape = getattr(network, "lstm_hidden_state_shape", None)
    if shape is None:
        return ()
    layers, _, width = shape
    return np.zeros((layers, width), np.float32), np.zeros((layers, width), np.float32)


def _choice(network: Any) -> Callable[[Any], Any]:
    """The function from observations to deterministic actions, both tensors.

    What PPO, A2C and TRPO use as it is goes straight through its layers: twice as fast as by way of a
    distribution, of which nothing but the mode is wanted.
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


def _own(block: NDArray[Any]) -> NDArray[Any]:
    """`block` in one piece of memory that may be written, which torch asks for."""
    block = np.ascontiguousarray(block)
    return block if block.flags.writeable else block.copy()


@contextmanager
def _undisturbed(torch: Any) -> Iterator[None]:
    """One thread, no gradients, no checks of distributions; all is as before afterwards.

    The checks cost time, and would stop everything where one episode of many
    has diverged.
    """
    distribution = torch.distributions.Distribution
    checks = distribution._validate_args
    distribution.set_default_validate_args(False)
    try:
        with one_thread(torch), torch.inference_mode():
            yield
    finally:
        distribution.set_default_validate_args(checks)
