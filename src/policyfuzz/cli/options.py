"""Options that several verbs share."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import click

from policyfuzz.core.errors import UsageError
from policyfuzz.core.settings import CampaignOptions, seconds_of

if TYPE_CHECKING:
    from policyfuzz.core.target import Target
    from policyfuzz.execution.executor import ExecutorChoice


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, written as 90s, 2m, 1h30m or 12h."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return seconds_of(str(value)) or 0.0
        except UsageError:
            self.fail(f"{value!r} is not a duration; write 90s, 2m, 1h30m or 12h", param, ctx)


class AnyPath(click.Path):
    """The path of a file or folder, which need not exist, but could."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            pass  # the command says what it misses
        except (OSError, ValueError) as error:  # too long, a loop of links, a NUL
            reason = error.strerror if isinstance(error, OSError) else error
            self.fail(f"{str(value)[:80]!r} cannot be the name of a file: {reason}", param, ctx)
        return path


DURATION = Duration()
FOLDER = AnyPath()

reference = click.option(
    "--reference",
    "references",
    metavar="URI",
    multiple=True,
    help="Another policy, or own for the one that comes with the target: only crashes that it survives are"
    " findings. Several may be given; one of them must survive.",
)
as_json = click.option("--json", "is_json", is_flag=True, help="Print JSON on stdout.")
trust = click.option(
    "--trust",
    is_flag=True,
    help="Load policy files that can run code while they are loaded (sb3 zips, pickles), and run code that"
    " only a campaign file names.",
)


def asks_for_workers(command: Callable[..., int]) -> Callable[..., int]:
    """Give `command` the options that choose what runs episodes, as one `executor`."""

    @wraps(command)
    def asked(workers: int | None, executor: str | None, timeout: float | None, **rest: Any) -> int:
        from policyfuzz.execution.executor import choose_executor

        return command(executor=choose_executor(executor, workers, timeout), **rest)

    decorators = (
        click.option(
            "-j",
            "--workers",
            type=int,
            help="Worker processes.  [default: none, episodes run in this process]",
        ),
        click.option(
            "--executor",
            metavar="NAME",
            help="Runs episodes: inline, processes or ray[:ADDRESS].  [default: inline, with -j processes]",
        ),
        click.option(
            "--timeout",
            type=DURATION,
            help="Time limit of an episode in a worker; beyond it, it is hung.  [default: 5m]",
        ),
    )
    for decorate in reversed(decorators):
        asked = decorate(asked)
    return asked


@dataclass(frozen=True, slots=True)
class Request:
    """The target that a command line names."""

    name: str
    policy: str | None
    trust: bool

    def load_reference(self, executor: "ExecutorChoice", target: "Target", policy: str) -> "Target":
        """The same `target` with another `policy`, or with its own."""
        from policyfuzz.campaign.launch import OWN_POLICY
        from policyfuzz.targets.registry import load_for

        # by the name of the target, which holds the oracle that was chosen
        uri = None if policy == OWN_POLICY else policy
        return load_for(executor, target.name, uri, self.trust, will_check=False)

    def load(
        self, executor: "ExecutorChoice", policy: str | None = None, *, will_check: bool = True
    ) -> "Target":
        """The target, with its policy or with `policy`, for `executor` and perhaps for further checks."""
        from policyfuzz.targets.registry import load_for

        return load_for(executor, self.name, policy or self.policy, self.trust, will_check=will_check)


def all_of(option: str, values: tuple[str, ...]) -> str | None:
    """All `values` of an option that may be given several times, as one text; None if it is not given."""
    return ";".join(not_blank(option, value) for value in values) or None


def not_blank(option: str, value: str) -> str:
    """`value`; raises if there is nothing in it, as of a shell variable that is not set."""
    if not value.strip():
        raise UsageError(f"{option} is {value!r}", "give it a value, or leave the option out")
    return value


def asks_for_target(command: Callable[..., int]) -> Callable[..., int]:
    """Give `command` the argument TARGET and the options of a target, as one `request`."""

    @wraps(command)
    def asked(
        target: str,
        policies: tuple[str, ...],
        oracle: str | None,
        inputs: tuple[str, ...],
        bounds: str | None,
        horizon: int | None,
        trust: bool,
        **rest: Any,
    ) -> int:
        from policyfuzz.core.target import joined, split_options

        base, options = split_options(target)
        given = {
            "oracle": None if oracle is None else not_blank("--oracle", oracle),
            "input": all_of("--input", inputs),
            "bounds": None if bounds is None else not_blank("--bounds", bounds),
            "horizon": None if horizon is None else str(horizon),
        }
        options |= {name: value for name, value in given.items() if value is not None}
        return command(request=Request(joined(base, options), all_of("--policy", policies), trust), **rest)

    decorators = (
        click.argument("target"),
        click.option(
            "--policy",
            "policies",
            metavar="URI",
            multiple=True,
            help="The policy to test: sb3:model.zip, onnx:FILE, torchscript:FILE, npz:FILE, py:FILE.py:NAME,"
            " or what the target takes, e.g. acasxu:DIR.  [default: the shipped one, if any]",
        ),
        click.option(
            "--oracle", metavar="TEXT", help="What counts as a crash, e.g. 'terminated | return<100'."
        ),
        click.option(
            "--input",
            "inputs",
            metavar="TEXT",
            multiple=True,
            help="What is varied: NAME=LOW..HIGH, NAME=VALUE, seed, or a .toml or .py file.",
        ),
        click.option(
            "--bounds",
            metavar="own|wide|FACTOR",
            help="Bounds of the input: what the environment's own reset draws, as wide as makes sense, or"
            " FACTOR times its own; --input wins.  [default: by the kind of environment]",
        ),
        click.option("--horizon", type=int, help="Maximum number of steps of an episode."),
        trust,
    )
    for decorate in reversed(decorators):
        asked = decorate(asked)
    return asked


def campaign_options(*names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the options of `CampaignOptions` with these `names`."""
    types = get_type_hints(CampaignOptions)
    known = {option.name: option for option in fields(CampaignOptions)}

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        for name in reversed(names):
            flags = (f"--{name.replace('_', '-')}",) if name != "seed" else ("-s", "--seed")
            kind = get_args(types[name])[0]  # of int | None, for example
            command = click.option(*flags, type=kind, help=known[name].metadata["description"])(command)
        return command

    return decorate
