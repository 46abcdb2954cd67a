"""Opens the store of a campaign: a new one, or one to go on with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policyfuzz.api.settings import configured, new_config
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.target import Target
from policyfuzz.store.writer import CampaignWriter


def new_store(target: Target, policy: str | None, folder: Path, chosen: Mapping[str, Any]) -> CampaignWriter:
    """The store of a new campaign in `folder`, with the settings that were `chosen`."""
    config = configured(new_config(target), target, policy, chosen)
    return CampaignWriter.create(folder, config, target.inputs)


def resumed_store(
    target: Target, policy: str | None, folder: Path, chosen: Mapping[str, Any]
) -> CampaignWriter:
    """The store of the campaign in `folder`, after making sure that nothing has changed."""
    store = CampaignWriter(folder)
    try:
        wanted = configured(store.config, target, policy, chosen)
        changes = store.config.differences(wanted) + store.other_inputs(target.inputs)
        if changes:
            raise CampaignError(
                f"cannot resume {folder}: {'; '.join(changes)}",
                hint="a resumed campaign keeps target, policy and options; start a new one in another folder",
            )
    except BaseException:
        store.close()
        raise
    return store
