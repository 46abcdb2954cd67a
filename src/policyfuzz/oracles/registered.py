"""Oracles that other packages bring, by the entry points of a group."""

from typing import TYPE_CHECKING

from policyfuzz.errors import UsageError, blamed_on, unknown_name
from policyfuzz.oracles.verdicts import Oracle

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

#: A name in this group stands for an oracle, or for something that makes one when called without arguments.
GROUP = "policyfuzz.oracles"


def registered_names() -> tuple[str, ...]:
    """The names that installed packages give to their oracles."""
    return tuple(sorted(_entries().names))


def registered_oracle(name: str) -> Oracle:
    """The oracle that an installed package calls `name`."""
    entry = _entry(name)
    with blamed_on(f"oracle {name}"):
        found = entry.load()
        # a class has the methods of an oracle and is none yet
        oracle = found if hasattr(found, "judge") and not isinstance(found, type) else found()
    if not (hasattr(oracle, "judge") and hasattr(oracle, "kinds")):
        raise UsageError(
            f"oracle {name} ({entry.value}) is {type(oracle).__name__}, expected something that judges",
            f"the entry point in group {GROUP} names an oracle or a function that makes one",
        )
    return oracle  # type: ignore[no-any-return]


def _entries() -> "EntryPoints":
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return entry_points(group=GROUP)


def _entry(name: str) -> "EntryPoint":
    entries = {entry.value: entry for entry in _entries().select(name=name)}
    if not entries:
        raise unknown_name("oracle", name, registered_names())
    if len(entries) > 1:
        raise UsageError(
            f"several installed packages bring an oracle called {name}: {', '.join(sorted(entries))}",
            "uninstall all of them but one",
        )
    return next(iter(entries.values()))
