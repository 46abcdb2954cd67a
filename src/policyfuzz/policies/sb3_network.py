"""The network of a saved model: whether its spaces fit, how it is built, and how it acts.

Replay buffers, schedules, optimisers and environments are not needed to act. Leaving them out makes loading
fast, and lets models load that were saved by other versions.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.network import Arrays
from policyfuzz.policies.sb3_file import Archive
from policyfuzz.policies.torch import one_thread

if TYPE_CHECKING:
    from gymnasium import Space

#: Bounds beyond this are none: older environments wrote the largest float instead of infinity.
_UNBOUNDED = 1e30


@dataclass(frozen=True, slots=True)
class Fit:
    """How observations of an environment become those that a model was trained with."""

    turned: frozenset[str]  #: keys of pictures that the model takes channels first; "" where it is no Dict
    notes: tuple[str, ...]

    def convert(self, key: str, observations: NDArray[Any]) -> NDArray[Any]:
        """The part `key` of `observations` (m, ...), channels first where the model takes it so."""
        return np.moveaxis(observations, -1, 1) if key in self.turned else observations


def parts(space: "Space[Any]") -> Mapping[str, "Space[Any]"]:
    """The spaces of a Dict by key, or `space` itself under the empty key."""
    from gymnasium import spaces

    return space.spaces if isinstance(space, spaces.Dict) else {"": space}


def fit_observations(trained: "Space[Any]", given: "Space[Any]", normalised: Collection[str]) -> Fit:
    """How observations of space `given` are given to a model that was trained on `trained`.

    Keys that are `normalised` become float32 before the model sees them, whatever they were.
    """
    mine, theirs = parts(trained), parts(given)
    if set(mine) - set(theirs) or ("" in theirs) != ("" in mine):
        raise _misfit("observations", trained, given)
    turned, notes = set(), []
    for key, space in mine.items():
        if _is_turned(space, theirs[key]):
            turned.add(key)
        elif not _is_alike(space, theirs[key], key in normalised):
            raise _misfit("observations", trained, given)
        elif key not in normalised:
            notes += _differences(f"observations{key and ' ' + key}", space, theirs[key])
    left = sorted(set(theirs) - set(mine))
    if left:
        notes.append(f"it does not look at {', '.join(left)} of the observations")
    return Fit(frozenset(turned), tuple(notes))


def fit_actions(trained: "Space[Any]", given: "Space[Any]") -> tuple[str, ...]:
    """Notes on what differs between actions of a model and those of an environment, if they fit."""
    if not _is_alike(trained, given, is_any_type=True):
        raise _misfit("actions", trained, given)
    return tuple(_differences("actions", trained, given))


def in_words(space: "Space[Any]") -> str:
    """`space` for a reader, without its bounds."""
    from gymnasium import spaces

    match space:
        case spaces.Box():
            return f"{space.dtype} numbers of shape {space.shape}"
        case spaces.Discrete():
            return f"one of {space.n}"
        case spaces.MultiDiscrete():
            return f"one each of {', '.join(map(str, space.nvec.ravel()))}"
        case spaces.MultiBinary():
            return f"{math.prod(space.shape)} times yes or no"
        case spaces.Dict():
            return f"a dictionary of {'; '.join(f'{key}: {in_words(part)}' for key, part in space.items())}"
    return str(space)


def _is_alike(trained: "Space[Any]", given: "Space[Any]", is_any_type: bool) -> bool:
    """True where a model can take or give the one for the other."""
    from gymnasium import spaces

    match (trained, given):
        case (spaces.Box(), spaces.Box()):
            same_kind = is_any_type or np.dtype(trained.dtype).kind == np.dtype(given.dtype).kind
            return trained.shape == given.shape and same_kind
        case (spaces.Discrete(), spaces.Discrete()):
            return int(trained.n) == int(given.n)
        case (spaces.MultiDiscrete(), spaces.MultiDiscrete()):
            return np.array_equal(trained.nvec, given.nvec)
        case (spaces.MultiBinary(), spaces.MultiBinary()):
            return trained.shape == given.shape
    return False


def _is_turned(trained: "Space[Any]", given: "Space[Any]") -> bool:
    """True where the model takes the pictures of `given` with their channels first."""
    from gymnasium import spaces

    if not (isinstance(trained, spaces.Box) and isinstance(given, spaces.Box) and len(given.shape) == 3):
        return False
    channels_first = (given.shape[2], *given.shape[:2])
    return trained.shape == channels_first != given.shape and trained.dtype == given.dtype


def _differences(what: str, trained: Any, given: Any) -> list[str]:
    """Notes on differences between two spaces that are alike."""
    notes: list[str] = []
    if not hasattr(trained, "low"):
        return notes
    if trained.dtype != given.dtype:
        notes.append(f"{what} are {given.dtype} here and were {trained.dtype} in training")
    for end in ("low", "high"):
        here, there = _bounded(getattr(given, end)), _bounded(getattr(trained, end))
        if not np.allclose(here, there, rtol=1e-4, atol=0):
            place = np.unravel_index(int(np.argmax(~np.isclose(here, there, rtol=1e-4, atol=0))), here.shape)
            notes.append(f"bounds of {what} differ: {end} {here[place]:g} here, {there[place]:g} in training")
            break
    return notes


def _bounded(bounds: NDArray[Any]) -> NDArray[np.float64]:
    wide = np.asarray(bounds, np.float64)
    return np.where(np.abs(wide) > _UNBOUNDED, np.copysign(np.inf, wide), wide)


def _misfit(what: str, trained: "Space[Any]", given: "Space[Any]") -> PolicyError:
    verb = "was trained on" if what == "observations" else "gives"
    return PolicyError(
        f"the policy does not fit the environment: it {verb} {what} that are {in_words(trained)},"
        f" and those of the environment are {in_words(given)}",
        _hint(what, trained, given),
    )


def _hint(what: str, trained: "Space[Any]", given: "Space[Any]") -> str:
    """The likely reason why the two do not fit."""
    from gymnasium import spaces

    reason = ""
    if what == "observations" and isinstance(trained, spaces.Box):
        if isinstance(given, spaces.Dict):
            reason = "were they flattened or filtered (FlattenObservation, FilterObservation)?"
        elif isinstance(given, spaces.Box):
            reason = _reason(trained.shape, given.shape)
    reason = reason or "was it trained in another environment, with other options of it, or with a wrapper?"
    return f"{reason} The environment needs the same wrappers here"


def _reason(trained: tuple[int, ...], given: tuple[int, ...]) -> str:
    """What may have turned observations of shape `given` into those of shape `trained`; empty if unknown."""
    mine, theirs = math.prod(trained), math.prod(given)
    if trained == given:
        return (
            "same shape, another type: were they scaled, or normalised by VecNormalize (?normalize=FILE.pkl)?"
        )
    if mine == theirs:
        return "as many numbers in another shape: were they flattened or reshaped (FlattenObservation)?"
    if mine == theirs + 1:
        return "one number more: the time (TimeAwareObservation)?"
    if theirs and mine > theirs and mine % theirs == 0:
        return f"{mine // theirs} times as many numbers: were frames stacked (FrameStackObservation)?"
    return ""


#: Before version 1.7 these parts were stored once, under the name of the part that they share.
_SHARED_PARTS = ("pi_features_extractor.", "vf_features_extractor.")
_SHARED_LAYERS = "mlp_extractor.shared_net."


def trained_spaces(archive: Archive, given: Spaces) -> tuple[Spaces, tuple[str, ...]]:
    """The spaces that the model in `archive` was trained with, and notes.

    Those of the environment, `given`, stand for what cannot be read any more.
    """
    from gymnasium import Space

    found, notes = {}, []
    for what, here in (("observation", given.observation), ("action", given.action)):
        try:
            stored = archive.unpickle(f"{what}_space")
        except PolicyError:
            stored = None
        if isinstance(stored, Space):
            stored.seed(0)  # its generator was not read, and networks for pictures draw a sample
        else:
            notes.append(f"its {what} space cannot be read: taken to be that of the environment")
            stored = _channels_first(here) if what == "observation" else here
        found[what] = stored
    return Spaces(**found), tuple(notes)


def _channels_first(space: Any) -> Any:
    """`space` as models see it: pictures are turned."""
    looks = extras.load("stable_baselines3.common.preprocessing", "sb3")
    if not looks.is_image_space(space) or looks.is_image_space_channels_first(space):
        return space
    return extras.load("stable_baselines3.common.vec_env", "sb3").VecTransposeImage.transpose_space(space)


def build(archive: Archive, spaces: Spaces, algorithm: str) -> Any:
    """The network of `archive` (a `BasePolicy`) for `spaces` that it was trained with, ready to act."""
    extras.load("stable_baselines3", "sb3")
    if "sb3_contrib" in str(archive.data["policy_class"]):
        extras.load("sb3_contrib", "sb3")
    policy_class = archive.unpickle("policy_class")
    arguments = dict(archive.unpickle("policy_kwargs") or {})
    weights = archive.weights()
    for unused in ("device", "optimizer_class", "optimizer_kwargs"):
        arguments.pop(unused, None)
    if archive.data.get("use_sde"):
        arguments["use_sde"] = True
    schedule = () if algorithm == "ARS" else (_no_learning,)
    _modernise(arguments, weights)
    try:
        network = policy_class(spaces.observation, spaces.action, *schedule, **arguments)
        missing, unexpected = network.load_state_dict(weights, strict=False)
    except Exception as error:  # whatever the classes of the policy raise
        raise _unusable(archive, f"{type(error).__name__}: {error}") from error
    missing = [name for name in missing if not name.startswith(_SHARED_PARTS)]
    if missing or unexpected:
        found = f"no {missing[0]}" if missing else f"{unexpected[0]}, which its policy class does not have"
        raise _unusable(archive, f"its weights hold {found}")
    network.set_training_mode(False)
    return network.to("cpu")


def _no_learning(_progress: float) -> float:
    """A learning rate for the optimiser that a policy insists on making."""
    return 0.0


def _modernise(arguments: dict[str, Any], weights: dict[str, Any]) -> None:
    """Rewrite in place what policies before version 1.8 have said differently.

    Their `net_arch` was a list, and the first layers could be shared by actor and critic. To act it makes no
    difference if each of them has its own copy.
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
