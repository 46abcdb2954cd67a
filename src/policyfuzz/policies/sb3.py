"""Models saved by stable-baselines3 and sb3-contrib.

    sb3:FILE.zip                       what model.save has written, with any algorithm
    sb3:FILE.zip?algo=tqc              the algorithm, instead of the one that the file shows
    sb3:FILE.zip?normalize=STATS.pkl   statistics of VecNormalize; looked for beside the zip without this
    sb3:FILE.zip?normalize=none        no normalisation, whatever lies beside the zip

Actions are those of `model.predict(..., deterministic=True)`. Loading unpickles, and needs trust.
"""

import hashlib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError, PolicyFuzzError, unknown_name
from policyfuzz.core.files import absolute_path, is_file
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.network import BLOCK_ROWS, Network, NetworkPolicy, validated
from policyfuzz.policies.rl_zoo import training_notes
from policyfuzz.policies.sb3_file import ALGORITHMS, Archive, check_names
from policyfuzz.policies.sb3_network import build, initial_states, runner
from policyfuzz.policies.torch_layers import hidden_layers
from policyfuzz.policies.uri import Address
from policyfuzz.policies.vec_normalize import Normaliser, Statistics, find

if TYPE_CHECKING:
    from gymnasium import Space

_OPTIONS = {
    "algo": "name of the algorithm",
    "normalize": "statistics of VecNormalize, or none",
    "deterministic": "yes",
}
_MASKS = "it acts without masks, which observations do not carry, and may choose actions that are not allowed"
_RANDOM_HINT = "its network draws random numbers even in eval mode: switch that off"
#: Bounds beyond this are none: older environments wrote the largest float instead of infinity.
_UNBOUNDED = 1e30


def load(rest: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:
    """The model in the zip that `rest` names."""
    address = Address.parse("sb3", rest, _OPTIONS)
    _check_deterministic(address.options)
    named = _named_algorithm(address.options)
    path, wanted = _file(address), address.options.get("normalize")
    check_names(path)
    place = find(path, wanted)
    if not trust:
        raise PolicyError(
            f"{path.name} can run code when it is loaded, as all pickles can",
            hint="add --trust if you made the file or trust who did",
        )
    archive = Archive.read(path)
    extras.load("stable_baselines3", "sb3")
    shapes = {key: tuple(space.shape or ()) for key, space in _parts(spaces.observation).items()}
    statistics = Statistics.read(place, shapes, is_wanted=wanted is not None)
    zoo = training_notes(archive.path, statistics.path is not None)
    trained, remarks = _trained_spaces(archive, spaces)
    try:
        fit = _fit_observations(trained.observation, spaces.observation, statistics.normaliser.mean)
        bounds = _fit_actions(trained.action, spaces.action)
    except PolicyError as error:
        raise PolicyError(error.message, "\n  ".join(zoo) or error.hint) from error
    algorithm = named or archive.algorithm
    recipe, doubts = _validated(Recipe(archive, algorithm, trained, spaces, statistics.normaliser, fit))
    masks = (_MASKS,) if algorithm == "MaskablePPO" else ()
    return LoadedPolicy(
        make=recipe,
        name=f"sb3:{archive.path.name}" + (f" ({algorithm})" if algorithm else ""),
        uri=_complete(address, statistics.path).uri(archive.path),
        sha256=_sha256(archive, statistics),
        recorded_return=archive.recorded_return(),
        notes=(*statistics.notes, *zoo, *remarks, *fit.notes, *bounds, *doubts, *masks),
    )


def _file(address: Address) -> Path:
    """The zip; its ending may be left out, as in the calls of stable-baselines3."""
    path = absolute_path(address.place, PolicyError)
    completed = path.parent / f"{path.name}.zip"
    return completed if is_file(completed) and not is_file(path) else address.file()


def _named_algorithm(options: Mapping[str, str]) -> str:
    named = options.get("algo", "").lower().replace("-", "_")
    if named and named not in ALGORITHMS:
        raise unknown_name("algorithm of stable-baselines3", named, ALGORITHMS)
    return ALGORITHMS.get(named, "")


def _check_deterministic(options: Mapping[str, str]) -> None:
    given = options.get("deterministic", "yes").lower()
    if given not in ("", "yes", "true", "1"):
        raise PolicyError(
            f"deterministic={given} is not possible: an episode must be a function of its input and seed, and"
            " that of a policy which draws its actions is not",
            hint="leave it out; actions are then those of model.predict(observation, deterministic=True)",
        )


def _complete(address: Address, statistics: Path | None) -> Address:
    """`address` with its statistics, so that files that appear beside the zip later change nothing."""
    algorithm = {key: value for key, value in address.options.items() if key == "algo"}
    return replace(address, options=algorithm | {"normalize": str(statistics or "none")})


def _sha256(archive: Archive, statistics: Statistics) -> str:
    """Digest of the zip, and of the statistics if there are any."""
    if statistics.path is None:
        return archive.sha256
    both = archive.sha256 + hashlib.sha256(statistics.content).hexdigest()
    return hashlib.sha256(both.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Fit:
    """How observations of an environment become those that a model was trained with."""

    turned: frozenset[str]  #: keys of pictures that the model takes channels first; "" where it is no Dict
    notes: tuple[str, ...]

    def convert(self, key: str, observations: NDArray[Any]) -> NDArray[Any]:
        """The part `key` of `observations` (m, ...), channels first where the model takes it so."""
        return np.moveaxis(observations, -1, 1) if key in self.turned else observations


@dataclass(frozen=True, slots=True)
class Recipe:
    """Makes the policy, in any process."""

    archive: Archive
    algorithm: str
    trained: Spaces  #: spaces of the model
    given: Spaces  #: spaces of the environment
    normaliser: Normaliser
    fit: Fit
    rows: int | None = BLOCK_ROWS  #: that go through the network at once

    def __call__(self) -> NetworkPolicy:
        return NetworkPolicy(self.network(), self.given)

    def network(self) -> Network:
        """A new network."""
        module = build(self.archive, self.trained, self.algorithm)
        keys = tuple(_parts(self.trained.observation))
        run = runner(module, keys)
        return Network(
            run,
            tuple(partial(self._part, key) for key in keys),
            initial_states(module),
            self.rows,
            may_squash=False,
            gives_actions=True,
            hidden=hidden_layers(run),
        )

    def _part(self, key: str, observations: NDArray[Any]) -> NDArray[Any]:
        """The part `key` of `observations` (m, ...) as the network takes it."""
        part = observations[key] if key else observations
        return self.fit.convert(key, self.normaliser(key, part))


def _validated(recipe: Recipe) -> tuple[Recipe, tuple[str, ...]]:
    """`recipe` after a trial, and notes."""
    name = recipe.archive.path.name
    try:
        network = validated(recipe.network(), recipe.given, name, _RANDOM_HINT)
    except PolicyFuzzError:
        raise
    except Exception as error:  # whatever the network raises
        raise PolicyError(
            f"the network in {name} cannot act: {type(error).__name__}: {error}",
            hint="does it act in your code, with model.predict(observation)?",
        ) from error
    return replace(recipe, rows=network.rows), network.notes


def _trained_spaces(archive: Archive, given: Spaces) -> tuple[Spaces, tuple[str, ...]]:
    """The spaces that the model in `archive` was trained with, and notes.

    The spaces of the environment, `given`, replace those that cannot be read any more.
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


def _parts(space: "Space[Any]") -> Mapping[str, "Space[Any]"]:
    """The spaces of a Dict by key, or `space` itself under the empty key."""
    from gymnasium import spaces

    return space.spaces if isinstance(space, spaces.Dict) else {"": space}


def _fit_observations(trained: "Space[Any]", given: "Space[Any]", normalised: Collection[str]) -> Fit:
    """How a model that was trained on `trained` takes observations of space `given`.

    Keys that are `normalised` become float32 before the model sees them, whatever they were.
    """
    mine, theirs = _parts(trained), _parts(given)
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


def _fit_actions(trained: "Space[Any]", given: "Space[Any]") -> tuple[str, ...]:
    """Notes on what differs between actions of a model and those of an environment, if they fit."""
    if not _is_alike(trained, given, is_any_type=True):
        raise _misfit("actions", trained, given)
    return tuple(_differences("actions", trained, given))


def _in_words(space: "Space[Any]") -> str:
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
            return f"a dictionary of {'; '.join(f'{key}: {_in_words(part)}' for key, part in space.items())}"
    return str(space)


def _is_alike(trained: "Space[Any]", given: "Space[Any]", is_any_type: bool) -> bool:
    """True if a model can take or give the one for the other."""
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
    """True if the model takes the pictures of `given` with their channels first."""
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
        f"the policy does not fit the environment: it {verb} {what} that are {_in_words(trained)},"
        f" and those of the environment are {_in_words(given)}",
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
