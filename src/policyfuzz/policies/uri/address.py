"""What stands behind the scheme of a policy: a file or name, and options."""

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.errors import PolicyError, unknown_name


@dataclass(frozen=True, slots=True)
class Address:
    """PLACE?option&option=value, taken apart."""

    scheme: str
    place: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, scheme: str, rest: str, known: Mapping[str, str]) -> "Address":
        """`rest` of a URI of `scheme`, whose options are `known`: name to what it means."""
        place, _, text = rest.partition("?")
        options: dict[str, str] = {}
        for item in filter(None, text.split("&")):
            key, _, value = item.partition("=")
            if key not in known:
                raise unknown_name(f"option of {scheme}:", key, known)
            if key in options:
                raise PolicyError(f"option {key} of {scheme}:{rest} is given twice")
            options[key] = value
        if not place:
            raise PolicyError(f"{scheme}:{rest} names no file", hint=f"write {scheme}:FILE")
        return cls(scheme, place, options)

    def file(self) -> Path:
        """The file at this address, which exists; absolute."""
        path = Path(self.place).expanduser().absolute()
        if path.is_file():
            return path
        if path.is_dir():
            raise PolicyError(f"{path} is a folder, expected a file", hint=_inside(self.scheme, path))
        folder = path.parent
        names = sorted(item.name for item in folder.iterdir()) if folder.is_dir() else []
        close = difflib.get_close_matches(path.name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "" if names else f"there is no folder {folder}"
        raise PolicyError(f"no file {str(path)!r} for policy {self.scheme}:{self.place}", hint)

    def uri(self, place: str | Path) -> str:
        """The whole URI again, with `place` instead of the one that was given."""
        text = "&".join(f"{key}={value}" if value else key for key, value in self.options.items())
        return f"{self.scheme}:{place}?{text}" if text else f"{self.scheme}:{place}"

    def sha256(self, *contents: bytes) -> str:
        """Digest of `contents`; of one alone without options, it is what `sha256sum` says of the file."""
        if len(contents) == 1 and not self.options:
            return hashlib.sha256(contents[0]).hexdigest()
        parts = [hashlib.sha256(content).hexdigest() for content in contents]
        return hashlib.sha256(repr((parts, sorted(self.options.items()))).encode()).hexdigest()


def _inside(scheme: str, folder: Path) -> str:
    files = sorted(item.name for item in folder.iterdir() if item.is_file())
    return f"did you mean {scheme}:{folder / files[0]}?" if len(files) == 1 else "name the file in it"
