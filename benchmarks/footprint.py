"""How much code there is, and how much of it runs before the first episode, against an earlier tree.

The same definitions hold for any tree: --python names an interpreter in which another one is installed.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from benchmarks import calls
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import UsageError

Value = float | bool | None  #: None where something cannot run here

#: Measured by this script at commit 2d64b47, before modules were merged and benchmarks left the package.
#: Python 3.11 on two quiet cores; the times repeat within a tenth.
BEFORE: Mapping[str, Value] = {
    "files in src": 346,
    "lines in src": 31696,
    "acasxu: functions before Campaign.run": 79,
    "acasxu: files before Campaign.run": 36,
    "acasxu: functions before the first rollout": 133,
    "acasxu: files before the first rollout": 46,
    "acasxu: functions before its first step": 143,
    "acasxu: files before its first step": 47,
    "LunarLander -j 2: functions before Campaign.run": 168,
    "LunarLander -j 2: files before Campaign.run": 59,
    "LunarLander -j 2: functions before a case goes to a worker": 272,
    "LunarLander -j 2: files before a case goes to a worker": 76,
    "show: modules of policyfuzz": 71,
    "show: imports scipy": True,
    "show: imports the search": True,
    "show: time against import numpy, click, rich": 5.4,
    "status: modules of policyfuzz": 75,
    "status: imports scipy": True,
    "status: imports the search": True,
    "status: time against import numpy, click, rich": 5.3,
    "export: modules of policyfuzz": 66,
    "export: imports scipy": True,
    "export: imports the search": True,
    "export: time against import numpy, click, rich": 5.1,
}
#: Verbs that only read the campaign in the folder `read`.
_READERS = {
    "show": ["show", "read"],
    "status": ["status", "read"],
    "export": ["export", "read", "-o", "f.csv"],
}
_EPISODES = 3000  #: of that campaign; some of them crash
_REFERENCE = "import numpy, click, rich"
_ROUNDS = 15


@click.command("footprint")
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    default=Path(sys.executable),
    help="Interpreter whose policyfuzz is measured.  [default: this one]",
)
@as_json
def command(python: Path, is_json: bool) -> None:
    """Count code: all of it, what runs before the first episode, and what verbs import that only read.

    Functions are those with a name that have run by then, each once; lambdas, comprehensions and bodies of
    modules and classes are not counted. Files are those of the functions.
    """
    with tempfile.TemporaryDirectory() as folder:
        found = dict(measure(python.absolute(), Path(folder)))
    if is_json:
        print_json(found)
    else:
        results().print(_table(found))


def measure(python: Path, folder: Path) -> Iterator[tuple[str, Value]]:
    """Name and value of each number, for the policyfuzz of `python`; campaigns go to the empty `folder`."""
    acasxu = _traced(python, folder, "fuzz", "acasxu", "--max-execs", "64")
    package = Path(acasxu["package"])
    sources = sorted(package.rglob("*.py"))
    yield "files in src", len(sources)
    yield "lines in src", sum(len(source.read_bytes().splitlines()) for source in sources)
    for moment, words in (
        (calls.CAMPAIGN, "before Campaign.run"),
        (calls.ROLLOUT, "before the first rollout"),
        (calls.STEP, "before its first step"),
    ):
        yield from _counts(acasxu, "acasxu", moment, words)
    policy = f"npz:{package / 'models' / 'lunarlander' / 'networks.npz'}"
    lander = _traced(
        python, folder, "fuzz", "gym:LunarLander-v3", "--policy", policy, "-j", "2", "--max-execs", "64"
    )
    yield from _counts(lander, "LunarLander -j 2", calls.CAMPAIGN, "before Campaign.run")
    yield from _counts(lander, "LunarLander -j 2", calls.SEND, "before a case goes to a worker")
    yield from _readers(python, folder)


def _counts(facts: Mapping[str, Any], name: str, moment: str, words: str) -> Iterator[tuple[str, Value]]:
    for what in ("functions", "files"):
        yield f"{name}: {what} {words}", facts["moments"].get(moment, {}).get(what)


def _readers(python: Path, folder: Path) -> Iterator[tuple[str, Value]]:
    """What verbs import that only read a campaign, and how long they take."""
    fuzz = ["fuzz", "acasxu", "--max-execs", str(_EPISODES), "-o", "read", "--ui", "none"]
    _run(python, folder, ["-m", "policyfuzz", *fuzz])
    commands = {name: ["-m", "policyfuzz", *words] for name, words in _READERS.items()}
    seconds = _best_seconds(python, folder, {_REFERENCE: ["-c", _REFERENCE], **commands})
    for name, words in _READERS.items():
        modules = _traced(python, folder, *words)["modules"]
        own = [module for module in modules if module.partition(".")[0] == "policyfuzz"]
        yield f"{name}: modules of policyfuzz", len(own)
        yield f"{name}: imports scipy", "scipy" in modules
        yield f"{name}: imports the search", "policyfuzz.search" in modules
        yield f"{name}: time against {_REFERENCE}", seconds[name] / seconds[_REFERENCE]


def _traced(python: Path, folder: Path, *arguments: str) -> dict[str, Any]:
    """What `calls` writes about a command of policyfuzz."""
    out = folder / "calls.json"
    out.unlink(missing_ok=True)
    done = _run(python, folder, ["-P", calls.__file__, str(out), *arguments])
    if not out.exists():
        raise UsageError(f"{python} cannot run policyfuzz: {done.stderr.strip()}", "install it there")
    if done.returncode not in (0, 1):  # 1: findings
        click.echo(f"policyfuzz {' '.join(arguments)}: {done.stderr.strip()}", err=True)
    facts: dict[str, Any] = json.loads(out.read_text())
    return facts


def _best_seconds(python: Path, folder: Path, commands: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The shortest time of each of `commands`, which run in turn so that all meet the same machine."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(_ROUNDS):
        for name, arguments in commands.items():
            started = time.perf_counter()
            _run(python, folder, arguments)
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def _run(python: Path, folder: Path, arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run([python, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"cannot run {python}: {error.strerror}", "name a Python interpreter") from error


def _table(found: Mapping[str, Value]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("what", "before", "now", "change"):
        table.add_column(head, justify="left" if head == "what" else "right")
    for name, value in found.items():
        before = BEFORE.get(name)
        table.add_row(name, _shown(before), _shown(value), _change(before, value))
    return table


def _shown(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def _change(before: Value, now: Value) -> str:
    if isinstance(before, bool) or isinstance(now, bool) or not before or now is None:
        return ""
    return f"{now / before - 1:+.0%}"
