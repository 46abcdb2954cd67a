"""Pictures and films in notebooks."""

import base64
import html
import os
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.files import is_file, read_regular
from policyfuzz.store.database import picture_file

#: Films larger than this are not put into a notebook, which would hold them as text.
_LARGEST_BYTES = 20_000_000
#: Endings of what a notebook can show, the best first. No SVG, which can hold scripts.
_KINDS = {".mp4": "video/mp4", ".gif": "image/gif", ".png": "image/png"}


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture or film: a file, which notebooks show."""

    path: Path

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        kind = _KINDS.get(self.path.suffix.lower())
        try:
            content = b"" if kind is None else read_regular(self.path, _LARGEST_BYTES, CampaignError)
        except CampaignError as error:
            return f"<code>{html.escape(error.message)}</code>"
        if not content:
            return f"<code>{html.escape(str(self.path))}</code>"
        data = f"data:{kind};base64,{base64.b64encode(content).decode()}"
        if kind == "video/mp4":
            return f'<video controls loop muted style="max-width:100%" src="{data}"></video>'
        return f'<img style="max-width:100%" src="{data}">'


def already_made(folder: Path, number: int) -> Shown | None:
    """The film or picture of finding `number` that lies in the campaign in `folder`; None if none does."""
    for ending in _KINDS:
        try:
            path = picture_file(folder, f"{number}{ending}")
        except CampaignError:  # a link
            continue
        if is_file(path):
            return Shown(path)
    return None
