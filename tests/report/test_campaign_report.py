"""The report of campaigns: what it says, that it obeys nobody, and that it stays small."""

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from policyfuzz import CampaignConfig, CampaignReader, CampaignWriter, InputSpace, Real, open_result
from policyfuzz.core.errors import UsageError
from policyfuzz.repairing.verdict_file import write_verdict
from policyfuzz.report.campaign_report import films as film_files
from policyfuzz.report.campaign_report import side_by_side, words
from policyfuzz.report.campaign_report.markdown import escaped, markdown_report
from policyfuzz.report.campaign_report.page import html_report
from policyfuzz.report.campaign_report.values import report_values
from policyfuzz.report.campaign_report.view import Film, read_view
from policyfuzz.report.campaign_report.write import MOST_BYTES, write_report
from policyfuzz.report.figures import drawing
from policyfuzz.store.activations_file import write_activations
from policyfuzz.store.coverage_file import write_coverage
from policyfuzz.store.monitor_record import record_file, write_monitor_record
from policyfuzz.store.writer import CampaignWriter as Writer
from policyfuzz.triage.estimate import Estimate
from tests.repairing.test_verdict import fuzzed, verdict
from tests.store.test_monitor_record import RECORD
from tests.store.test_results_beside import COVERAGE, MAP, covered

sys.path.insert(0, str(Path(__file__).parent))
from reported_campaigns import HOSTILE, add_modes, write_campaign

COMMAND = "policyfuzz report c"
SPACE = InputSpace((Real("x", 0, 1), Real("y", 0, 1)))


@pytest.fixture
def quick_drawings(monkeypatch):
    """Drawings take most of the time of a report; these are nearly as large as real ones."""
    monkeypatch.setattr(drawing, "svg_of", lambda draw: b"<svg/>" * 30_000)


class Elements(HTMLParser):
    """Every element of a page with its attributes, and all of its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(*folders: Path) -> str:
    return html_report([film_files.without_films(read_view(folder)) for folder in folders], COMMAND)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A campaign all of whose texts are hostile, its folder's name included."""
    folder = tmp_path_factory.mktemp("r") / "c<b>'\"&"
    return add_modes(write_campaign(folder, text=HOSTILE, flaky=2, failed=3), HOSTILE)


@pytest.fixture(scope="module")
def hostile_page(hostile) -> str:
    return page_of(hostile)


def test_hostile_texts_are_shown_and_not_obeyed(hostile_page):
    parsed = Elements(hostile_page)
    tags = {tag for tag, _ in parsed.found}
    assert not tags & {"script", "iframe", "object", "form", "link", "base"}
    assert all(not name.startswith("on") for _, attributes in parsed.found for name in attributes)
    assert all(str(one.get("src", "data:")).startswith("data:") for _, one in parsed.found)
    assert "<script>pwned=1</script>" in parsed.text  # as text
    assert "{{7*7}}" in parsed.text
    assert "\x1b" not in hostile_page
    assert "\u202e" not in hostile_page


def test_page_allows_itself_nothing_but_its_own_style(hostile_page):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', hostile_page)
    (style,) = re.findall(r"<style>(.*?)</style>", hostile_page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"&#39;sha256-{digest}&#39;" in policy
    assert policy.startswith("default-src &#39;none&#39;")
    assert "style=" not in re.sub(r"data:[^\"]+", "", hostile_page)


def test_sections_come_in_the_order_of_the_questions(hostile_page):
    titles = re.findall(r'<h2 id="[^"]+">([^<]+)</h2>', hostile_page)
    assert titles == [
        "How likely is a failure?",
        "Failure modes",
        "Discovery",
        "Map of inputs and behaviours",
        "Health, flaky and rejected findings",
        "Errors and hangs",
        "Where the time went",
        "Versions, hashes, and how to do it again",
    ]


def test_mode_tells_witness_point_of_no_return_boundary_and_replay(hostile_page):
    text = Elements(hostile_page).text
    assert "step 15, 6 steps before the crash at step 21" in text
    assert "0.1 from safe" in text
    assert "up to 0.5 beyond the threshold" in text
    assert " M1 --trust" in text
    assert "These commands run code that the campaign names" in text


def test_flaky_findings_and_errors_are_shown(hostile_page):
    text = Elements(hostile_page).text
    assert "finding 13" in text
    assert "finding 14" in text
    assert "3 of 1,000 episodes could not be run" in text
    assert (
        "Besides, 2 more crashes did not repeat when they were run again and 3 episodes could not be run."
        in text
    )


def test_empty_campaign_has_a_report(tmp_path):
    CampaignWriter.create(tmp_path / "c", CampaignConfig("ripple"), SPACE).close()
    text = Elements(page_of(tmp_path / "c")).text
    assert "Nothing can be said yet" in text
    assert "Not known: nothing was drawn at random" in text


def test_campaign_without_findings_is_told_what_that_means(tmp_path):
    view = read_view(write_campaign(tmp_path / "c", size=0))
    found = words.verdict(view)
    assert found.level == words.NOTHING_FOUND
    assert (
        found.sentence == "No failure was found in 1,000 episodes; at most 1.83% of valid inputs fail (95 %)."
    )


def test_running_campaign_says_so_far(tmp_path):
    writer = Writer(write_campaign(tmp_path / "c"))
    try:
        assert words.verdict(read_view(tmp_path / "c")).sentence.startswith("So far, the policy fails: 12")
        assert words.state_text(read_view(tmp_path / "c")) == "is running"
    finally:
        writer.close()


def test_killed_campaign_can_be_continued(tmp_path):
    view = read_view(write_campaign(tmp_path / "c", stop_reason=None))
    assert words.state_text(view) == "did not stop cleanly; --resume continues it"


def test_unstable_modes_come_with_single_findings(tmp_path):
    view = read_view(add_modes(write_campaign(tmp_path / "c"), is_stable=False))
    assert view.modes
    assert view.examples
    assert "different ways" not in words.verdict(view).sentence
    assert {one.id for one in view.shown_findings} >= {1, 2}


def test_estimate_beside_the_campaign_is_used_if_it_is_of_the_same_policy(tmp_path):
    folder = write_campaign(tmp_path / "c")
    values = {
        "probability": 1e-6, "low": 5e-7, "high": 2e-6, "episodes": 90_000, "method": "subset simulation",
        "replicates": 10, "levels": 5, "relative_error": None, "plain_episodes": 1e7, "is_complete": True,
        "of_solvable": False, "target": "package:make", "policy": "p", "seed": 0, "notes": [],
        "policy_sha256": CampaignReader(folder).config.policy_sha256,
    }  # fmt: skip
    path = folder / "estimate.json"
    path.write_text(json.dumps(values))
    assert "about 1e-06 of valid inputs fail" in words.verdict(read_view(folder)).sentence
    path.write_text(json.dumps(values | {"policy_sha256": "of another"}))
    assert read_view(folder).estimate is None
    for wrong in ({"low": 0.5}, {"high": "1"}, {"more": 1}):
        path.write_text(json.dumps(values | wrong))
        view = read_view(folder)
        assert view.estimate is None
        assert "estimate.json" in view.estimate_problem


def test_the_sentence_takes_the_estimate_or_the_draws_whichever_is_narrower(tmp_path):
    view = read_view(write_campaign(tmp_path / "c"))
    known = view.probability
    estimate = Estimate(
        probability=known.high, low=0.0, high=1.0, episodes=90, method="", replicates=2, levels=1,
        relative_error=1.0, plain_episodes=1.0, is_complete=True, of_solvable=False, target="", policy="",
        seed=0,
    )  # fmt: skip
    own = words.likelihood(view)
    assert words.likelihood(replace(view, estimate=estimate)) == own
    narrow = replace(estimate, low=known.probability, high=known.high)
    assert words.likelihood(replace(view, estimate=narrow)) != own


def test_films_keep_to_their_budget_and_what_is_left_out_is_said(tmp_path, monkeypatch):
    view = read_view(add_modes(write_campaign(tmp_path / "c"), count=5))
    sizes = iter((600, 600, 100, 200, 50))
    monkeypatch.setattr(film_files, "target_of", lambda *_: None)
    monkeypatch.setattr(
        film_files, "_film_or_reason", lambda *_: Film("", "video/mp4", b"x" * next(sizes), b"s" * 10)
    )
    filmed, used = film_files.with_films(view, most=4, budget=1000, trust=False)
    films = list(filmed.films.values())
    assert [len(one.data) for one in films] == [600, 0, 100, 200, 0]
    assert films[1].reason == film_files.TOO_LARGE
    assert films[1].still
    assert "4 worst" in films[4].reason
    assert used == 600 + 100 + 200 + 4 * 2 * 10 <= 1000


def test_page_with_films_stays_below_its_limit(tmp_path, monkeypatch, quick_drawings):
    monkeypatch.setattr(film_files, "target_of", lambda *_: None)
    monkeypatch.setattr(
        film_files, "_film_or_reason", lambda *_: Film("", "video/mp4", b"x" * 3_000_000, b"s" * 60_000)
    )
    folders = [add_modes(write_campaign(tmp_path / name), count=6) for name in ("a", "b")]
    write_report(folders, tmp_path / "r.html", "html", COMMAND)
    page = (tmp_path / "r.html").read_text()
    assert MOST_BYTES / 2 < len(page) < MOST_BYTES
    assert page.count("<video") >= 2
    assert film_files.TOO_LARGE in page


def test_code_of_a_stranger_is_not_run_for_films(tmp_path, hostile, monkeypatch):
    monkeypatch.delenv("POLICYFUZZ_TRUST", raising=False)
    view, used = film_files.with_films(read_view(hostile), 3, 10**6, trust=False)
    assert used == 0
    assert "names code to run" in film_files.reasons(view)[0]
    assert "--trust" in film_files.reasons(view)[0]


@pytest.mark.usefixtures("quick_drawings")
def test_several_campaigns_are_compared_at_equal_effort(tmp_path):
    folders = [
        write_campaign(
            tmp_path / f"{strategy}{seed}", size, strategy=strategy, seed=seed, executions=episodes
        )
        for strategy, size, episodes in (("portfolio", 12, 1000), ("random", 4, 2000))
        for seed in range(4)
    ]
    views = [read_view(folder) for folder in folders]
    (one,) = side_by_side.contrasts(views)
    assert (one.first.strategy, one.second.strategy, one.episodes) == ("portfolio", "random", 1000)
    assert one.first.distinct == (6, 6, 6, 6)
    assert one.second.distinct == (1, 1, 1, 1)  # after 1,000 of their 2,000 episodes
    assert one.effect == 1.0
    assert one.p_value is not None
    assert one.is_shown
    text = Elements(html_report(views[3:5], COMMAND)).text
    assert "four campaigns of each are needed for a test" in text
    assert "Campaign 2" in text


def test_groups_that_differ_in_a_setting_only_are_told_apart(tmp_path):
    view = read_view(write_campaign(tmp_path / "c"))
    others = [
        SimpleNamespace(
            config=replace(view.config, distinct_radius=radius), progress=view.progress, curve=view.curve
        )
        for radius in (0.05, 0.1)
    ]
    (one,) = side_by_side.contrasts(others)
    assert one.first.label.endswith("distinct_radius 0.05")
    assert one.second.label.endswith("distinct_radius 0.1")
    assert "radius" not in side_by_side.groups_of(others[:1])[0].label


@pytest.mark.usefixtures("quick_drawings")
def test_instances_that_took_cases_from_others_are_listed_and_not_counted(tmp_path):
    folders = [write_campaign(tmp_path / f"alone{seed}", strategy="random", seed=seed) for seed in range(4)]
    folders += [write_campaign(tmp_path / f"main{seed}", seed=seed, imports=seed) for seed in range(4)]
    short = write_campaign(tmp_path / "short", seed=9, imports=3, executions=10)
    views = [read_view(folder) for folder in (*folders, short)]
    (one,) = side_by_side.contrasts(views)
    # the first of them began with nothing from others, and the short one does not cut the others short
    assert (one.second.places, one.episodes, one.p_value) == ((4,), 1000, None)
    for text in (Elements(html_report(views, COMMAND)).text, markdown_report(views)):
        assert "4 of the campaigns took cases from others" in text
    assert report_values(views)["left_out_of_contrasts"] == [5, 6, 7, 8]
    assert side_by_side.left_out_text(views[:5]) == ""


def test_corrected_p_values_never_fall():
    assert side_by_side.holm([0.01, None, 0.04, 0.03]) == [0.03, None, 0.06, 0.06]


def test_folder_of_instances_is_all_of_them_and_none_is_named_twice(tmp_path):
    for name in ("one", "two"):
        write_campaign(tmp_path / "sync" / name)
    views = write_report([tmp_path / "sync"], tmp_path / "r.json", "json", COMMAND)
    assert [Path(view.name).name for view in views] == ["one", "two"]
    with pytest.raises(UsageError, match="named twice"):
        write_report([tmp_path / "sync" / "one"] * 2, tmp_path / "r.json", "json", COMMAND)


def test_json_has_everything_and_no_odd_numbers(hostile, tmp_path):
    write_report([hostile], tmp_path / "r.json", "json", COMMAND)
    values = json.loads((tmp_path / "r.json").read_text(), parse_constant=pytest.fail)
    (campaign,) = values["campaigns"]
    assert campaign["verdict"] == "fails"
    assert [mode["findings"] for mode in campaign["modes"]] == [6, 6]
    assert campaign["flaky"] == [13, 14]
    assert campaign["errors"][0]["count"] == 3


def test_markdown_of_a_stranger_is_plain_text(hostile):
    text = markdown_report([read_view(hostile)])
    outside = re.sub(r"^(`{3,})sh\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in outside.replace(r"\<", "")
    assert "\x1b" not in text
    for line in outside.splitlines():
        if line.startswith("| M"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 8
    assert re.search(r"(?<!\\)\[a\]\(", outside) is None
    assert escaped("https://x www.y") == r"https\://x www\.y"


def test_junit_joins_the_campaigns(tmp_path, hostile):
    write_report([hostile, write_campaign(tmp_path / "b")], tmp_path / "r.xml", "junit", COMMAND)
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    suites = root.findall("testsuite")
    assert len(suites) == 2
    assert int(root.get("tests", 0)) == sum(int(one.get("tests", 0)) for one in suites)


def test_result_reports_itself(tmp_path):
    result = open_result(write_campaign(tmp_path / "c"))
    assert "The policy fails" in result.report(tmp_path / "r.md").path.read_text()
    with pytest.raises(UsageError, match="format"):
        result.report(tmp_path / "r.txt")


@pytest.mark.usefixtures("quick_drawings")
def test_modes_that_no_file_should_hold_do_no_harm(tmp_path):
    folder = add_modes(write_campaign(tmp_path / "c"))
    view = read_view(folder)
    known = view.triage.of(1).boundary
    assert known is not None
    boundary = replace(known, passing=(1.0,), crashing=(float("nan"),))
    triage = replace(view.triage, findings={"1": replace(view.triage.of(1), boundary=boundary)})
    assert "Both sides" not in html_report([replace(view, triage=triage)], COMMAND)


def with_results_beside(folder: Path, text: str) -> Path:
    """The campaign in `folder` with coverage and activations beside it; `text` is part of their names."""
    with_instance = CampaignReader(folder).about["instance"]
    one = replace(covered(f"a{text}", f"a{text}"), instance=with_instance)
    write_coverage(folder, replace(COVERAGE, target=text, campaigns=(one,)))
    write_activations(folder, replace(MAP, instance=with_instance, why_none=text))
    return folder


def test_results_beside_a_campaign_are_shown_and_obeyed_by_nobody(tmp_path, quick_drawings):
    folder = with_results_beside(write_campaign(tmp_path / "c"), HOSTILE)
    page = Elements(page_of(folder))
    assert "reference behaviours" in page.text
    assert "told apart" in page.text
    assert not [one for one in page.found if one[0] == "script" or "onerror" in one[1]]


def test_a_damaged_result_beside_a_campaign_is_named_and_the_rest_shown(tmp_path, quick_drawings):
    folder = write_campaign(tmp_path / "c")
    (folder / "coverage.json").write_text("{")
    (folder / "estimate.json").write_text("{")
    text = Elements(page_of(folder)).text
    assert "coverage.json" in text
    assert "estimate.json" in text
    assert "Where the time went" in text


def test_results_of_another_campaign_are_not_shown(tmp_path, quick_drawings):
    folder = write_campaign(tmp_path / "c")
    write_coverage(folder, COVERAGE)
    assert "reference behaviours" not in Elements(page_of(folder)).text


def test_a_monitor_in_the_folder_of_its_campaign_is_shown(tmp_path, quick_drawings):
    folder = write_campaign(tmp_path / "c")
    target = CampaignReader(folder).config.target
    path = record_file(folder / "monitor.npz", "fit")
    write_monitor_record(path, replace(RECORD, target=target))
    assert "A monitor that warns" in Elements(page_of(folder)).text
    write_monitor_record(path, replace(RECORD, target="another"))
    assert "A monitor that warns" not in Elements(page_of(folder)).text


def test_the_verdict_on_a_repair_is_shown_with_what_failed(tmp_path, quick_drawings):
    folder = write_campaign(tmp_path / "c")
    made = replace(verdict(fuzzed=(fuzzed((9, 8), (9, 9)),)), target=CampaignReader(folder).config.target)
    write_verdict(folder / "repair.json", made)
    text = Elements(page_of(folder)).text
    assert "fails some of its tests" in text
    assert "newly broken" in text
