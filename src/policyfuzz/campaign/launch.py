"""The front door: starts or resumes a campaign in its folder, runs it, and returns its totals."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from policyfuzz.campaign.engine import Campaign
from policyfuzz.campaign.events import BatchDone, Event, Examined, Listener, Stop
from policyfuzz.campaign.sync.files import DamagedFile, InstanceInfo, instance_folders
from policyfuzz.campaign.sync.synchronizer import Synchronizer
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.settings import (
    DEFAULT_STRATEGY,
    Budget,
    CampaignConfig,
    CampaignOptions,
    SearchSettings,
    StopReason,
)
from policyfuzz.core.target import Diagnosis, MakeRunner, Runner, Target, split_options
from policyfuzz.execution.executor import InlineExecutor, MakeExecutor
from policyfuzz.search.strategies import find_strategy
from policyfuzz.store.database import FILE_NAME, LOCK_NAME, UNFINISHED
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Progress
from policyfuzz.store.writer import CampaignWriter

#: What stands for the target's own policy among references.
OWN_POLICY = "own"
#: Longer names of targets make poor folder names; their options are left out.
_LONG_NAME = 40
#: File systems allow some 255 characters.
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Launched:
    """A campaign that has stopped."""

    folder: Path
    reason: StopReason
    progress: Progress
    bad_diagnoses: list[Diagnosis]  #: warnings and worse of the health check; none of a resumed campaign


def launch(
    target: Target,
    budget: Budget,
    options: CampaignOptions | None = None,
    *,
    policy: str | None = None,
    folder: Path | None = None,
    sync: Path | None = None,
    resume: bool = False,
    references: Sequence[Target] = (),
    make_executor: MakeExecutor = InlineExecutor,
    make_runner: MakeRunner = Runner,
    listeners: Sequence[Listener] = (),
    force: bool = False,
    discard_unhealthy: bool = False,
) -> Launched:
    """Run a campaign on `target` until its `budget` is spent or a listener stops it.

    A new campaign goes into `folder`, by default campaigns/TARGET-N. With `sync` it goes into that folder,
    by default as TARGET-STRATEGY-SEED, and syncs with the other instances there. `resume`
    continues the campaign in `folder`; `stored_policy` says beforehand which policy to load the target with.
    If that campaign died before it had a campaign file, it starts.
    `policy` is that URI, for targets that do not know their own. `make_executor` gives what runs the batches,
    and `make_runner` what runs the few episodes of further health checks, and those of `references`: the same
    target with other policies, one of which must survive a crash, or it is no finding.

    A target that fails the health check is not searched; `force` searches it anyway. `discard_unhealthy`
    then leaves no campaign behind.
    """
    options = options or CampaignOptions()
    check_references(target, references)
    if resume and not _died_before_its_first_batch(_resumed_folder(folder, sync)):
        store = _resume(target, policy, references, _resumed_folder(folder, sync), options)
    elif sync is not None:
        store = _start_instance(target, policy, references, sync, folder, options)
    else:
        store = _start(target, policy, references, folder or _free_folder(target.name), options)
    try:
        campaign = Campaign(
            target,
            store,
            budget,
            _Broadcast(tuple(listeners)),
            accept_unhealthy=force,
            make_executor=make_executor,
            make_runner=make_runner,
            synchronizer=None if sync is None else Synchronizer(store, target),
            references=references,
        )
        reason = campaign.run()
        if reason is StopReason.UNHEALTHY and discard_unhealthy:
            store.set_stop_reason(None)
    finally:
        store.close_or_discard()
    return Launched(store.folder, reason, campaign.progress, campaign.bad_diagnoses)


def stored_policies(folder: Path | None, sync: Path | None = None) -> tuple[str | None, list[str]]:
    """URIs of the policy of the campaign to resume, None for the target's own, and of its references.

    Before they are loaded, `targets.trust.require_trust` must agree: a stranger may have written them.
    """
    folder = _resumed_folder(folder, sync)
    if _died_before_its_first_batch(folder):
        return None, []
    config = CampaignReader(folder).config
    return config.policy, config.references.splitlines()


def check_references(target: Target, references: Sequence[Target]) -> None:
    """Refuse a reference that is the policy of `target`, or acts in another target."""
    for reference in references:
        if reference.policy_sha256 and reference.policy_sha256 == target.policy_sha256:
            raise UsageError(
                f"the reference {reference.policy_name} is the policy that is tested",
                "a reference is another policy, which shows that a crash could have been avoided",
            )
        if reference.inputs.names != target.inputs.names:
            raise UsageError(
                f"the reference {reference.policy_name} was loaded into another target, {reference.name}"
            )


@dataclass(slots=True)
class _Broadcast:
    """Passes every event to all `listeners`, in their order. Any of them may raise `Stop`."""

    listeners: tuple[Listener, ...]
    _is_stopping: bool = field(init=False, default=False)

    def __call__(self, event: Event) -> None:
        """Pass on `event`, and end the campaign as Ctrl-C does if a listener wants that."""
        for listener in self.listeners:
            try:
                listener(event)
            except Stop:
                self._is_stopping = True
        # at other events the campaign cannot be left: before its start, and after its end
        if self._is_stopping and isinstance(event, Examined | BatchDone):
            raise KeyboardInterrupt


def _start(
    target: Target,
    policy: str | None,
    references: Sequence[Target],
    folder: Path,
    options: CampaignOptions,
) -> CampaignWriter:
    """The store of a new campaign in `folder`."""
    strategy = find_strategy(options.strategy or DEFAULT_STRATEGY)
    search = strategy.defaults(SearchSettings(samples=target.samples), target.name)
    defaults = CampaignConfig(target.name, batch_size=target.batch_size, search=search)
    config = _config(defaults, target, policy, references, options)
    return CampaignWriter.create(folder, config, target.inputs, _about(target))


def _about(target: Target) -> dict[str, str]:
    """What readers of a campaign may want to know about `target`, which they do not load."""
    own = target.own_reset
    return {
        "solvability": "not tested" if target.solvable is None else "tested",
        **({} if own is None else {"own_reset": own.to_json()}),
    }


def _resume(
    target: Target,
    policy: str | None,
    references: Sequence[Target],
    folder: Path,
    options: CampaignOptions,
) -> CampaignWriter:
    """The store of the campaign in `folder`; refuses if what is asked for differs from it."""
    store = CampaignWriter(folder)
    try:
        if "migrated_from" in store.about:
            raise CampaignError(
                f"cannot resume {folder}: an earlier version began it, whose search was another one",
                hint="its findings can be shown, replayed and exported; start a new campaign",
            )
        wanted = _config(store.config, target, policy, references, options)
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


def _config(
    base: CampaignConfig,
    target: Target,
    policy: str | None,
    references: Sequence[Target],
    options: CampaignOptions,
) -> CampaignConfig:
    """`base` with the chosen `options`, for `target`."""
    return replace(
        options.applied_to(base),
        target=target.name,
        policy=target.policy_uri or policy,
        policy_sha256=target.policy_sha256,
        code_sha256=target.code_sha256,
        references="\n".join(one.policy_uri or OWN_POLICY for one in references),
        references_sha256=" ".join(one.policy_sha256 for one in references),
    )


def _resumed_folder(folder: Path | None, sync: Path | None) -> Path:
    if folder is None:
        raise UsageError(
            "resume needs to know which campaign", "give its folder: -o DIR, or out=... in Python"
        )
    return folder if sync is None else _instance_folder(sync, folder)


def _died_before_its_first_batch(folder: Path) -> bool:
    """True if a campaign was about to start in `folder`, and left nothing there but what it begins with."""
    try:
        found = {path.name for path in folder.iterdir()}
    except OSError:
        return False  # opening the campaign says what is wrong
    return all(name == LOCK_NAME or name.startswith(UNFINISHED) for name in found)


def _start_instance(
    target: Target,
    policy: str | None,
    references: Sequence[Target],
    sync: Path,
    folder: Path | None,
    options: CampaignOptions,
) -> CampaignWriter:
    """The store of a new instance in `sync`.

    Without a seed it gets the first that no other instance there has: two with the same seed would search
    the same.
    """
    used = _used_seeds(sync) if options.seed is None else set()
    if folder is not None:
        folder = _instance_folder(sync, folder)
        seed = options.seed
        seed = next(number for number in count() if number not in used) if seed is None else seed
        return _start(target, policy, references, folder, replace(options, seed=seed))
    folder, seed = _free_instance_folder(target.name, sync, options, used)
    try:
        return _start(target, policy, references, folder, replace(options, seed=seed))
    except BaseException:
        with suppress(OSError):  # not empty: another process uses it
            folder.rmdir()
        raise


def _free_folder(target: str) -> Path:
    """The first free folder campaigns/TARGET-N."""
    name = _folder_name(target)
    taken = {path.name for path in Path("campaigns").glob(f"{name}-*")}
    number = next(number for number in range(1, len(taken) + 2) if f"{name}-{number}" not in taken)
    return Path("campaigns") / f"{name}-{number}"


def _free_instance_folder(
    target: str, sync: Path, options: CampaignOptions, used: set[int]
) -> tuple[Path, int]:
    """A free folder TARGET-STRATEGY-SEED, and a seed.

    The folder is made here, so that no two instances that start at once get the same.
    """
    _check_sync_folder(sync)
    seed = options.seed
    stem = f"{_folder_name(target)}-{options.strategy or DEFAULT_STRATEGY}"
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
        return sync / name, number if seed is None else seed
    raise AssertionError("numbers do not end")


def _folder_name(target: str) -> str:
    """The name of `target` as part of the name of a folder."""
    if len(target) > _LONG_NAME or "/" in target:
        base, _ = split_options(target)
        target = base if "/" not in base else Path(base).name
    return re.sub(r"[^A-Za-z0-9.=_-]+", "-", target).strip("-")[:_LONGEST_NAME] or "target"


def _instance_folder(sync: Path, folder: Path) -> Path:
    """`folder` of an instance in `sync`: a plain name there, or a path that leads there."""
    _check_sync_folder(sync)
    is_name = folder.name not in ("", "..")
    if is_name and len(folder.parts) == 1 and not folder.is_absolute():
        return sync / folder
    if not is_name or folder.absolute().parent.resolve() != sync.resolve():
        raise UsageError(
            f"the campaign folder {folder} does not lie directly in {sync}, where the instances are",
            f"give a plain name such as {folder.name or 'mine'}, or leave it out",
        )
    return folder


def _check_sync_folder(sync: Path) -> None:
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
        with suppress(DamagedFile, OSError):  # syncing reports what is wrong with it
            seeds.add(InstanceInfo.read(folder).settings().seed)
    return seeds
