"""Hook of mkdocs: adds pages that are made from code or lie outside of docs/, and mends links.

Links are written for a code host: relative to the file, to any file of the repository.
On the site, links to files that are no page become plain text.
"""

import logging
import posixpath
import re
from collections.abc import Callable
from pathlib import Path

from docs_reference import GENERATED
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
log = logging.getLogger("mkdocs.hooks.docs_site")

#: Files outside of docs/ that are pages: path in the repository to path on the site.
INCLUDED = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "training/README.md": "training.md",
} | {
    path.relative_to(ROOT).as_posix(): f"{path.parent.parent.name}/{path.parent.name}.md"
    for pattern in ("targets/*/README.md", "models/*/CARD.md")
    for path in sorted((ROOT / "src/policyfuzz").glob(pattern))
}
#: Stands for another page of the site.
STANDS_FOR = {"README.md": "index.md"}

#: Code hosts want a bar in the code of a table escaped, and mkdocs shows the escape.
_ESCAPED_BAR = re.compile(r"(?<=`)([^`\n]*)\\\|([^`\n]*)(?=`)")
_CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for source, uri in INCLUDED.items():
        files.append(File.generated(config, uri, content=(ROOT / source).read_text("utf-8")))
    for uri, write in GENERATED.items():
        files.append(File.generated(config, uri, content=write()))
    return files


def on_page_markdown(markdown: str, page: Page, **_others: object) -> str:
    """Mend the links of a page, and put drawings into it, where they follow the colours of the site."""
    uri = page.file.src_uri
    source = next((one for one, of in INCLUDED.items() if of == uri), f"docs/{uri}")
    mended = outside_of_code(markdown, lambda text: _LINK.sub(lambda link: _mended(link, source, uri), text))
    return _ESCAPED_BAR.sub(r"\1|\2", mended) if not uri.startswith("reference/") else mended


def outside_of_code(markdown: str, change: Callable[[str], str]) -> str:
    """`markdown` with everything changed that is not code."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    changed = change(_CODE.sub(keep, markdown))
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], changed)


def _mended(link: re.Match[str], source: str, uri: str) -> str:
    """The link of the file `source`, as it has to be on the page `uri`."""
    picture, text, address = link.groups()
    path, _, anchor = address.partition("#")
    if ":" in path or not path:
        return link[0]
    found = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if found.startswith("docs/reference/"):  # made by us: not in the repository
        return link[0]
    if not (ROOT / found).exists():
        log.warning("%s links to %s, and there is no such file", source, address)
    if picture and found.endswith(".svg"):
        return f'<div class="drawing-frame">\n{(ROOT / found).read_text("utf-8")}</div>'
    there = INCLUDED.get(found) or STANDS_FOR.get(found)
    if there is None:
        if not found.startswith("docs/"):
            return text
        there = found.removeprefix("docs/")
    there = posixpath.relpath(there, posixpath.dirname(uri) or ".")
    return f"{picture}[{text}]({there}{'#' * bool(anchor)}{anchor})"
