"""Writes the report of campaigns to a file: HTML, Markdown, JUnit XML or JSON."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Target
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.report.campaign_report.view import CampaignView, read_view
from policyfuzz.report.instances import holds_instances
from policyfuzz.report.junit import junit_tree
from policyfuzz.report.ranking import representatives
from policyfuzz.store.database import FILE_NAME

#: Format to the ending of its files.
FORMATS = {"html": ".html", "markdown": ".md", "junit": ".xml", "json": ".json"}
#: Findings of a campaign in JUnit XML at most.
_MOST_CASES = 50
#: Bytes of a page at most, and what of them is left for the words around films.
MOST_BYTES, _SLACK_BYTES = 15_000_000, 100_000
#: Films of a campaign by default.
MOST_FILMS = 12


def format_of(path: Path) -> str:
    """The format that the ending of `path` names."""
    for name, ending in FORMATS.items():
        if path.suffix.lower() == ending:
            return name
    raise UsageError(f"cannot tell the format of {str(path)!r}", f"add --format, one of {', '.join(FORMATS)}")


def write_report(
    folders: Sequence[Path],
    path: Path,
    form: str,
    command: str,
    films: int = MOST_FILMS,
    trust: bool = False,
    target: Target | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[CampaignView]:
    """Write the report of the campaigns in `folders` to `path` in the format `form`; return what it is about.

    Of each campaign, up to `films` findings are filmed, which runs them again on `target`; 0 runs nothing.
    `command` is the line that makes the report, for those who read it.
    """
    tell("reading")
    views = [read_view(folder) for folder in _campaigns(folders)]
    if form == "html":
        views, text = _page(views, command, films, trust, target, tell)
    else:
        text = _text(views, form)
    make_folder_of(path)
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    return views


def _campaigns(folders: Sequence[Path]) -> list[Path]:
    """`folders` with the campaigns of those that hold several; each campaign may be named once."""
    found = [
        one
        for folder in folders
        for one in (
            sorted(path.parent for path in folder.glob(f"*/{FILE_NAME}"))
            if holds_instances(folder)
            else [folder]
        )
    ]
    places = [one.resolve() for one in found]
    if twice := [one for one, place in zip(found, places, strict=True) if places.count(place) > 1]:
        raise UsageError(f"the campaign in {twice[0]} is named twice", "name each campaign once")
    return found


def _text(views: list[CampaignView], form: str) -> str:
    if form == "markdown":
        from policyfuzz.report.campaign_report.markdown import markdown_report

        return markdown_report(views)
    if form == "junit":
        return _junit_text(views)
    from policyfuzz.report.campaign_report.values import report_values

    return json.dumps(_finite(report_values(views)), indent=1, allow_nan=False) + "\n"


def _page(
    views: list[CampaignView],
    command: str,
    most: int,
    trust: bool,
    target: Target | None,
    tell: Callable[[str], None],
) -> tuple[list[CampaignView], str]:
    """`views` with films, and the page about them; all campaigns share the bytes that are left for films."""
    # imported here: other formats need neither pictures nor simulators
    from policyfuzz.report.campaign_report.films import with_films, without_films
    from policyfuzz.report.campaign_report.page import html_report, written_parts

    tell("drawing")
    plain = [without_films(view) for view in views]
    parts = [written_parts(view) for view in plain]
    page = html_report(plain, command, parts)
    if not most:
        return plain, page
    # text holds three bytes in four characters
    left, filmed = max(MOST_BYTES - len(page.encode()) - _SLACK_BYTES, 0) * 3 // 4, []
    for place, view in enumerate(views):
        made, used = with_films(view, most, left // (len(views) - place), trust, target, tell)
        left -= used
        filmed.append(made)
    parts = [written_parts(view, before) for view, before in zip(filmed, parts, strict=True)]
    return filmed, html_report(filmed, command, parts)


def _junit_text(views: Sequence[CampaignView]) -> str:
    """One test suite per campaign, a failed test case for each failure mode or representative finding."""
    trees = [junit_tree(view.campaign, representatives(view.campaign, _MOST_CASES)) for view in views]
    root = trees[0]
    for tree in trees[1:]:
        root.extend(list(tree))
        for name in ("tests", "failures"):
            root.set(name, str(int(root.get(name, "0")) + int(tree.get(name, "0"))))
        root.set("time", f"{float(root.get('time', '0')) + float(tree.get('time', '0')):.3f}")
    text: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return f"{text.decode()}\n"


def _finite(value: Any) -> Any:
    """`value` with null in place of numbers that JSON does not know."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
