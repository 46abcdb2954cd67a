"""policyfuzz init: writes a target file that runs, to be changed."""

from pathlib import Path

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER, all_of, trust
from policyfuzz.core.errors import UsageError
from policyfuzz.core.files import names_in

EPILOG = """\
\b
Examples:
  policyfuzz init                                   a simulator of your own, in some thirty lines
  policyfuzz init gym:CartPole-v1 --policy sb3:ppo.zip --trust
  policyfuzz init gym:my_env.py:MyEnv -o cart.py    with detected input, bounds and oracle"""


@click.command(epilog=EPILOG)
@click.argument("target", required=False)
@click.option(
    "--policy",
    "policies",
    metavar="URI",
    multiple=True,
    help="The policy to test, or one for each agent.  [default: a stub for you to fill in]",
)
@trust
@click.option(
    "-o", "--out", type=FOLDER, default="my_target.py", show_default=True, help="The file to write."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def command(target: str | None, policies: tuple[str, ...], trust: bool, out: Path, force: bool) -> None:
    """Write a commented target file that runs, to be changed.

    Without TARGET it holds a small simulator, to be replaced by yours. For an environment such as
    gym:CartPole-v1 it holds what PolicyFuzz detected: what is varied, its bounds, and what counts as a
    crash.
    """
    from policyfuzz.cli.target_file import environment_file, own_simulator

    _check_out(out, force)
    policy = all_of("--policy", policies)
    if target is None and policy is not None:
        raise UsageError(
            "a policy was given, and no environment", "name it: policyfuzz init gym:NAME --policy URI"
        )
    if target is None:
        text = own_simulator()
    else:
        _check_target(target)
        text = environment_file(target, policy, trust)
    _write(out, text)
    echo(f"wrote {out}")
    if target is not None and policy is None:
        echo("its policy does nothing yet: put yours into act, or name it as POLICY; then")
    echo(f"look at it:  policyfuzz check {out}:make_target")
    echo(f"fuzz it:     policyfuzz fuzz {out}:make_target --max-time 1m")


def _check_out(out: Path, force: bool) -> None:
    if out.suffix != ".py":
        raise UsageError(f"cannot write a target into {out.name!r}", "name a file that ends in .py")
    if out.name in names_in(out.parent) and not force:
        raise UsageError(f"{out} already exists", "choose another with -o, or overwrite it with --force")


def _check_target(target: str) -> None:
    """Refuse what needs no file, or is one."""
    from policyfuzz.core.target import split_options
    from policyfuzz.targets.registry import ADAPTERS

    base, _, rest = split_options(target)[0].partition(":")
    if base in ADAPTERS and rest:
        return
    kinds = " and ".join(f"{name}:" for name in ADAPTERS)
    hint = f"did you mean gym:{target}?" if "-v" in target else f"fuzz it as it is: policyfuzz fuzz {target}"
    raise UsageError(f"a file can be written for environments of {kinds}, not for {target!r}", hint)


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot write {str(out)!r}: {reason}", "does its folder exist?") from error
