"""python -m benchmarks versus-reference: random crashes that the bench measures covered failure mass by."""

from pathlib import Path

import click

from benchmarks.versus import reference, targets
from policyfuzz.cli.console import results
from policyfuzz.cli.options import FOLDER
from policyfuzz.core.errors import UsageError

#: Targets of low dimension whose random inputs crash often enough.
_USUAL = ("acasxu", "acasxu-public", "ripple-2")


@click.command("versus-reference")
@click.option("--target", "names", multiple=True, help=f"May be repeated.  [default: {', '.join(_USUAL)}]")
@click.option("--crashes", default=reference.CRASHES, show_default=True, help="Of each target, or some more.")
@click.option("--public-networks", type=FOLDER, help="Folder with the public networks, for acasxu-public.")
@click.option("-o", "--out", type=FOLDER, default=reference.FOLDER, help="[default: where the bench looks]")
def command(names: tuple[str, ...], crashes: int, public_networks: Path | None, out: Path) -> None:
    """Collect crashes of random inputs: the reference sets of `versus`.

    Draws from the nominal distribution with seeds that no contestant uses, and keeps what is valid, solvable
    and crashes. A set is bound to the target, its policy, its oracle and its rule of what is solvable; make
    it again when one of these has changed. A stopped collection goes on where it was.
    """
    if crashes < 1:
        raise UsageError(f"crashes is {crashes}, expected 1 or more")
    for entry in targets.choose(names or _USUAL, public_networks, None):
        try:
            found = reference.collect(entry, crashes, out, _say)
        except targets.NotHere as error:
            if names:
                raise
            _say(f"{entry.label} is left out: {error}")
            continue
        rate = 1000 * len(found) / found.episodes
        results().print(
            f"{entry.label}: {len(found):,} crashes in {found.episodes:,} valid random episodes,"
            f" {rate:.3g} of 1,000; solvable by {found.origin.solvable or 'no test'}",
            soft_wrap=True,
        )


def _say(line: str) -> None:
    click.echo(line, err=True)
