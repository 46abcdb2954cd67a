"""HTML of a report: templates in which every text is escaped, and pictures and films as data in the page."""

import base64
import math
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from policyfuzz.core.visible import visible
from policyfuzz.report.statistics import percentage


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("policyfuzz.report.campaign_report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {"data_uri": data_uri, "percentage": percentage, "short": _short}
    return made


def _shown(value: Any) -> Any:
    """Texts of strangers without what hides or turns round other text; escaping comes after this."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def render(template: str, **values: Any) -> Markup:
    """The HTML of a `template` with these `values`."""
    return Markup(_environment().get_template(template).render(values))


def source(name: str) -> str:
    """The text of a file among the templates, as it is."""
    loader = _environment().loader
    assert loader is not None
    return loader.get_source(_environment(), name)[0]


def picture(svg: bytes, words: str) -> Markup:
    """A drawing; `words` are for those who cannot see it."""
    return _image(data_uri(svg, "image/svg+xml"), words)


def wide_picture(svg: bytes, words: str) -> Markup:
    """The same for a drawing that is too wide for a telephone: there, it moves sideways."""
    return _sideways(picture(svg, words))


def wide_photograph(png: bytes, words: str) -> Markup:
    """The same for a drawing of so many points that it is smaller as PNG."""
    return _sideways(_image(data_uri(png, "image/png"), words))


def _sideways(image: Markup) -> Markup:
    label = "Drawing, which moves sideways on a narrow screen"
    return Markup('<div class="wide" tabindex="0" role="region" aria-label="{}">{}</div>').format(
        label, image
    )


def _image(address: str, words: str) -> Markup:
    return Markup('<img class="drawing" src="{}" alt="{}">').format(address, visible(words))


def interval_mark(low: float, middle: float, high: float) -> dict[str, float]:
    """Where an interval lies on a line from one in 100 million to certain, in per cent of its length."""
    left, centre, right = (
        100 * (1 + math.log10(min(max(value, 1e-8), 1.0)) / 8) for value in (low, middle, high)
    )
    return {"low": left, "width": max(right - left, 0.8), "middle": centre, "is_known": middle > 0}


def data_uri(data: bytes, mime_type: str) -> str:
    """`data` as an address that holds all of it."""
    return f"data:{mime_type};base64,{base64.b64encode(data).decode()}"


def _short(text: str, most: int = 300) -> str:
    """`text` of a stranger, cut off where nobody reads on."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
