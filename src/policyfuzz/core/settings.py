"""What a user chooses about a campaign, as plain records. The same settings give the same findings."""

import dataclasses
import functools
import json
import math
import re
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol, cast, get_args, get_type_hints

from policyfuzz.core.errors import UsageError, unknown_name

DEFAULT_STRATEGY = "portfolio"
#: Root mean square difference per dimension of the unit cube within which two findings are alike.
DISTINCT_RADIUS = 0.05
#: Episodes of a batch, and batches in flight, that no machine could hold more of.
_LARGEST_BATCH = 10_000_000


@dataclass(frozen=True, slots=True)
class DensitySettings:
    """What a user may choose about the density."""

    components: int = 10  #: K in the paper
    regularisation: float = 1e-4  #: added to variances, in units of the data's own variance
    forgetting: float = 0.0  #: gamma in the paper, per sequence; 0 weighs all learnt sequences equally


#: What the density of a state sequence is taken to be, see `FreshnessSettings.score`.
FRESHNESS_SCORES = ("transition", "mean")


@dataclass(frozen=True, slots=True)
class FreshnessSettings:
    """When a state sequence counts as fresh."""

    quantile: float = 0.05  #: share of recent sequences that are called fresh
    threshold: float | None = None  #: tau in the paper: a fixed log-density instead
    memory: int = 2048  #: recent sequences whose densities place the quantile
    #: "transition": log-density of the least likely transition; "mean": per state of the whole sequence.
    score: str = "transition"


@dataclass(frozen=True, slots=True)
class PublishedSettings:
    """What the code of the MDPFuzz paper does and its pseudocode does not; for strategies `...-published`."""

    children: int = 5  #: mutants of a seed before it leaves the corpus
    when_empty: str = "refill"  #: the corpus with new samples, or "stop" the campaign
    crashed_samples: bool = True  #: are parents
    learnt_below: float = math.log(0.01)  #: log-density of a state sequence below which it is learnt

    def __post_init__(self) -> None:
        if self.children < 1:
            raise UsageError(f"children is {self.children}, expected 1 or more")
        if self.when_empty not in ("refill", "stop"):
            raise unknown_name("choice for an empty corpus", self.when_empty, ("refill", "stop"))


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a user may choose about the search; a strategy uses the settings of its parts."""

    samples: int = 1000  #: inputs sampled before the first is changed
    sensitivity: str = "lineage"  #: energy of kept mutants: "exact" (an extra episode) or "lineage"
    density: DensitySettings = field(default_factory=DensitySettings)
    freshness: FreshnessSettings = field(default_factory=FreshnessSettings)
    published: PublishedSettings = field(default_factory=PublishedSettings)

    def __post_init__(self) -> None:
        if self.sensitivity not in ("exact", "lineage"):
            raise unknown_name("sensitivity", self.sensitivity, ("exact", "lineage"))
        if self.samples < 1:
            raise UsageError(f"samples is {self.samples}, expected 1 or more")
        if self.freshness.score not in FRESHNESS_SCORES:
            raise unknown_name("freshness", self.freshness.score, FRESHNESS_SCORES)
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
    references: str = ""  #: URIs of the policies one of which must survive a finding, one per line
    references_sha256: str = ""
    strategy: str = DEFAULT_STRATEGY
    seed: int = 0
    batch_size: int = 64
    #: Batches between ask and tell. Fixed, so that results do not depend on how many workers there are.
    window: int = 2
    distinct_radius: float = DISTINCT_RADIUS
    search: SearchSettings = field(default_factory=SearchSettings)

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("seed", self.seed, 0, math.inf),
            ("batch", self.batch_size, 1, _LARGEST_BATCH),
            ("window", self.window, 1, _LARGEST_BATCH),
        ):
            if value < least:
                raise UsageError(f"{name} is {value}, expected {least} or more")
            if value > most:
                raise UsageError(f"{name} is {value:,}, expected {most:,} or less")
        if not 0 < self.distinct_radius < math.inf:
            raise UsageError(f"radius is {self.distinct_radius:g}, expected more than 0")

    def to_json(self) -> str:
        """As text, for the store."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> "CampaignConfig":
        """The configuration that `to_json` wrote; raises a ValueError if any value is of another type."""
        config: CampaignConfig = _typed(CampaignConfig, _with_old_score(json.loads(text)))
        return config

    def differences(self, other: "CampaignConfig") -> list[str]:
        """What differs, with both values, for a reader."""
        theirs = other.unlike(self)
        return [
            "the files that the target is written in have changed"
            if name == "code_sha256"
            else f"{name} was {value!r}, now {theirs[name]!r}"
            for name, value in self.unlike(other).items()
        ]

    def unlike(self, other: "CampaignConfig") -> dict[str, Any]:
        """Own values of the settings that differ, by name."""
        mine, theirs = _flat(dataclasses.asdict(self)), _flat(dataclasses.asdict(other))
        if self.policy_sha256 and self.policy_sha256 == other.policy_sha256:
            del mine["policy"]  # the same policy, only its file may have moved
        if self.references_sha256 and self.references_sha256 == other.references_sha256:
            del mine["references"]
        return {name: value for name, value in mine.items() if value != theirs[name]}


def _with_old_score(values: Any) -> Any:
    """`values` of a configuration; files of earlier versions name no score of freshness: it was the mean."""
    match values:
        case {"search": {"freshness": {"score": _}}}:
            return values
        case {"search": {"freshness": {**freshness}, **search}}:
            return {**values, "search": {**search, "freshness": {**freshness, "score": "mean"}}}
        case _:
            return values


def _typed(kind: Any, value: Any) -> Any:
    """The `value` that JSON holds as a `kind`: a record of settings, or the type of one of its fields."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        if not isinstance(value, dict) or not value.keys() <= hints.keys():
            raise ValueError(f"expected {', '.join(hints)}, given {str(value)[:50]!r}")
        return cast(Any, kind)(**{name: _typed(hints[name], item) for name, item in value.items()})
    allowed = get_args(kind) or (kind,)
    if float in allowed and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if type(value) not in allowed or (type(value) is float and not math.isfinite(value)):
        raise ValueError(f"{str(value)[:50]!r} is not of type {' or '.join(one.__name__ for one in allowed)}")
    return value


def _option(setting: str, description: str) -> Any:
    """An option that sets `setting`, a path into `CampaignConfig`."""
    return field(default=None, metadata={"setting": setting, "description": description})


@dataclass(frozen=True, slots=True)
class CampaignOptions:
    """What a user may choose about a campaign, under the names of the command line. None: the default."""

    strategy: str | None = _option(
        "strategy",
        "How to search: portfolio (default), mdpfuzz, reward, mdpfuzz-published, reward-published or random.",
    )
    seed: int | None = _option("seed", "Seed of all randomness of the search.  [default: 0]")
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
    freshness: str | None = _option(
        "search.freshness.score",
        "Density of a state sequence: that of its least likely transition (default), or mean.",
    )
    tau: float | None = _option(
        "search.freshness.threshold", "Fixed freshness threshold instead: a log-density."
    )
    gamma: float | None = _option(
        "search.density.forgetting", "Forget learnt sequences at this rate.  [default: 0]"
    )
    components: int | None = _option("search.density.components", "Gaussians per mixture.  [default: 10]")
    children: int | None = _option(
        "search.published.children",
        "Mutants of a seed before it leaves the corpus, of published strategies.  [default: by target]",
    )
    when_empty: str | None = _option(
        "search.published.when_empty", "What they do with an empty corpus: refill it (default), or stop."
    )
    radius: float | None = _option(
        "distinct_radius",
        "Findings are alike if their inputs differ by less, per dimension as a share of its range."
        "  [default: 0.05]",
    )

    @classmethod
    def of(cls, config: CampaignConfig) -> "CampaignOptions":
        """The options that lead to the settings of `config`."""
        values: dict[str, Any] = {
            option.name: functools.reduce(getattr, option.metadata["setting"].split("."), config)
            for option in dataclasses.fields(cls)
        }
        return cls(**values)

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


#: A time: "90s", "2m", "1h30m", a number of seconds, or a timedelta.
Duration = str | float | timedelta
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


class StopReason(StrEnum):
    """Why a campaign stopped."""

    MAX_TIME = "max-time"
    MAX_EXECS = "max-execs"
    MAX_FINDINGS = "max-findings"
    INTERRUPTED = "interrupted"
    EXHAUSTED = "exhausted"  #: every start has been tried
    SEARCH_ENDED = "search-ended"  #: the strategy has nothing left to try
    UNHEALTHY = "unhealthy"


class Spent(Protocol):
    """What a campaign has used of its budget so far."""

    @property
    def seconds(self) -> float: ...
    @property
    def executions(self) -> int: ...
    @property
    def findings(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits over the whole life of a campaign, resumed parts included. None: no limit."""

    seconds: float | None = None
    executions: int | None = None
    findings: int | None = None

    def __post_init__(self) -> None:
        limits = (
            ("max-time", self.seconds),
            ("max-execs", self.executions),
            ("max-findings", self.findings),
        )
        for name, limit in limits:
            if limit is not None and not limit > 0:
                raise UsageError(f"{name} is {limit:g}, expected more than 0")

    def limit_reached(self, spent: Spent) -> StopReason | None:
        """The limit that has been reached, if any."""
        if self.findings is not None and spent.findings >= self.findings:
            return StopReason.MAX_FINDINGS
        if self.executions is not None and spent.executions >= self.executions:
            return StopReason.MAX_EXECS
        if self.seconds is not None and spent.seconds >= self.seconds:
            return StopReason.MAX_TIME
        return None

    def room(self, batch_size: int, executed: int, in_flight: int, reserved: int, reruns: int = 1) -> int:
        """How many new cases may be asked for, so that each of those that crash can have its `reruns`.

        So can those `in_flight`, and `reserved` episodes are needed besides. The very last execution of a
        budget is the exception: should it crash, it stays unconfirmed.
        """
        if self.executions is None:
            return batch_size
        free = self.executions - executed - (1 + reruns) * in_flight - reserved
        return max(0, min(batch_size, (free + reruns) // (1 + reruns)))

    def share_spent(self, spent: Spent) -> float | None:
        """How much is spent, from 0 to 1, of the limit that is nearest; None without a limit."""
        pairs = (
            (spent.seconds, self.seconds),
            (spent.executions, self.executions),
            (spent.findings, self.findings),
        )
        return max((min(done / limit, 1.0) for done, limit in pairs if limit is not None), default=None)


def seconds_of(duration: Duration | None) -> float | None:
    """`duration` in seconds."""
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        return float(duration)
    text = str(duration).strip().lower()
    if not isinstance(duration, str) or not re.fullmatch(f"(?:{_DURATION_PART.pattern})+", text):
        raise UsageError(
            f"{duration!r} is not a duration", 'write "90s", "2m", "1h30m", or seconds as a number'
        )
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
