"""Runs a finding, or an episode that failed, once more and alone."""

from dataclasses import dataclass

import numpy as np

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.executions import Outcome
from policyfuzz.core.interfaces import CRASHED, HUNG, EpisodeError
from policyfuzz.core.target import Runner, Target
from policyfuzz.execution.executor import INLINE, PROCESSES, TIMEOUT, ExecutorChoice
from policyfuzz.oracles import NONE
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import FailedEpisode, Finding
from policyfuzz.targets.registry import load_for
from policyfuzz.targets.trust import require_trust


@dataclass(frozen=True, slots=True)
class Replay:
    """What happened when a finding was run again."""

    target: Target
    finding: Finding
    steps: int
    crashes: bool
    is_identical: bool  #: same kind, step and return as recorded
    kind: str | None
    crash_step: int | None
    episode_return: float


def replay(
    campaign: CampaignReader,
    finding: Finding,
    policy: str | None = None,
    trust: bool = False,
    target: str | None = None,
) -> Replay:
    """Run `finding` again, on the campaign's target with its policy, or on those that are named here.

    Code that only the campaign file names is not run without `trust`.
    """
    return replay_on(target_of(campaign, policy, trust, target), finding)


def replay_on(target: Target, finding: Finding) -> Replay:
    """Run `finding` again on a `target` that is already loaded."""
    executions = Runner(target)(finding.input[None], np.array([finding.case_seed], np.uint64))
    crashes = bool(executions.crashed[0])
    kind = target.oracle.kinds[int(executions.verdicts.kinds[0])] if crashes else None
    step = int(executions.verdicts.steps[0]) if crashes else None
    episode_return = float(executions.returns[0])
    kinds = target.oracle.kinds
    recorded = Outcome(
        kinds.index(finding.kind) if finding.kind in kinds else NONE,
        finding.crash_step,
        finding.episode_return,
    )
    # two kinds may have one name, and a finding is recorded by its name
    now = Outcome(NONE if kind is None else kinds.index(kind), NONE if step is None else step, episode_return)
    is_identical = now.is_same(recorded)
    steps = int(executions.lengths[0]) - 1
    return Replay(target, finding, steps, crashes, is_identical, kind, step, episode_return)


def replay_failed(
    campaign: CampaignReader,
    failed: FailedEpisode,
    policy: str | None = None,
    trust: bool = False,
    timeout: float = TIMEOUT,
    target: str | None = None,
) -> EpisodeError | None:
    """Run a failed episode again; return the error that it ends in now, if any.

    An episode that crashed its process or hung is run in a worker, for `timeout` seconds at most.
    """
    is_dangerous = failed.kind in (CRASHED, HUNG)
    choice = ExecutorChoice(PROCESSES if is_dangerous else INLINE, 1, timeout)
    run = choice.make_runner(target_of(campaign, policy, trust, target, choice))
    executions = run(failed.input[None], np.array([failed.case_seed], np.uint64))
    return executions.errors.get(0)


def is_safe_to_run(campaign: CampaignReader) -> bool:
    """True if no episode of `campaign` hung or killed its process, as one that is run here might."""
    return len(campaign.numbers("errors", "kind IN (?, ?)", (CRASHED, HUNG))) == 0


def check_safe_to_run(campaign: CampaignReader) -> None:
    """Refuse to run episodes of `campaign` in this process if one might take it along."""
    if not is_safe_to_run(campaign):
        raise CampaignError(
            f"episodes of the campaign in {campaign.folder} have hung or killed their process",
            hint="activations are read in this process, which such an episode would take with it",
        )


def has_other_code(campaign: CampaignReader, target: Target) -> bool:
    """True if the user's own files of `target` have changed since the campaign."""
    return campaign.config.code_sha256 != target.code_sha256


def check_same_code(campaign: CampaignReader, target: Target, hint: str = "start a new campaign") -> None:
    """Refuse if the user's own files of `target` have changed since the campaign."""
    if has_other_code(campaign, target):
        raise CampaignError(
            f"the files that the target of {campaign.folder} is written in have changed since the campaign",
            hint,
        )


def target_of(
    campaign: CampaignReader,
    policy: str | None,
    trust: bool,
    target: str | None,
    choice: ExecutorChoice | None = None,
) -> Target:
    """The target of `campaign`, with its own policy, which must not have changed, or those named here."""
    config = campaign.config
    require_trust(
        f"the campaign in {campaign.folder}",
        config.target if target is None else None,
        config.policy if policy is None else None,
        trust,
    )
    loaded = load_for(
        choice or ExecutorChoice(),
        config.target if target is None else target,
        config.policy if policy is None else policy,
        trust,
        will_check=False,
    )
    names = tuple(str(dimension["name"]) for dimension in campaign.dimensions)
    if loaded.inputs.names != names:
        raise CampaignError(
            f"{loaded.name} has inputs {', '.join(loaded.inputs.names)}; the campaign in {campaign.folder}"
            f" has {', '.join(names)}",
            hint="name the target that the campaign was run on",
        )
    if policy is None and loaded.policy_sha256 != config.policy_sha256:
        raise CampaignError(
            f"the policy of {campaign.folder} has changed since the campaign",
            hint="to test the new one, name it with --policy",
        )
    return loaded
