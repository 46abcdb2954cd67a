"""Repairs the policy of a campaign from Python, and tests the result."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from policyfuzz.api.results import Result
from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.core.settings import Duration, seconds_of
from policyfuzz.core.target import Target
from policyfuzz.core.whole_file import writing
from policyfuzz.execution.executor import ExecutorChoice, choose_executor
from policyfuzz.repairing.campaigns import Campaigns, cases_of, crashes_of
from policyfuzz.repairing.files import copied, policy_file
from policyfuzz.repairing.journal import Journal, folder_of
from policyfuzz.repairing.rounds import Repair, RepairSettings, Round
from policyfuzz.repairing.states import Cases
from policyfuzz.repairing.verdict import Judge, Verdict, VerdictSettings
from policyfuzz.repairing.verdict_file import FILE_NAME, read_verdict, write_verdict
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.results_beside import path_beside
from policyfuzz.store.triage_file import triage_of
from policyfuzz.targets.registry import load_target
from policyfuzz.triage.replay import check_same_code, target_of

#: Random cases of the verdict, and episodes of its campaigns, for each sample that a search begins with.
_PER_SAMPLE = 20
#: Old findings that are run again, at most.
_MOST_FINDINGS = 2000

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What a repair came to."""

    rounds: tuple[Round, ...]
    policy: Path | None  #: that was written; None if every candidate was rejected
    verdict: Verdict | None  #: None without a policy

    @property
    def holds(self) -> bool:
        """True if there is a new policy and it passes every test."""
        return self.verdict is not None and self.verdict.holds

    def lines(self) -> list[str]:
        """What a reader should know, line by line."""
        lines = [one.text for one in self.rounds]
        if self.verdict is None:
            return [*lines, "", "verdict: no candidate was good enough, so nothing was written"]
        return [*lines, "", *self.verdict.lines()]

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def repair(
    result: Result | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    target: str | None = None,
    trust: bool = False,
    rounds: int = 3,
    budget: int | None = None,
    newly_broken: float = 0.1,
    seed: int = 0,
    pool: int | None = None,
    episodes: int | None = None,
    seeds: int = 3,
    workers: int | None = None,
    executor: str | None = None,
    timeout: Duration | None = None,
    tell: Tell | None = None,
) -> RepairResult:
    """Fine-tune the policy of a campaign until it crashes less, write it to `out`, and test it.

    Each of `rounds` learns from crashes: first from the findings of the campaign, then from what a search
    finds in the policy as it is by then; `budget` is the number of episodes of all rounds. A candidate may
    break `newly_broken` cases for each that it fixes.

    The verdict runs the old and the new policy on `pool` random cases, and fuzzes both with three strategies,
    `seeds` campaigns of so many `episodes` each. Nothing that trains or chooses a policy shares a seed with
    that.

    What is done is kept beside `out`: the same call goes on from there. `tell` hears what is being done.
    """
    given = result if isinstance(result, Result) else Result(Path(result), trust=trust)
    return run_repair(
        CampaignReader(given.folder),
        Path(out),
        target=target,
        trust=trust or given.trust,
        rounds=rounds,
        budget=budget,
        newly_broken=newly_broken,
        seed=seed,
        pool=pool,
        episodes=episodes,
        seeds=seeds,
        choice=choose_executor(executor, workers, seconds_of(timeout)),
        tell=tell or (lambda _text: None),
    )


def run_repair(
    campaign: CampaignReader,
    out: Path,
    *,
    target: str | None,
    trust: bool,
    rounds: int,
    budget: int | None,
    newly_broken: float,
    seed: int,
    pool: int | None,
    episodes: int | None,
    seeds: int,
    choice: ExecutorChoice,
    tell: Tell,
) -> RepairResult:
    """As `repair`, for the command line too."""
    loaded = target_of(campaign, None, trust, target)  # in this process, where its weights are changed
    if target is None:
        hint = "start a new campaign, or name the target with --target to repair the policy in what it is now"
        check_same_code(campaign, loaded, hint)
    usual = _PER_SAMPLE * loaded.samples
    settings = RepairSettings(
        rounds=rounds,
        budget=15 * usual if budget is None else budget,
        seed=seed,
        allowed=newly_broken,
    )
    wanted = VerdictSettings(
        pool=usual if pool is None else pool,
        episodes=usual if episodes is None else episodes,
        seeds=seeds,
        seed=seed,
        allowed=settings.allowed,
    )
    return repair_campaign(campaign, loaded, out, settings, wanted, choice, trust, tell)


def repair_campaign(
    campaign: CampaignReader,
    target: Target,
    out: Path,
    settings: RepairSettings,
    wanted: VerdictSettings,
    choice: ExecutorChoice,
    trust: bool,
    tell: Tell,
) -> RepairResult:
    """Repair the policy of `target`, on which `campaign` was run, and judge what comes of it."""
    file = policy_file(target)  # before any work: it may be one that cannot be written back
    extras.load("torch", "repair")
    _check_out(out, file.suffix)
    out = out.absolute()
    journal = Journal.open(
        folder_of(out),
        {
            "target": target.name,
            "policy": target.policy_sha256,
            "campaign": campaign.about.get("instance", ""),
            "settings": asdict(settings),
        },
    )
    campaigns = Campaigns(choice)

    def load(path: Path) -> Target:
        # the same oracle and inputs: those of an environment may depend on the policy that they are made for
        new = load_target(target.name, file.uri(path), trust)
        return replace(
            target,
            policy=new.policy,
            policy_name=new.policy_name,
            policy_uri=new.policy_uri,
            policy_sha256=new.policy_sha256,
        )

    found = Repair(target, file, journal, settings, load, campaigns.crashes, tell).run(crashes_of(campaign))
    if found.candidate is None:
        return RepairResult(found.rounds, None, None)
    copied(found.candidate, out)
    stored = journal.folder / f"verdict-{wanted.pool}-{wanted.episodes}-{wanted.seeds}.json"
    if not stored.exists():
        tell("testing the new policy")
        judge = Judge(target, load(out), journal, wanted, campaigns, tell)
        cases, modes = _old_findings(campaign)
        verdict = judge.verdict(cases, modes)
        write_verdict(stored, verdict)
    verdict = read_verdict(stored)
    with suppress(OSError, UsageError):  # a campaign that cannot be written to was repaired from all the same
        write_verdict(path_beside(campaign.folder, FILE_NAME), verdict)
    return RepairResult(found.rounds, out, verdict)


def _check_out(out: Path, suffix: str) -> None:
    if out.suffix != suffix and suffix:
        raise UsageError(
            f"the repaired policy cannot be written to {out}: it is another kind of file",
            f"give a name that ends in {suffix}",
        )
    with writing(out):
        out.absolute().parent.mkdir(parents=True, exist_ok=True)


def _old_findings(campaign: CampaignReader) -> tuple[Cases, list[str]]:
    """Distinct findings, and the name of the failure mode of each."""
    where = "status = ? AND is_distinct"
    found = list(campaign.records(Finding, "findings", where, (CONFIRMED,), most=_MOST_FINDINGS))
    modes = triage_of(campaign).modes
    mode_of = {number: mode.number for mode in modes.modes for number in mode.members} if modes else {}
    names = [f"mode {mode_of[one.id]}" if one.id in mode_of else one.kind for one in found]
    return cases_of(found, len(campaign.dimensions)), names
