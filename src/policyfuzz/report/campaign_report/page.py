"""The report as one HTML file that needs nothing else: no network, no script, films inside."""

import base64
import hashlib
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata

from markupsafe import Markup

from policyfuzz.core.settings import CampaignConfig
from policyfuzz.report.campaign_report import markup, side_by_side, words
from policyfuzz.report.campaign_report.sections import SECTIONS, Section, reproduce
from policyfuzz.report.campaign_report.view import CampaignView
from policyfuzz.report.figures import drawing

#: Sections of a campaign with what they say, None if that is nothing.
Parts = list[tuple[Section, Markup | None]]


def html_report(views: Sequence[CampaignView], command: str, parts: Sequence[Parts] | None = None) -> str:
    """The page for `views`, one or several; `command` is the line that makes it again.

    `parts` are the sections of each of them, if they have been written before.
    """
    style = markup.source("style.css")
    written = [written_parts(view) for view in views] if parts is None else parts
    articles = [
        (view, words.verdict(view), [(one.title, said) for one, said in some if said is not None])
        for view, some in zip(views, written, strict=True)
    ]
    return str(
        markup.render(
            "page.html",
            title=_title([view.campaign.config for view in views]),
            style=Markup(style),
            policy=_content_policy(style),
            articles=articles,
            policy_text=words.policy_text,
            state_text=words.state_text,
            together=_together(views) if len(views) > 1 else None,
            reproductions=[(view, reproduce(view)) for view in views],
            command=command,
            made_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            made_by=f"PolicyFuzz {metadata.version('policyfuzz')} on Python {platform.python_version()}",
        )
    )


def written_parts(view: CampaignView, before: Parts | None = None) -> Parts:
    """The sections on `view`; of those written `before`, only what shows films is written again."""
    if before is None:
        return [(one, one.write(view)) for one in SECTIONS]
    return [(one, one.write(view) if one.shows_films else said) for one, said in before]


def _together(views: Sequence[CampaignView]) -> Markup:
    curves = {f"{place}: {view.campaign.config.strategy}": view.curve for place, view in enumerate(views, 1)}
    return markup.render(
        "side_by_side.html",
        views=views,
        policy_text=words.policy_text,
        figure=markup.wide_picture(
            drawing.svg_of(lambda: drawing.draw_side_by_side(curves)),
            "Distinct findings over episodes of the campaigns; the table has the totals.",
        ),
        most=drawing.MOST_CURVES,
        contrasts=side_by_side.contrasts(views),
        left_out=side_by_side.left_out_text(views),
        is_one_target=len({view.campaign.config.target for view in views}) == 1,
        folders=[view.name for view in views],
    )


def _title(configs: Sequence[CampaignConfig]) -> str:
    targets = list(dict.fromkeys(config.target for config in configs))
    return f"PolicyFuzz report: {', '.join(targets)}"


def _content_policy(style: str) -> str:
    """Forbids the page all but its own style and the pictures and films that it holds."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; media-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
