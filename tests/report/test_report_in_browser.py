"""Reports in a real browser: nothing fails, nothing is cut off, nothing is hard to use."""

import sys
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import CampaignConfig, CampaignWriter, InputSpace, Real
from policyfuzz.report.campaign_report.write import write_report
from policyfuzz.report.film import new_film

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from browser import LOOKS, opened
from reported_campaigns import HOSTILE, add_modes, write_campaign

pytestmark = pytest.mark.slow  # a browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """Name to address of a report on an empty campaign, a hostile one, and on several."""
    folder = tmp_path_factory.mktemp("pages")
    CampaignWriter.create(folder / "empty", CampaignConfig("ripple"), InputSpace((Real("x", 0, 1),))).close()
    hostile = add_modes(write_campaign(folder / "hostile", text=HOSTILE, flaky=2, failed=3), HOSTILE)
    other = write_campaign(folder / "other", strategy="random")
    reports = {
        "empty": [folder / "empty"],
        "hostile": [hostile],
        "several": [hostile, other, folder / "empty"],
    }
    for name, folders in reports.items():
        write_report(folders, folder / f"{name}.html", "html", "policyfuzz report", films=0)
    return {name: (folder / f"{name}.html").as_uri() for name in reports}


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: f"{look[0]}-{look[2]}")
@pytest.mark.parametrize("name", ["empty", "hostile", "several"])
def test_report_opens_from_disk_without_a_fault(browser, pages, name, look):
    with opened(browser, pages[name], look) as seen:
        assert seen.problems == []
        assert seen.overflow <= 0
        assert seen.serious() == []
        assert seen.page.evaluate("typeof pwned") == "undefined"
        widths = seen.page.evaluate("[...document.images].map(one => one.naturalWidth)")
        assert all(widths)


def test_film_plays(browser, tmp_path, monkeypatch):
    pytest.importorskip("imageio_ffmpeg", reason="the extra film is not installed")
    from policyfuzz.report.campaign_report import films
    from policyfuzz.report.campaign_report.view import Film

    with new_film(tmp_path / "f.mp4", 20) as film:
        for shade in range(40):
            film.add(np.full((48, 64, 3), 5 * shade, np.uint8))
    made = Film(
        "", "video/mp4", (tmp_path / "f.mp4").read_bytes(), films._jpeg(np.zeros((48, 64, 3), np.uint8))
    )
    monkeypatch.setattr(films, "target_of", lambda *_: None)
    monkeypatch.setattr(films, "_film_or_reason", lambda *_: made)
    write_report(
        [add_modes(write_campaign(tmp_path / "c"))], tmp_path / "r.html", "html", "policyfuzz report"
    )
    with opened(browser, (tmp_path / "r.html").as_uri(), LOOKS[-1]) as seen:
        length = seen.page.evaluate(
            "new Promise(done => { const film = document.querySelector('video');"
            " film.readyState ? done(film.duration) : film.onloadedmetadata = () => done(film.duration); })"
        )
        assert length == pytest.approx(2.0, abs=0.2)
        assert seen.problems == []
