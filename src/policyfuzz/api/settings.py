"""The settings of a campaign from what the user chose, by the names that the command line uses."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from policyfuzz.core.errors import unknown_name
from policyfuzz.core.settings import CampaignConfig, SearchSettings
from policyfuzz.core.target import Target

#: Name of a setting to the part of the configuration that it is in, and its name there.
_PLACES = {
    "strategy": ("", "strategy"),
    "seed": ("", "seed"),
    "batch": ("", "batch_size"),
    "window": ("", "window"),
    "radius": ("", "distinct_radius"),
    "samples": ("search", "samples"),
    "sensitivity": ("search", "sensitivity"),
    "gamma": ("density", "forgetting"),
    "components": ("density", "components"),
    "quantile": ("freshness", "quantile"),
    "tau": ("freshness", "threshold"),
}


def new_config(target: Target) -> CampaignConfig:
    """What a campaign on `target` starts from."""
    search = SearchSettings(samples=target.samples)
    return CampaignConfig(target.name, batch_size=target.batch_size, search=search)


def configured(
    base: CampaignConfig, target: Target, policy: str | None, chosen: Mapping[str, Any]
) -> CampaignConfig:
    """The configuration that was asked for; what was not `chosen`, or is None, is as in `base`."""
    parts: dict[str, dict[str, Any]] = {"": {}, "search": {}, "density": {}, "freshness": {}}
    for name, value in chosen.items():
        if name not in _PLACES:
            raise unknown_name("setting of the search", name, _PLACES)
        part, field = _PLACES[name]
        if value is not None:
            parts[part][field] = value
    search = replace(
        base.search,
        density=replace(base.search.density, **parts["density"]),
        freshness=replace(base.search.freshness, **parts["freshness"]),
        **parts["search"],
    )
    return replace(
        base,
        target=target.name,
        policy=target.policy_uri or policy,
        policy_sha256=target.policy_sha256,
        code_sha256=target.code_sha256,
        search=search,
        **parts[""],
    )
