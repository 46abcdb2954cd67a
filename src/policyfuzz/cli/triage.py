"""policyfuzz triage: from many findings to the few things that are wrong."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import DURATION, FOLDER, as_json, asks_for_workers, not_blank, trust
from policyfuzz.cli.process import user_prints_to_stderr, verdict_stands

if TYPE_CHECKING:
    from policyfuzz.core.target import Target
    from policyfuzz.execution.executor import ExecutorChoice
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.store.records import Finding
    from policyfuzz.triage.campaign_triage import Triaged, TriageSettings

EPILOG = """\
\b
Examples:
  policyfuzz triage campaigns/acasxu-1
  policyfuzz triage campaigns/acasxu-1 --max-time 2m -j 4
  policyfuzz triage campaigns/acasxu-1 --per-mode 20      look for witnesses of more findings
  policyfuzz triage campaigns/acasxu-1 --reference acasxu:networks/
  policyfuzz triage campaigns/gym-LunarLander-v3-1 --seeds 64 --trust

\b
What it finds out goes into DIR/triage.json, beside the campaign file, and `show` leads with it.
It goes on where it was stopped, and may run while the campaign does."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--per-mode",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    metavar="N",
    help="Look for witnesses of N findings of each failure mode.",
)
@click.option("--max-execs", type=click.IntRange(min=1), metavar="N", help="Run at most N episodes.")
@click.option("--max-time", type=DURATION, help="Stop after this time: 90s, 2m, 1h.")
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
    help="With --reference and --seeds, only the N worst distinct findings.",
)
@asks_for_workers
@trust
@as_json
def command(
    folder: Path,
    per_mode: int,
    max_execs: int | None,
    max_time: float | None,
    references: tuple[str, ...],
    seeds: int | None,
    top: int,
    executor: "ExecutorChoice",
    trust: bool,
    is_json: bool,
) -> int:
    """Group the findings of the campaign in DIR into failure modes, and find out about each of them.

    How many findings fail alike, how likely that is, whether another action would have avoided it and up to
    which step (a witness, the point of no return), and how far it is from safe. With --reference and --seeds,
    distinct findings are also run with other policies and other case seeds.

    Exit code 1 if the campaign has confirmed findings.
    """
    from policyfuzz.cli.console import print_json
    from policyfuzz.cli.modes_text import mode_values, modes_lines
    from policyfuzz.report.mode_summaries import mode_summaries
    from policyfuzz.report.ranking import ranked
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.store.results_beside import path_beside
    from policyfuzz.store.triage_file import FILE_NAME
    from policyfuzz.triage.campaign_triage import TriageSettings
    from policyfuzz.triage.replay import target_of

    campaign = CampaignReader(folder)
    path_beside(folder, FILE_NAME)  # refuses a link before anything is run
    settings = TriageSettings(per_mode, max_execs, max_time)
    with user_prints_to_stderr():
        target = target_of(campaign, None, trust, None, executor)
        others = _references(target, references, executor, trust)
        triaged = _understand(campaign, target, executor, settings)
        again: list[Finding] = []
        if others or seeds:
            again = list(ranked(campaign, "severity", True, top, 0))
            triaged = _run_again(campaign, target, again, others, executor, seeds or 0, triaged, settings)
    summaries = mode_summaries(campaign, triaged.triage)
    with verdict_stands():
        page = _second_runs(again, triaged, list(others)) if again else {}
        if is_json:
            values = {"episodes": triaged.episodes, "is_complete": triaged.is_complete}
            print_json(values | {"modes": [mode_values(one) for one in summaries]} | page)
        else:
            echo("\n".join([*modes_lines(campaign, triaged.triage, summaries), *_lines(page)]))
            if not triaged.is_complete:
                echo("the budget is spent, and not all was found out: give more, or run it again to go on")
    return int(campaign.progress().findings > 0)


def _understand(
    campaign: "CampaignReader", target: "Target", executor: "ExecutorChoice", settings: "TriageSettings"
) -> "Triaged":
    from policyfuzz.cli.console import progress_bar
    from policyfuzz.triage.campaign_triage import triage_campaign

    with progress_bar() as bar:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, count: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=count)
            bar.update(tasks[what], completed=done, total=count)

        return triage_campaign(campaign, target, executor.make_runner, settings, tell)


def _references(
    target: "Target", references: tuple[str, ...], executor: "ExecutorChoice", trust: bool
) -> dict[str, "Target"]:
    """The same `target` with each of the policies `references`, by their names."""
    from policyfuzz.campaign.launch import OWN_POLICY, check_references
    from policyfuzz.targets.registry import load_for

    others: dict[str, Target] = {}
    for given in references:
        uri = None if not_blank("--reference", given) == OWN_POLICY else given
        loaded = load_for(executor, target.name, uri, trust, will_check=False)
        others[loaded.policy_uri or loaded.policy_name] = loaded
    check_references(target, list(others.values()))
    return others


def _run_again(
    campaign: "CampaignReader",
    target: "Target",
    findings: list["Finding"],
    others: dict[str, "Target"],
    executor: "ExecutorChoice",
    seeds: int,
    triaged: "Triaged",
    settings: "TriageSettings",
) -> "Triaged":
    """Run `findings` with other policies and other case seeds; return all that is known then."""
    from dataclasses import replace

    from policyfuzz.cli.console import progress_bar
    from policyfuzz.store.triage_file import add_to_triage
    from policyfuzz.triage.campaign_triage import BudgetSpent, Meter
    from policyfuzz.triage.reruns import run_again

    meter = Meter(settings, triaged.episodes, triaged.seconds)
    runs = {name: meter.of(executor.make_runner(one)) for name, one in others.items()}
    run = meter.of(executor.make_runner(target))
    known = {one.id: triaged.triage.of(one.id) for one in findings}
    is_complete = triaged.is_complete
    with progress_bar() as bar:
        task = bar.add_task("running findings again", total=len(findings))
        try:
            for some in run_again(findings, known, run, runs, seeds):
                triage = add_to_triage(campaign.folder, triaged.triage.instance, some)
                triaged = replace(triaged, triage=triage)
                bar.advance(task, len(some))
        except BudgetSpent:
            is_complete = False
    return replace(triaged, episodes=meter.episodes, is_complete=is_complete)


def _second_runs(findings: list["Finding"], triaged: "Triaged", references: list[str]) -> dict[str, Any]:
    """What other policies and case seeds have shown, for programs."""
    found = [triaged.triage.of(one.id) for one in findings]
    tried = [one for one in found if one.seeds]
    return {
        "findings": len(found),
        "survived_by": {name: sum(name in one.survived_by for one in found) for name in references},
        "survived_by_none": sum(not set(references) & set(one.survived_by) for one in found)
        if references
        else None,
        "tried_with_other_seeds": len(tried),
        "episodes_with_other_seeds": sum(one.seeds for one in tried),
        "crashes_with_other_seeds": sum(one.seed_crashes for one in tried),
        "never_crash_with_other_seeds": sum(not one.seed_crashes for one in tried),
    }


def _lines(page: dict[str, Any]) -> list[str]:
    """The same for people."""
    if not page:
        return []
    lines = ["", f"{page['findings']:,} distinct findings were run again"]
    lines += [f"  {count:,} are survived by {name}" for name, count in page["survived_by"].items()]
    if page["survived_by"]:
        lines.append(
            f"  {page['survived_by_none']:,} are survived by none of them, which does not show that they"
            " cannot be solved"
        )
    if page["tried_with_other_seeds"]:
        share = page["crashes_with_other_seeds"] / max(page["episodes_with_other_seeds"], 1)
        lines.append(
            f"  with other case seeds they crash in {share:.0%} of {page['episodes_with_other_seeds']:,}"
            f" episodes; {page['never_crash_with_other_seeds']:,} never do"
        )
    return lines
