"""The command line: finds the verb, turns errors into one message and an exit code."""

import os
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any

import click

from policyfuzz.cli import process
from policyfuzz.cli.echo import echo, show_usage_error, show_warning
from policyfuzz.core import variables
from policyfuzz.core.errors import PolicyFuzzError, TargetCodeError, UsageError, unknown_name

#: Verb to what it does; its module is imported only when the verb is used.
VERBS = {
    "targets": "List the built-in targets.",
    "init": "Write a target file of your own that runs.",
    "check": "Look at a target before fuzzing it.",
    "fuzz": "Search for inputs that make the policy crash.",
    "estimate": "Say how likely a failure is, however rare.",
    "status": "Say how a campaign is doing.",
    "show": "Show failure modes and findings.",
    "web": "Show campaigns in a browser, live.",
    "triage": "Group findings into failure modes, and explain them.",
    "compare": "Say whether another policy fails less or more often.",
    "repair": "Make the policy crash less, and test whether it does.",
    "replay": "Run a finding again and draw it.",
    "minimize": "Say how far a finding is from safe.",
    "inconsistent": "Replace some decisions of the policy and count crashes.",
    "report": "Write one file about campaigns, with films, to send to somebody.",
    "coverage": "Say which states and behaviours campaigns covered.",
    "activations": "Say whether the policy inside tells crashes from normal episodes.",
    "monitor": "Fit a monitor that warns before a crash.",
    "export": "Write findings, seeds or history to a file, also as tests.",
    "migrate": "Bring a campaign file of an earlier version up to date.",
}

#: Exit code to meaning. The documentation lists this table.
EXIT_CODES = {
    0: "nothing found",
    1: "confirmed findings; a crash (replay, minimize), a worse policy (compare), a failed test (repair)",
    2: "wrong usage, or a file that is missing, damaged or not writable",
    3: "the target is unhealthy, or its code fails: fuzzing it would prove nothing",
    4: "internal error",
    130: "interrupted; all finished batches are saved",
}

_CODES = "\n".join(f"  {code:<5}{meaning}" for code, meaning in EXIT_CODES.items())
EPILOG = f"""\
\b
Examples:
  policyfuzz fuzz acasxu --max-time 1m      fuzz the shipped networks
  policyfuzz fuzz gym:CartPole-v1 --policy sb3:model.zip --trust      or a model of your own
  policyfuzz show campaigns/acasxu-1        list what was found
  policyfuzz replay campaigns/acasxu-1 1    fly finding 1 again and draw it

\b
Exit codes:
{_CODES}"""


class _Verbs(click.Group):
    """Loads the module of a verb when it is needed, and suggests a verb for a misspelt one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"policyfuzz.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            if args[0] == "bench":
                raise UsageError(
                    "unknown command 'bench': benchmarks are not part of the installed package",
                    "run them from a checkout of the repository: python -m benchmarks --list",
                )
            raise unknown_name("command", args[0], VERBS)
        return super().resolve_command(ctx, args)


@click.group(cls=_Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="policyfuzz")
def policyfuzz() -> None:
    """Blackbox fuzz testing for trained policies."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    _hush_warnings()
    process.prepare()
    process.leave(exit_code(arguments))


def _hush_warnings() -> None:
    """Keep Python warnings of simulators and model packages off the screen, unless asked for with -W."""
    is_asked_for = sys.warnoptions or os.environ.get(variables.DEBUG)
    # filters would not do: packages add some of their own
    warnings.showwarning = show_warning if is_asked_for else lambda *_arguments, **_named: None


def exit_code(
    arguments: list[str] | None = None, group: click.Group = policyfuzz, name: str = "policyfuzz"
) -> int:
    """Run the command line of `group`, called `name`; return the code to exit with."""
    stdout = sys.stdout
    try:
        result: Any = group.main(arguments, prog_name=name, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except PolicyFuzzError as error:
        return _told(error, name)
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message())
        return 2
    except click.ClickException as error:
        show_usage_error(error)
        return 2
    except (KeyboardInterrupt, click.Abort):
        echo(f"{name}: interrupted", err=True)
        return 130
    except BrokenPipeError:
        return 0
    except SystemExit as error:
        if sys.stdout is not stdout:  # click wraps it and exits with 1 when the reader of a pipe has gone
            return 0
        return _foreign_error(error, name)
    except Exception as error:
        return _internal_error(error, name)
    except BaseException as error:
        return _foreign_error(error, name)


def _foreign_error(error: BaseException, name: str) -> int:
    """For what neither we nor click raise, such as SystemExit from code that a model file brings."""
    return _told(TargetCodeError.of("the target or policy", error), name)


def _told(error: PolicyFuzzError, name: str) -> int:
    if process.is_copy():
        process.leave(0)
    echo(f"{name}: {error}", err=True)
    return error.exit_code


def _internal_error(error: Exception, name: str) -> int:
    if os.environ.get(variables.DEBUG):
        echo("".join(traceback.format_exception(error)), err=True)
        return 4
    echo(
        f"{name}: internal error: {type(error).__name__}: {error}\n"
        f"  hint: set {variables.DEBUG}=1 to see where, and report it with that output",
        err=True,
    )
    return 4
