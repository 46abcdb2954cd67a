"""What a user chooses about a campaign, as plain records. The same settings give the same findings."""

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any

from policyfuzz.core.errors import UsageError, unknown_name

DEFAULT_STRATEGY = "portfolio"


@dataclass(frozen=True, slots=True)
class DensitySettings:
    """What a user may choose about the density."""

    components: int = 10  #: K in the paper
    regularisation: float = 1e-4  #: added to variances, in units of the data's own variance
    forgetting: float = 0.0  #: gamma in the paper, per sequence; 0 weighs all learnt sequences equally


@dataclass(frozen=True, slots=True)
class FreshnessSettings:
    """When a state sequence counts as fresh."""

    quantile: float = 0.05  #: share of recent sequences that are called fresh
    threshold: float | None = None  #: tau in the paper: a fixed log-density per state instead
    memory: int = 2048  #: recent sequences whose densities place the quantile


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a user may choose about the search; a strategy uses the settings of its parts."""

    samples: int = 1000  #: inputs sampled before the first is changed
    sensitivity: str = "lineage"  #: energy of kept mutants: "exact" (an extra episode) or "lineage"
    density: DensitySettings = field(default_factory=DensitySettings)
    freshness: FreshnessSettings = field(default_factory=FreshnessSettings)

    def __post_init__(self) -> None:
        if self.sensitivity not in ("exact", "lineage"):
            raise unknown_name("sensitivity", self.sensitivity, ("exact", "lineage"))
        if self.samples < 1:
            raise UsageError(f"samples is {self.samples}, expected 1 or more")
        if not 0 < self.freshness.quantile < 1:
            raise UsageError(f"quantile is {self.freshness.quantile:g}, expected between 0 and 1")
        threshold = self.freshness.threshold
        if threshold is not None and not math.isfinite(threshold):
            raise UsageError(f"tau is {threshold:g}, expected a number")
        if not 0 <= self.density.forgetting < 1:
            raise UsageError(f"gamma is {self.density.forgetting:g}, expected 0 or more and below 1")
        if self.density.components < 1:
            raise UsageError(f"components is {self.density.components}, expected 1 or more")


@dataclass(frozen=True, slots=True)
class CampaignConfig:
    """Everything that the findings depend on, except the code."""

    target: str
    policy: str | None = None  #: URI, None for the target's own
    policy_sha256: str = ""
    code_sha256: str = ""  #: of the user's own files that the target is written in
    strategy: str = DEFAULT_STRATEGY
    seed: int = 0
    batch_size: int = 64
    #: Batches between ask and tell. Fixed, so that results do not depend on how many workers there are.
    window: int = 2
    distinct_radius: float = 0.01  #: in the unit cube
    search: SearchSettings = field(default_factory=SearchSettings)

    def __post_init__(self) -> None:
        for name, value, least in (
            ("seed", self.seed, 0),
            ("batch", self.batch_size, 1),
            ("window", self.window, 1),
        ):
            if value < least:
                raise UsageError(f"{name} is {value}, expected {least} or more")
        if not 0 < self.distinct_radius < math.inf:
            raise UsageError(f"radius is {self.distinct_radius:g}, expected more than 0")

    def to_json(self) -> str:
        """As text, for the store."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> "CampaignConfig":
        """The configuration that `to_json` wrote."""
        values: dict[str, Any] = json.loads(text)
        search = values.pop("search")
        density = DensitySettings(**search.pop("density"))
        freshness = FreshnessSettings(**search.pop("freshness"))
        return CampaignConfig(**values, search=SearchSettings(**search, density=density, freshness=freshness))

    def differences(self, other: "CampaignConfig") -> list[str]:
        """What differs, with both values, for a reader."""
        mine, theirs = _flat(dataclasses.asdict(self)), _flat(dataclasses.asdict(other))
        if self.policy_sha256 and self.policy_sha256 == other.policy_sha256:
            del mine["policy"]  # the same policy, wherever it lies
        changed = [name for name in mine if mine[name] != theirs[name]]
        return [
            "the files that the target is written in have changed"
            if name == "code_sha256"
            else f"{name} was {mine[name]!r}, now {theirs[name]!r}"
            for name in changed
        ]


def _option(setting: str, description: str) -> Any:
    """An option that sets `setting`, a path into `CampaignConfig`."""
    return field(default=None, metadata={"setting": setting, "description": description})


@dataclass(frozen=True, slots=True)
class CampaignOptions:
    """What a user may choose about a campaign, under the names of the command line. None: the default."""

    strategy: str | None = _option(
        "strategy", "How to search: portfolio (default), mdpfuzz, reward or random."
    )
    seed: int | None = _option("seed", "Of all randomness of the search.  [default: 0]")
    batch: int | None = _option("batch_size", "Episodes per batch.  [default: the target's]")
    window: int | None = _option("window", "Batches in flight; more for many workers.  [default: 2]")
    samples: int | None = _option(
        "search.samples", "Random inputs before the first mutant.  [default: the target's]"
    )
    sensitivity: str | None = _option(
        "search.sensitivity", "Energy of kept mutants: lineage (default) or exact."
    )
    quantile: float | None = _option(
        "search.freshness.quantile", "Share of state sequences called fresh.  [default: 0.05]"
    )
    tau: float | None = _option(
        "search.freshness.threshold", "Fixed freshness threshold instead: a log-density per state."
    )
    gamma: float | None = _option(
        "search.density.forgetting", "Forget learnt sequences at this rate (paper: 0.01).  [default: 0]"
    )
    components: int | None = _option("search.density.components", "Gaussians per mixture.  [default: 10]")
    radius: float | None = _option(
        "distinct_radius", "Findings nearer than this are not distinct.  [default: 0.01]"
    )

    def applied_to(self, config: CampaignConfig) -> CampaignConfig:
        """`config` with what was chosen."""
        for option in dataclasses.fields(self):
            value = getattr(self, option.name)
            if value is not None:
                config = _with(config, option.metadata["setting"].split("."), value)
        return config


def _with(record: Any, path: list[str], value: Any) -> Any:
    """`record` with `value` at `path`."""
    name, *rest = path
    return dataclasses.replace(record, **{name: _with(getattr(record, name), rest, value) if rest else value})


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
