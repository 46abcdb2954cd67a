"""What notebooks show of results: films that are there, and no text of a stranger as markup."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import policyfuzz as pf
from policyfuzz.analysis.inconsistent import InconsistentDecisions, ShareReplaced
from policyfuzz.api.failures import FailureMode, FailureModes
from policyfuzz.api.shown import Shown, already_made
from policyfuzz.core import markup
from policyfuzz.report.comparison import Comparison, Pair, counted
from policyfuzz.report.mode_summaries import ModeSummary
from policyfuzz.store.comparisons import FAILS, PASSES, POOL, Ending
from policyfuzz.store.triage_records import Avoidance, Mode, Modes
from policyfuzz.triage.compare import Case
from policyfuzz.triage.estimate import PLAIN, Estimate
from tests.report.hostile_campaigns import hostile_target
from tests.store.example_findings import a_finding

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&"


class Tags(HTMLParser):
    """Collects the elements of a page, and their attributes but for the content of films."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


PLAIN_TAGS = {"p", "b", "br", "table", "thead", "tbody", "tr", "th", "td", "code"}


def assert_is_harmless(shown: object) -> str:
    page = Tags(shown._repr_html_())
    assert page.found <= PLAIN_TAGS | {"video", "img"}
    assert page.attributes <= {"style", "src", "controls", "loop", "muted"}
    return page.text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    target = replace(hostile_target(), name=f"{EVIL}.py:make")
    return pf.fuzz(target, max_execs=200, out=tmp_path_factory.mktemp("notebook") / "<b>c</b>", force=True)


def test_result_escapes_all_texts(hostile):
    text = assert_is_harmless(hostile)
    assert EVIL in text
    assert f"{hostile.progress.findings:,} findings" in text


def test_finding_escapes_all_texts(hostile):
    finding = hostile.findings[0]
    text = assert_is_harmless(finding)
    assert f"finding {finding.id}" in text
    assert "not filmed yet" in text


def test_finding_shows_the_film_that_is_there(hostile):
    finding = hostile.findings[0]
    folder = hostile.folder / "findings"
    folder.mkdir(exist_ok=True)
    (folder / f"{finding.id}.png").write_bytes(b"picture")
    assert "data:image/png;base64,cGljdHVyZQ==" in finding._repr_html_()
    (folder / f"{finding.id}.mp4").write_bytes(b"film")
    assert "data:video/mp4;base64,ZmlsbQ==" in finding._repr_html_(), "a film says more than a picture"
    assert_is_harmless(finding)


def test_film_that_is_a_link_is_not_shown(tmp_path):
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "1.png").symlink_to(tmp_path / "secret")
    assert already_made(tmp_path, 1) is None


def test_file_that_is_no_picture_is_named_only(tmp_path):
    path = tmp_path / "<svg onload=alert(1)>.svg"
    path.write_text("<svg/>")
    assert assert_is_harmless(Shown(path)) == str(path)


def test_film_that_is_gone_is_said(tmp_path):
    assert "cannot be opened" in assert_is_harmless(Shown(tmp_path / "<i>.mp4"))


def test_modes_escape_all_texts(hostile):
    known = Avoidance(EVIL, 1, words=EVIL, last_chance=3, blamed=EVIL)
    mode = Mode(1, EVIL, hostile.findings[0].id, (1, 2), 1, 2.5, EVIL, 0.5, 0.2, 0.8)
    summary = ModeSummary(mode, a_finding(), known, 1, 1, 0, 0, 0, 1, 4.0)
    one = FailureMode(summary, hostile)
    text = assert_is_harmless(one)
    assert "50% (95 %: 20% to 80%)" in text
    assert "step 3" in text
    about = Modes((mode,), True, 1.0, 2, 0, 0, EVIL)
    assert EVIL in assert_is_harmless(FailureModes([one], about))
    assert "run result.run_triage()" in assert_is_harmless(FailureModes([], None))


def test_damaged_triage_does_not_hide_the_result(hostile):
    (hostile.folder / "triage.json").write_text("{")
    text = assert_is_harmless(hostile)
    assert "triage.json" in text
    (hostile.folder / "triage.json").unlink()


def test_estimate_escapes_all_texts():
    estimate = Estimate(0.01, 0.005, 0.02, 1000, PLAIN, 0, 0, 0.3, 1000, True, False, EVIL, EVIL, 0, (EVIL,))
    text = assert_is_harmless(estimate)
    assert "a share of 0.01 of valid inputs fails" in text
    assert text.count(EVIL) == 3


def test_comparison_escapes_all_texts():
    case = Case(POOL, None, np.zeros(1), 1)
    pairs = tuple(Pair(case, Ending(PASSES), Ending(FAILS)) for _ in range(20))
    text = assert_is_harmless(Comparison(EVIL, EVIL, EVIL, counted(pairs), 20, pairs=pairs))
    assert "B is worse" in text
    assert text.count(EVIL) == 3


def test_inconsistent_decisions_escape_all_texts():
    share = ShareReplaced(0.1, 1000, 100, 50, 5, 0.03, 0.22)
    text = assert_is_harmless(InconsistentDecisions(EVIL, EVIL, 10, 0, 60, 50, (share,)))
    assert "10.0% (95 %: 3.0% to 22.0%)" in text
    assert text.count(EVIL) == 2


def test_table_without_rows_is_nothing():
    assert markup.table(["a"], []) == ""
    assert markup.facts({"a": "", "b": None, "c": float("nan")}) == ""
