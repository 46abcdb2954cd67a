"""Films of findings for a report, the worst first, within a budget of bytes."""

import io
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PIL import Image

from policyfuzz.core.errors import PolicyFuzzError
from policyfuzz.core.target import Target
from policyfuzz.report.campaign_report.view import CampaignView, Film
from policyfuzz.report.episode_figure import draw_replay
from policyfuzz.report.film import Picture, best_format, can_film, film_replay
from policyfuzz.store.records import Finding
from policyfuzz.triage.replay import is_safe_to_run, replay_on, target_of

_MIME_TYPES = {".mp4": "video/mp4", ".gif": "image/gif", ".png": "image/png"}
#: Of a still, 1 to 95.
_JPEG_QUALITY = 80
#: Pixels of a still's width at most.
_WIDEST_STILL = 1200
#: Why there is no film.
NOT_ASKED_FOR = "No film: the report was made without running anything (--no-films)."
TOO_LARGE = "The film was left out, because the report would have become too large."


def without_films(view: CampaignView) -> CampaignView:
    """`view`, which says of every finding that no film was asked for."""
    return replace(view, films={one.id: Film(NOT_ASKED_FOR) for one in view.shown_findings})


def with_films(
    view: CampaignView,
    most: int,
    budget: int,
    trust: bool,
    target: Target | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[CampaignView, int]:
    """`view` with films of up to `most` findings in at most `budget` bytes, and the bytes that they take.

    Films are made by running findings again on `target`, or on the one that the campaign names, whose code is
    not run without `trust`.
    """
    shown = view.shown_findings
    if not shown:
        return view, 0
    try:
        loaded = target or target_of(view.campaign, None, trust, None)
    except PolicyFuzzError as error:
        reason = f"No film: {error.message}" + (f" ({error.hint})" if error.hint else "")
        return replace(view, films={one.id: Film(reason) for one in shown}), 0
    films, used = {}, 0
    for place, finding in enumerate(shown):
        if place >= most:
            films[finding.id] = Film(f"No film: only the {most} worst are filmed (--films).")
            continue
        tell(f"filming finding {finding.id} ({place + 1} of {min(len(shown), most)})")
        film = _film_or_reason(view, loaded, finding)
        size = _size(film)
        if used + size > budget:  # a still says more than nothing
            film = replace(film, reason=TOO_LARGE, mime_type="", data=b"")
            size = _size(film)
        if used + size > budget:
            film, size = Film(TOO_LARGE), 0
        films[finding.id] = film
        used += size
    return replace(view, films=films), used


def _size(film: Film) -> int:
    """Bytes in a page, which holds the still twice: before the film is played, and for print."""
    return len(film.data) + 2 * len(film.still)


def _film_or_reason(view: CampaignView, target: Target, finding: Finding) -> Film:
    try:
        return _film(view, target, finding)
    except PolicyFuzzError as error:
        return Film(f"No film: {error.message}")


def _film(view: CampaignView, target: Target, finding: Finding) -> Film:
    """A film of `finding`, beside its witness where one is known; a drawing where it cannot be filmed."""
    outcome, avoidance = replay_on(target, finding), view.triage.of(finding.id).avoidance
    said = "" if outcome.crashes else "Run again for this report, it did not crash: something has changed."
    with tempfile.TemporaryDirectory() as folder:
        if can_film(target):
            path = Path(folder, f"film{best_format()}")
            still = film_replay(outcome, path, avoidance)
            return Film(said, _MIME_TYPES[path.suffix], path.read_bytes(), _jpeg(still))
        path = Path(folder, "drawing.png")
        draw_replay(outcome, path, avoidance, is_compared=is_safe_to_run(view.campaign))
        return Film(said or "This target cannot be filmed; here is a drawing.", "", b"", _jpeg_of(path))


def _jpeg(picture: Picture) -> bytes:
    return _packed(Image.fromarray(picture))


def _jpeg_of(path: Path) -> bytes:
    with Image.open(path) as image:
        return _packed(image.convert("RGB"))


def _packed(image: Image.Image) -> bytes:
    if image.width > _WIDEST_STILL:
        image = image.resize((_WIDEST_STILL, max(1, round(image.height * _WIDEST_STILL / image.width))))
    data = io.BytesIO()
    image.save(data, format="JPEG", quality=_JPEG_QUALITY, optimize=True)
    return data.getvalue()


def reasons(view: CampaignView) -> list[str]:
    """Why films are missing, each reason once."""
    return list(dict.fromkeys(film.reason for film in view.films.values() if film.reason))
