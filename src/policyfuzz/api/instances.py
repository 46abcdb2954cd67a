"""Where the campaigns of several instances go, and which seeds are left for them."""

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from policyfuzz.api.stores import new_store
from policyfuzz.campaign.sync.files import DamagedFile, InstanceInfo, instance_folders
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.names import split_options
from policyfuzz.core.settings import DEFAULT_STRATEGY
from policyfuzz.core.target import Target
from policyfuzz.store.schema import FILE_NAME
from policyfuzz.store.writer import CampaignWriter

#: Names of targets longer than this make no good name for a folder; their options are left out.
_LONG_NAME = 40


def folder_name(target: str) -> str:
    """The name of `target` as part of the name of a folder."""
    if len(target) > _LONG_NAME or "/" in target:
        base, _ = split_options(target)
        target = base if "/" not in base else Path(base).name
    return re.sub(r"[^A-Za-z0-9.=_-]+", "-", target).strip("-")


def instance_folder(sync: Path, out: Path) -> Path:
    """The folder `out` of an instance in `sync`: a plain name there, or a path that leads there."""
    _check(sync)
    is_name = out.name not in ("", "..")
    if is_name and len(out.parts) == 1 and not out.is_absolute():
        return sync / out
    if not is_name or out.absolute().parent.resolve() != sync.resolve():
        raise UsageError(
            f"the campaign folder {out} does not lie directly in {sync}, where the instances are",
            f"give a plain name such as {out.name or 'mine'}, or leave it out",
        )
    return out


def new_instance(
    target: Target, policy: str | None, sync: Path, out: Path | None, chosen: Mapping[str, Any]
) -> CampaignWriter:
    """The store of a new instance in `sync`, called `out`, with the settings that were `chosen`.

    Without a seed of its own it gets the first that no other instance there has: two with the same seed would
    search the same.
    """
    used = _used_seeds(sync) if chosen.get("seed") is None else set()
    if out is not None:
        folder = instance_folder(sync, out)
        seed = chosen.get("seed")
        seed = next(number for number in count() if number not in used) if seed is None else seed
        return new_store(target, policy, folder, {**chosen, "seed": seed})
    folder, seed = _next_folder(target.name, sync, chosen, used)
    try:
        return new_store(target, policy, folder, {**chosen, "seed": seed})
    except BaseException:
        with suppress(OSError):  # it is not empty, and of use to somebody
            folder.rmdir()
        raise


def _next_folder(target: str, sync: Path, chosen: Mapping[str, Any], used: set[int]) -> tuple[Path, int]:
    """A free folder TARGET-STRATEGY-SEED, and a seed.

    It is made here, so that of several instances that start at once no two get the same.
    """
    _check(sync)
    seed = chosen.get("seed")
    stem = f"{folder_name(target)}-{chosen.get('strategy') or DEFAULT_STRATEGY}"
    for number in count():
        # another strategy with the same seed would begin with the same samples
        if seed is None and (number in used or any(sync.glob(f"*-{number}"))):
            continue
        name = f"{stem}-{number}" if seed is None else f"{stem}-{seed}" + (f"-{number + 1}" if number else "")
        try:
            (sync / name).mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise CampaignError(f"cannot make folder {sync / name}: {error.strerror}") from error
        return sync / name, number if seed is None else int(seed)
    raise AssertionError("numbers do not end")


def _check(sync: Path) -> None:
    if (sync / FILE_NAME).exists():
        raise UsageError(
            f"{sync} is a campaign itself, expected a folder of campaigns",
            "give its parent, or another folder, which need not exist",
        )
    if sync.exists() and not sync.is_dir():
        raise UsageError(f"{sync} is not a folder", "give a folder for all instances, which need not exist")


def _used_seeds(sync: Path) -> set[int]:
    seeds = set()
    for folder in instance_folders(sync):
        with suppress(DamagedFile, OSError):  # the exchange tells what is wrong with it
            seeds.add(InstanceInfo.read(folder).settings().seed)
    return seeds
