"""policyfuzz coverage: what campaigns covered, side by side."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER, as_json, asks_for_workers, trust
from policyfuzz.cli.process import user_prints_to_stderr

if TYPE_CHECKING:
    from policyfuzz.execution.executor import ExecutorChoice
    from policyfuzz.store.coverage_file import CampaignCoverage, Coverage

EPILOG = """\
\b
Examples:
  policyfuzz coverage campaigns/acasxu-1 campaigns/acasxu-2 -o coverage.png
  policyfuzz coverage campaigns/* --every-episode -j 2      repeat the campaigns, see all they did

\b
The result also goes into DIR/coverage.json, beside each campaign file."""


@click.command(epilog=EPILOG)
@click.argument("folders", metavar="DIR...", type=FOLDER, nargs=-1, required=True)
@click.option("-o", "--out", type=FOLDER, metavar="FILE.png", help="Draw a picture of it.")
@click.option(
    "--episodes",
    type=int,
    metavar="N",
    help="Compare the first N episodes of each campaign.  [default: as many as the shortest has]",
)
@click.option(
    "--every-episode",
    is_flag=True,
    help="Repeat the campaigns and look at all episodes. Their files only know what the search kept and what"
    " crashed.",
)
@click.option(
    "--most", default=10_000, show_default=True, metavar="N", help="Look at N episodes of each at most."
)
@click.option("-s", "--seed", default=0, show_default=True, help="Seed of random sampling and of choices.")
@asks_for_workers
@trust
@as_json
def command(
    folders: tuple[Path, ...],
    out: Path | None,
    episodes: int | None,
    every_episode: bool,
    most: int,
    seed: int,
    executor: "ExecutorChoice",
    trust: bool,
    is_json: bool,
) -> int:
    """Compare which states and state sequences the campaigns in DIR... covered.

    All are cut at the same number of episodes, and measured in units of random sampling, which is run beside
    them. Give campaigns on one target and policy; those that differ in their seed alone are one group.
    """
    from policyfuzz.analysis.coverage import CoverageSettings
    from policyfuzz.api.coverage import run_coverage
    from policyfuzz.cli.console import print_json
    from policyfuzz.cli.steps import showing_steps
    from policyfuzz.store.plain_records import to_plain
    from policyfuzz.store.reader import CampaignReader

    settings = CoverageSettings(episodes, every_episode, most, seed)
    with showing_steps() as steps, user_prints_to_stderr():
        found = run_coverage(
            [CampaignReader(folder) for folder in folders],
            settings,
            executor,
            trust=trust,
            picture=out,
            say=steps.say,
            tell=lambda what, done, count: steps.count(f"running {what}, {done:,} of {count:,}"),
        )
    if is_json:
        print_json(to_plain(found))
    else:
        _print(found)
        if out is not None:
            echo(f"picture: {out}")
    return 0


def _print(found: "Coverage") -> None:
    echo(f"{found.target}, policy {found.policy}: the first {found.episodes:,} episodes of each campaign")
    if found.is_every_episode:
        echo("campaigns were repeated, so all of their episodes count")
    else:
        echo("campaign files know what the search kept and what crashed, and only that counts below. Random")
        echo(
            "sampling is seen whole, so it does not compare with them: --every-episode repeats the campaigns"
        )
    name_width = max(len(one.name) for one in found.all) + 2
    echo(
        f"{'':<{name_width}}{'episodes seen':<20}{'crashes':>8}{'reference behaviours':>23}{'cells':>8}"
        f"{'area':>8}"
    )
    for group, some in found.groups.items():
        for one in some:
            echo(_line(found, one, name_width))
        if len(some) > 1:
            echo(_mean_line(found, group, some, name_width))
    echo("units are standard deviations of random sampling:")
    echo(
        f"  {found.reference:,} reference behaviours: of all rows together, more than {found.radius:g} apart"
    )
    echo(f"  cells of states along {found.directions} directions, with side {found.cell:g}")
    echo("  area of the ellipses of a mixture, as in the picture")
    if any(one.failed for one in found.all):
        failed = sum(one.failed for one in found.all)
        echo(f"{failed:,} episodes could not be run to their end, and do not count")


def _line(found: "Coverage", one: "CampaignCoverage", width: int) -> str:
    seen = f"{one.used:,} of {one.known:,}" if one.used < one.known else f"{one.used:,}"
    reached = f"{one.behaviours:,} ({found.share(one):.1%})"
    return f"{one.name:<{width}}{seen:<20}{one.crashes:>8,}{reached:>23}{one.cells:>8,}{one.area:>8.1f}"


def _mean_line(found: "Coverage", group: str, some: tuple["CampaignCoverage", ...], width: int) -> str:
    count = len(some)
    reached = sum(one.behaviours for one in some) / count
    cells, area = sum(one.cells for one in some) / count, sum(one.area for one in some) / count
    said = f"{reached:,.0f} ({reached / found.reference:.1%})"
    name = f"mean of {group}"
    return f"{name:<{width + 28}}{said:>23}{cells:>8,.0f}{area:>8.1f}"
