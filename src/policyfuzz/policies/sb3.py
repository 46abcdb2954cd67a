"""Models saved by stable-baselines3 and sb3-contrib.

    sb3:FILE.zip                       what model.save has written; the algorithm is found out
    sb3:FILE.zip?algo=tqc              the algorithm, where that should be checked
    sb3:FILE.zip?normalize=STATS.pkl   statistics of VecNormalize; looked for beside the zip without this
    sb3:FILE.zip?normalize=none        no normalisation, whatever lies beside the zip

Actions are those of `model.predict(..., deterministic=True)`. Loading unpickles, and needs trust.
"""

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError, PolicyFuzzError, unknown_name
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.network import BLOCK_ROWS, Network, NetworkPolicy
from policyfuzz.policies.sb3_file import ALGORITHMS, Archive
from policyfuzz.policies.sb3_network import (
    Fit,
    build,
    fit_actions,
    fit_observations,
    initial_states,
    parts,
    runner,
    trained_spaces,
)
from policyfuzz.policies.uri import Address
from policyfuzz.policies.vec_normalize import Normaliser, Statistics, find
from policyfuzz.policies.views import made_up


class Sb3Policy(NetworkPolicy):
    """A network whose outputs are the actions."""

    def decode(self, outputs: NDArray[Any]) -> NDArray[Any]:
        return outputs


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that is needed to make the policy again, in another process too."""

    archive: Archive
    algorithm: str
    trained: Spaces  #: spaces of the model
    given: Spaces  #: spaces of the environment
    normaliser: Normaliser
    fit: Fit
    rows: int = BLOCK_ROWS  #: that go through the network at once

    def __call__(self) -> Sb3Policy:
        """A new policy with a network of its own."""
        network = build(self.archive, self.trained, self.algorithm)
        keys = tuple(parts(self.trained.observation))
        layouts = tuple(partial(self._part, key) for key in keys)
        run = runner(network, keys)
        return Sb3Policy(Network(run, layouts, initial_states(network), self.rows), self.given)

    def _part(self, key: str, observations: NDArray[Any]) -> NDArray[Any]:
        """The part `key` of `observations` (m, ...) as the network takes it."""
        part = observations[key] if key else observations
        return self.fit.convert(key, self.normaliser(key, part))


def tried(recipe: Recipe) -> tuple[Recipe, tuple[str, ...]]:
    """`recipe` as it can be used, after a trial on made-up observations, and notes."""
    policy, name = recipe(), recipe.archive.path.name
    observations = made_up(recipe.given.observation, BLOCK_ROWS)
    try:
        actions, turned = _first_actions(policy, observations), _first_actions(policy, observations[::-1])
        alone = _first_actions(policy, observations[:1])
    except PolicyFuzzError:
        raise
    except Exception as error:  # whatever the network raises
        raise PolicyError(
            f"the network in {name} cannot act: {type(error).__name__}: {error}",
            hint="does it act in your own code, by model.predict(observation)?",
        ) from error
    if np.array_equal(actions, turned[::-1]) and np.array_equal(actions[:1], alone):
        return recipe, ()
    if not np.array_equal(actions, _first_actions(policy, observations)):
        raise PolicyError(
            f"{name} gives two different actions for the same observation",
            hint="its network draws random numbers even in eval mode: switch that off",
        )
    return replace(recipe, rows=1), ("runs row by row, since its rows of a batch depend on each other",)


def _first_actions(policy: Sb3Policy, observations: NDArray[Any]) -> NDArray[Any]:
    policy.begin(len(observations))
    return policy.act(observations, np.arange(len(observations)))


def recorded_return(archive: Archive) -> float | None:
    """Mean return of the last episodes in training, or of the evaluation that chose it as the best model."""
    found = _in_training(archive)
    return _as_best(archive) if found is None else found


def _in_training(archive: Archive) -> float | None:
    try:
        episodes = archive.unpickle("ep_info_buffer")
        returns = [float(episode["r"]) for episode in episodes or ()]
    except (PolicyError, KeyError, TypeError, ValueError):
        return None  # a record is nice to have; that of another version may not be readable
    return _mean(returns)


def _as_best(archive: Archive) -> float | None:
    """From the file that EvalCallback keeps beside the best model."""
    evaluations = archive.path.with_name("evaluations.npz")
    if archive.path.stem != "best_model" or not evaluations.is_file():
        return None
    try:
        with np.load(evaluations) as stored:
            results = np.asarray(stored["results"], np.float64)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile):
        return None
    return float(results.mean(axis=1).max()) if results.ndim == 2 and results.size else None


def _mean(returns: list[float]) -> float | None:
    finite = [value for value in returns if np.isfinite(value)]
    return float(np.mean(finite)) if finite else None


_OPTIONS = {
    "algo": "name of the algorithm",
    "normalize": "statistics of VecNormalize, or none",
    "deterministic": "yes",
}
_MASKS = "it acts without masks, which observations do not carry, and may choose actions that are not allowed"


def load(rest: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:
    """The model in the zip that `rest` names."""
    address = Address.parse("sb3", rest, _OPTIONS)
    _check_deterministic(address.options)
    named = _named_algorithm(address.options)
    archive = Archive.read(_file(address))
    wanted = address.options.get("normalize")
    place = find(archive.path, wanted)
    if not trust:
        raise PolicyError(
            f"{archive.path.name} can run code when it is loaded, as all pickles can",
            hint="add --trust if you made the file or trust who did",
        )
    extras.load("stable_baselines3", "sb3")
    shapes = {key: tuple(space.shape or ()) for key, space in parts(spaces.observation).items()}
    statistics = Statistics.read(place, shapes, is_wanted=wanted is not None)
    trained, remarks = trained_spaces(archive, spaces)
    fit = fit_observations(trained.observation, spaces.observation, statistics.normaliser.mean)
    bounds = fit_actions(trained.action, spaces.action)
    algorithm = named or archive.algorithm
    recipe, doubts = tried(Recipe(archive, algorithm, trained, spaces, statistics.normaliser, fit))
    masks = (_MASKS,) if algorithm == "MaskablePPO" else ()
    return LoadedPolicy(
        make=recipe,
        name=f"sb3:{archive.path.name}" + (f" ({algorithm})" if algorithm else ""),
        uri=_uri(archive.path, address.options.get("algo"), statistics.path),
        sha256=_sha256(archive, statistics),
        recorded_return=recorded_return(archive),
        notes=(*statistics.notes, *remarks, *fit.notes, *bounds, *doubts, *masks),
    )


def _file(address: Address) -> Path:
    """The zip; its ending may be left out, as in the calls of stable-baselines3."""
    path = Path(address.place).expanduser().absolute()
    completed = path.with_name(f"{path.name}.zip")
    return completed if completed.is_file() and not path.is_file() else address.file()


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


def _uri(model: Path, algorithm: str | None, statistics: Path | None) -> str:
    """The address that loads the same from any folder and whatever will lie beside the zip."""
    named = "" if algorithm is None else f"algo={algorithm}&"
    return f"sb3:{model}?{named}normalize={'none' if statistics is None else statistics}"


def _sha256(archive: Archive, statistics: Statistics) -> str:
    """Digest of the zip, and of the statistics if there are any."""
    if statistics.path is None:
        return archive.sha256
    both = archive.sha256 + hashlib.sha256(statistics.content).hexdigest()
    return hashlib.sha256(both.encode()).hexdigest()
