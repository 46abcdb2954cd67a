"""The policy network in a saved model: built as its algorithm builds it, without the algorithm.

Replay buffers, schedules, optimisers and environments are not needed to act. Leaving them out makes loading
fast, and lets models load that were saved by other versions.
"""

from typing import Any

from policyfuzz import extras
from policyfuzz.errors import PolicyError
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.uri.sb3_archive import Archive

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
