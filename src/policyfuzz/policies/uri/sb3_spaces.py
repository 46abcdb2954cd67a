"""Does a saved model fit an environment? Its spaces and those of the environment, compared and in words."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError

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
