"""How many random crashes a tiny change of the policy undoes: where most, labels cannot repair it."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from benchmarks.measurement import Measurement, ratio_table
from benchmarks.versus.targets import Entry, choose, load
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.cli.steps import showing_steps
from policyfuzz.core import extras
from policyfuzz.core.target import Runner
from policyfuzz.repairing.files import policy_file
from policyfuzz.repairing.networks import PolicyFile
from policyfuzz.repairing.states import ends_of, random_cases
from policyfuzz.targets.registry import load_target

#: Spread of the noise on every weight, as a share of it.
_CHANGES = (1e-6, 1e-4, 1e-2)


@click.command("fragility")
@click.option("--target", "names", multiple=True, default=("acasxu",), help="May be repeated.")
@click.option("--public-networks", type=FOLDER, help="Folder with the public networks, for acasxu-public.")
@click.option(
    "--draws", default=50_000, show_default=True, help="Random cases, of which those that crash count."
)
@click.option("--copies", default=4, show_default=True, help="Changed policies for each size of the change.")
@click.option("--seed", default=0, show_default=True, help="Of cases and changes.")
@as_json
def command(
    names: tuple[str, ...], public_networks: Path | None, draws: int, copies: int, seed: int, is_json: bool
) -> int:
    """Change all weights of a policy by a little, and count which of its random crashes are left."""
    lines: list[Measurement] = []
    with showing_steps() as steps:
        for entry in choose(names, public_networks, None):
            lines += _lines(entry, draws, copies, seed, steps.say)
    if is_json:
        print_json([asdict(line) for line in lines])
    else:
        results().print(ratio_table(lines))
    return 0


def _lines(
    entry: Entry, draws: int, copies: int, seed: int, tell: Callable[[str], None]
) -> Iterator[Measurement]:
    extras.load("torch", "repair")  # missing packages are told before any episode runs
    target = load(entry)
    batch, file = max(target.batch_size, 64), policy_file(target)
    tell(f"{entry.label}: running {draws:,} random cases")
    cases = random_cases(target, draws, seed)
    crashes = cases[np.flatnonzero(ends_of(Runner(target), cases, batch).crashed)]
    before = f"{len(crashes):,} of {draws:,} before"
    for change in _CHANGES:
        tell(f"{entry.label}: running its {len(crashes):,} crashes with weights that differ by {change:g}")
        left = []
        for copy in range(copies):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"changed{file.suffix}"
                _write_changed(file, path, change, seed=1000 * seed + copy)
                changed = load_target(entry.target, file.uri(path))
                left.append(int(ends_of(Runner(changed), crashes, batch).crashed.sum()))
        mean, share = float(np.mean(left)), float(np.mean(left)) / len(crashes) if len(crashes) else None
        words = f"{entry.label}: crashes left if weights change by {change:g}"
        yield Measurement(words, mean, "", before, share)


def _write_changed(file: PolicyFile, path: Path, change: float, seed: int) -> None:
    """Write the policy with normal noise on all weights, each relative to itself."""
    torch = extras.load("torch", "repair")
    networks, generator = file.load(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in networks.parameters():
            weights.mul_(1 + change * torch.randn(weights.shape, generator=generator))
    networks.write(path)
