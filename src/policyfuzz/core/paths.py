"""Paths as users write them: with ~, too long, or nonsense."""

from pathlib import Path

from policyfuzz.core.errors import PolicyFuzzError, UsageError


def absolute_path(text: str | Path, failure: type[PolicyFuzzError] = UsageError) -> Path:
    """The absolute path that `text` means in the current folder; ~ is the home of a user."""
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:  # no such user, or one without a home
        raise failure(f"cannot find the home folder in {str(text)!r}", "write the whole path") from error
    except OSError as error:
        raise failure(
            f"cannot find {str(text)!r}: the current folder is gone", "change the folder"
        ) from error


def is_file(path: Path) -> bool:
    """True for a file; False for what cannot be one: a name too long, or in a folder that is not readable."""
    try:
        return path.is_file()
    except OSError:
        return False


def names_in(folder: Path) -> list[str]:
    """Sorted names of what lies in `folder`; none if it cannot be read."""
    try:
        return sorted(item.name for item in folder.iterdir())
    except (OSError, ValueError):  # ValueError: a NUL in its name
        return []
