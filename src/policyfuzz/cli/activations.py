"""policyfuzz activations: whether the policy inside tells crashes from other episodes."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER, as_json, trust
from policyfuzz.cli.process import user_prints_to_stderr

if TYPE_CHECKING:
    from policyfuzz.store.activations_file import ActivationMap, ModeSeparation, Separation

EPILOG = """\
\b
Examples:
  policyfuzz activations campaigns/acasxu-1 -o activations.png
  policyfuzz activations campaigns/acasxu-1 --method pca      needs no further package

\b
The result also goes into DIR/activations.json, beside the campaign file. Failure modes are those of
policyfuzz triage; run it first."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("-o", "--out", type=FOLDER, metavar="FILE.png", help="Draw a picture of it.")
@click.option(
    "--method",
    type=click.Choice(["tsne", "umap", "pca"]),
    default="tsne",
    show_default=True,
    help="How activations come into the plane. The numbers do not depend on it.",
)
@click.option(
    "--episodes", default=300, show_default=True, metavar="N", help="Episodes of each class, at most."
)
@click.option(
    "--window", default=10, show_default=True, metavar="N", help="Decisions before the crash to look at."
)
@click.option("-s", "--seed", default=0, show_default=True, help="Seed of random episodes and of choices.")
@trust
@as_json
def command(
    folder: Path,
    out: Path | None,
    method: str,
    episodes: int,
    window: int,
    seed: int,
    trust: bool,
    is_json: bool,
) -> int:
    """Compare crashes of the campaign in DIR with other episodes, by what goes on inside the policy.

    The others are near misses (mutants of findings that do not crash), mutants of random inputs, and random
    inputs; all are looked at the same number of steps after their start. Policies without activations are
    judged by what they observe.
    """
    from policyfuzz.analysis.activation_map import MapSettings
    from policyfuzz.api.activations import run_activations
    from policyfuzz.cli.console import print_json
    from policyfuzz.cli.steps import showing_steps
    from policyfuzz.store.plain_records import to_plain
    from policyfuzz.store.reader import CampaignReader

    settings = MapSettings(method, episodes, window, seed)
    with showing_steps() as steps, user_prints_to_stderr():
        found = run_activations(
            CampaignReader(folder),
            settings,
            trust=trust,
            picture=out,
            say=steps.say,
            tell=lambda what, done, count: steps.count(f"running {what} episodes, {done:,} of {count:,}"),
        )
    if is_json:
        print_json(to_plain(found))
    else:
        _print(found)
        if out is not None:
            echo(f"picture: {out}")
    return 0


def _print(found: "ActivationMap") -> None:
    from policyfuzz.store.activations_file import CLASSES, FEWEST_LINEAGES, OBSERVATIONS

    counts = ", ".join(f"{found.count(name)} {name}" for name in CLASSES)
    echo(f"{found.target}, policy {found.policy}: episodes {counts}; of {found.findings:,} findings")
    if found.of == OBSERVATIONS:
        echo(f"observations only: {found.why_none}")
    echo(f"each is the mean of {found.window} decisions before the crash, or at the same steps")
    echo("")
    echo(f"{'by':<15}{'told apart':<22}{'AUC':>6}  {'95 %':<16}{'shuffled':>8}{'lineages':>10}")
    for one in found.separations:
        pair, interval = f"{one.positive} / {one.negative}", f"{one.low:.3f} to {one.high:.3f}"
        numbers = f"{one.auc:>6.3f}  {interval:<16}{one.shuffled:>8.3f}{one.lineages:>10,}"
        echo(f"{one.of:<15}{pair:<22}{numbers}{' *' if one.means_little else ''}")
    if found.mode_separations:
        echo("")
        echo(f"{'by':<15}{'failure mode':<22}{'AUC':>6}  {'told from':<16}{'findings':>8}{'lineages':>10}")
        for mode in found.mode_separations:
            numbers = f"{mode.auc:>6.3f}  {mode.negative:<16}{mode.findings:>8,}{mode.lineages:>10,}"
            echo(f"{mode.of:<15}{mode.mode:<22}{numbers}{' *' if mode.means_little else ''}")
        for number, words in found.mode_words.items():
            echo(f"  mode {number}: {words}")
    echo("")
    if not math.isnan(found.mode_purity):
        share, chance = f"{found.mode_purity:.0%}", f"{found.mode_chance:.0%}"
        echo(f"the nearest crash of another lineage has the same mode in {share}, by chance in {chance}")
    echo("AUC: 1 is always told apart, 0.5 is chance; judged by the nearest episodes of other lineages")
    marked: list[Separation | ModeSeparation] = [*found.separations, *found.mode_separations]
    if any(one.means_little for one in marked):
        echo(f"* fewer than {FEWEST_LINEAGES} lineages: it says little about others. A longer campaign")
        echo("  with the default strategy finds more")
