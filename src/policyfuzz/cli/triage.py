"""policyfuzz triage: which findings could have been avoided, and which were luck."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER, as_json, asks_for_workers, not_blank, trust
from policyfuzz.cli.process import user_prints_to_stderr, verdict_stands
from policyfuzz.core.errors import UsageError

if TYPE_CHECKING:
    from policyfuzz.core.target import Run, Target
    from policyfuzz.execution.executor import ExecutorChoice
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.store.records import Finding
    from policyfuzz.store.triage_file import FindingTriage

EPILOG = """\
\b
Examples:
  policyfuzz triage campaigns/acasxu-1 --reference acasxu:networks/
  policyfuzz triage campaigns/gym-LunarLander-v3-1 --reference sb3:other.zip --trust --top 20
  policyfuzz triage campaigns/gym-LunarLander-v3-1 --seeds 64 --trust

\b
What it finds out goes into DIR/triage.json, beside the campaign file, and `show` adds it to the findings.
It goes on where it was stopped, and may run while the campaign does."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--reference",
    "references",
    metavar="URI",
    multiple=True,
    help="Another policy, or own for the one that comes with the target: a finding that it survives could"
    " have been avoided. May be given several times.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    metavar="N",
    help="Run each finding with N other case seeds.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Only the N worst distinct findings.",
)
@asks_for_workers
@trust
@as_json
def command(
    folder: Path,
    references: tuple[str, ...],
    seeds: int | None,
    top: int,
    executor: "ExecutorChoice",
    trust: bool,
    is_json: bool,
) -> int:
    """Run the distinct findings of the campaign in DIR again: with other policies, and with other case seeds.

    Exit code 1 if the campaign has findings that a reference survives, or that crash with other seeds.
    """
    from policyfuzz.cli.console import progress_bar
    from policyfuzz.report.ranking import ranked
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.store.triage_file import add_to_triage, read_triage, writable_path
    from policyfuzz.triage.reruns import run_again

    if not references and seeds is None:
        raise UsageError("there is nothing to find out", "give --reference URI, --seeds N, or both")
    campaign = CampaignReader(folder)
    instance = campaign.about.get("instance", "")
    writable_path(folder)
    triage = read_triage(folder, instance)
    findings = list(ranked(campaign, "severity", True, top, 0))
    with user_prints_to_stderr():
        run, runs = _runners(campaign, references, executor, trust)
        with progress_bar() as bar:
            task = bar.add_task("running findings again", total=len(findings))
            known = {one.id: triage.of(one.id) for one in findings}
            for some in run_again(findings, known, run, runs, seeds or 0):
                triage = add_to_triage(folder, instance, some)
                bar.advance(task, len(some))
    looks = {one.id: triage.of(one.id) for one in findings}
    with verdict_stands():
        _print(findings, looks, list(runs), is_json)
    is_real = any(looks[one.id].survived_by or looks[one.id].seed_crashes for one in findings)
    return int(is_real)


def _runners(
    campaign: "CampaignReader", references: tuple[str, ...], executor: "ExecutorChoice", trust: bool
) -> tuple["Run", dict[str, "Run"]]:
    """What runs the policy of `campaign`, and each of the `references` by its name."""
    from policyfuzz.campaign.launch import OWN_POLICY, check_references
    from policyfuzz.targets.registry import load_for
    from policyfuzz.triage.replay import target_of

    target = target_of(campaign, None, trust, None, executor)
    others: dict[str, Target] = {}
    for given in references:
        uri = None if not_blank("--reference", given) == OWN_POLICY else given
        loaded = load_for(executor, target.name, uri, trust, will_check=False)
        others[loaded.policy_uri or loaded.policy_name] = loaded
    check_references(target, list(others.values()))
    return executor.make_runner(target), {name: executor.make_runner(one) for name, one in others.items()}


def _print(
    findings: list["Finding"], looks: dict[int, "FindingTriage"], references: list[str], is_json: bool
) -> None:
    from policyfuzz.cli.console import print_json
    from policyfuzz.report.statistics import FailureProbability

    found = [looks[one.id] for one in findings]
    survived = {name: sum(name in look.survived_by for look in found) for name in references}
    unsolved = sum(not set(references) & set(look.survived_by) for look in found)
    tried = [look for look in found if look.seeds]
    lucky = [look for look in tried if not look.seed_crashes]
    if is_json:
        page: dict[str, Any] = {
            "findings": len(found),
            "survived_by": survived,
            "survived_by_none": unsolved if references else None,
            "tried_with_other_seeds": len(tried),
            "never_crash_with_other_seeds": len(lucky),
        }
        print_json(page)
        return
    echo(f"{len(found):,} distinct findings were run again")
    for name, count in survived.items():
        echo(f"  {count:,} are survived by {name}")
    if references:
        echo(f"  {unsolved:,} are survived by none of them, which does not show that they cannot be solved")
    if tried:
        share = FailureProbability.of(sum(x.seed_crashes for x in tried), sum(x.seeds for x in tried))
        echo(
            f"  with other case seeds they crash in {share.probability:.0%} of {share.draws:,} episodes;"
            f" {len(lucky):,} never do"
        )
