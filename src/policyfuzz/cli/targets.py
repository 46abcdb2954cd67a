"""policyfuzz targets: what can be fuzzed out of the box."""

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import as_json


@click.command(epilog="Example: policyfuzz targets")
@as_json
def command(is_json: bool) -> None:
    """List the built-in targets and their options.

    A target is named NAME or NAME:option=value,option=value. Your own target is named module:function or
    FILE.py:function, where the function returns a policyfuzz.Target.
    """
    from policyfuzz.cli.console import print_json
    from policyfuzz.core.extras import install_hint
    from policyfuzz.targets.registry import ADAPTERS, BUILT_INS, packaged

    known = {**BUILT_INS, **ADAPTERS}
    if is_json:
        listing = [
            {
                "name": name,
                "summary": built_in.summary,
                "options": dict(built_in.options),
                "extra": built_in.extra or None,
            }
            for name, built_in in known.items()
        ]
        listing += [{"name": name, "package": entry.value} for name, entry in packaged().items()]
        print_json(listing)
        return
    for name, built_in in known.items():
        echo(f"{name:<10} {built_in.summary}")
        if built_in.extra:
            echo(f"{'':<10}   needs {install_hint(built_in.extra)}")
        for option, meaning in built_in.options.items():
            echo(f"{'':<10}   {option}: {meaning}")
    for name, entry in packaged().items():
        echo(f"{name:<10} from {entry.value}")
