"""policyfuzz compare: whether another policy fails less or more often."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import DURATION, FOLDER, as_json, asks_for_workers, not_blank, trust
from policyfuzz.cli.process import user_prints_to_stderr, verdict_stands

if TYPE_CHECKING:
    from policyfuzz.execution.executor import ExecutorChoice

EPILOG = """\
\b
Examples:
  policyfuzz compare campaigns/acasxu-1 --policy acasxu:repaired/
  policyfuzz compare campaigns/acasxu-1 --policy acasxu:repaired/ --pool 20000 -j 8 -o compared.json
  policyfuzz compare campaigns/old campaigns/new      two campaigns, each with its findings
  policyfuzz compare campaigns/old --policy sb3:new.zip --trust --fuzz campaigns/new

\b
Exit code 1 if B is worse: it fails more often than A on the random pool, and McNemar's exact test
gives p of 5 % or less. 0 otherwise, 3 if too few episodes can be run. Findings do not decide: they
were searched for with one policy, and count against it."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("second", metavar="[DIR2]", type=FOLDER, required=False)
@click.option("--policy", metavar="URI", help="Policy B, to be compared with A, the one of the campaign.")
@click.option("--target", metavar="NAME", help="Use this target instead of the one that the campaign names.")
@click.option(
    "--pool",
    type=click.IntRange(min=0, max=100_000_000),
    metavar="N",
    help="Random inputs, the same for both policies.  [default: as many as a campaign samples first]",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=2000,
    show_default=True,
    metavar="N",
    help="Distinct findings of each campaign, the worst first.",
)
@click.option("-s", "--seed", type=click.IntRange(min=0), default=0, help="Draws another pool.  [default: 0]")
@click.option(
    "--fuzz",
    metavar="DIR2",
    type=FOLDER,
    help="Run a campaign against B in DIR2, or resume it, with the settings and episodes of the first, and"
    " compare what both found.",
)
@click.option("--force", is_flag=True, help="With --fuzz: search even if the health check of B fails.")
@click.option("--max-time", type=DURATION, help="Begin no further batch after this time: 90s, 2m, 12h.")
@click.option(
    "-o", "--out", type=FOLDER, help="File that keeps what has been run: the same command goes on from there."
)
@asks_for_workers
@trust
@as_json
def command(
    folder: Path,
    second: Path | None,
    policy: str | None,
    target: str | None,
    pool: int | None,
    top: int,
    seed: int,
    fuzz: Path | None,
    force: bool,
    max_time: float | None,
    out: Path | None,
    executor: "ExecutorChoice",
    trust: bool,
    is_json: bool,
) -> int:
    """Run the policy of the campaign in DIR, A, and another one, B, on the same cases, and say which fails.

    B is the policy given by --policy, or the one of the campaign in DIR2. The cases are the distinct findings
    of the campaigns, and a pool of random inputs with the same case seeds for both.
    """
    from policyfuzz.api.compare import Side, check_question, compare_sides, fuzzed, side_of
    from policyfuzz.cli.console import print_json, progress_bar
    from policyfuzz.cli.screen import chosen_ui, make_listener
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.targets.registry import load_for

    check_question(second is not None, policy is not None, fuzz is not None)
    with user_prints_to_stderr():
        a = side_of(CampaignReader(folder), trust, target, executor)
        if second is not None:
            b = side_of(CampaignReader(second), trust, target, executor)
        else:
            uri = not_blank("--policy", policy or "")
            b = Side(load_for(executor, a.target.name, uri, trust, will_check=fuzz is not None))
        if fuzz is not None:
            with make_listener(chosen_ui("auto")) as listener:
                b = fuzzed(a, b.target, fuzz, executor, trust, force, (listener,))
        with progress_bar() as bar:
            task = bar.add_task("running both policies")
            comparison = compare_sides(
                a,
                b,
                executor,
                pool,
                top,
                seed,
                out,
                max_time,
                lambda done, total: bar.update(task, completed=done, total=total),
            )
    with verdict_stands():
        if is_json:
            print_json(comparison.summary())
        else:
            echo("\n".join(comparison.lines()))
    return int(comparison.is_worse)
