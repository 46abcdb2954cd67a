"""`sb3:FILE.zip`: models of stable-baselines3 and sb3-contrib, with the normalisation they were trained with.

    sb3:FILE.zip                       what model.save has written; the algorithm is found out
    sb3:FILE.zip?algo=tqc              the algorithm, where that should be checked
    sb3:FILE.zip?normalize=STATS.pkl   statistics of VecNormalize; looked for beside the zip without this
    sb3:FILE.zip?normalize=none        no normalisation, whatever lies beside the zip

Actions are those of `model.predict(..., deterministic=True)`. Loading unpickles, and needs trust.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from policyfuzz import extras
from policyfuzz.errors import PolicyError, unknown_name
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri.address import Address
from policyfuzz.policies.uri.sb3_archive import ALGORITHMS, Archive
from policyfuzz.policies.uri.sb3_network import trained_spaces
from policyfuzz.policies.uri.sb3_policy import Recipe, tried
from policyfuzz.policies.uri.sb3_record import recorded_return
from policyfuzz.policies.uri.sb3_spaces import fit_actions, fit_observations, parts
from policyfuzz.policies.uri.vec_normalize import Statistics, find

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
