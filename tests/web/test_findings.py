import numpy as np
import pytest

from policyfuzz import CampaignReader
from policyfuzz.store.triage_file import Triage
from policyfuzz.store.triage_records import Mode, Modes
from policyfuzz.web.findings import PAGE_SIZE, Query, finding_page
from tests.web.serving import write_campaign


@pytest.fixture(scope="module")
def campaign(finished):
    return CampaignReader(finished)


def numbers(page):
    return [one.id for one in page.findings]


@pytest.mark.parametrize(
    "show", ["distinct", "confirmed", "all", "flaky", "luck", "new", "unsolved", "imported"]
)
def test_pages_together_hold_every_finding_once(campaign, show):
    first = finding_page(campaign, Triage(""), Query(show=show))
    pages = [finding_page(campaign, Triage(""), Query(show=show, page=one + 1)) for one in range(first.pages)]
    found = [number for page in pages for number in numbers(page)]
    assert len(found) == len(set(found)) == first.total
    where, parameters = Query(show=show).condition
    assert first.total == campaign.count("findings", where, parameters)


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("found", lambda one: one.id),
        ("newest", lambda one: -one.id),
        ("return", lambda one: one.episode_return),
        ("time", lambda one: one.crash_step),
        ("late", lambda one: -one.crash_step),
        ("repeats", lambda one: -one.repeats),
        ("severity", lambda one: one.margin),
    ],
)
def test_findings_are_sorted_across_pages(campaign, sort, key):
    first = finding_page(campaign, Triage(""), Query(show="all", sort=sort))
    last = finding_page(campaign, Triage(""), Query(show="all", sort=sort, page=first.pages))
    keys = [key(one) for one in (*first.findings, *last.findings)]
    assert keys == sorted(keys)


def test_findings_of_a_mode_alone_are_listed(campaign):
    members = tuple(range(1, 2 * PAGE_SIZE, 2))
    mode = Mode(3, "caught", 1, members, 1, 0.0)
    triage = Triage("", modes=Modes((mode,), True, 1.0, 1, 0, 0))
    page = finding_page(campaign, triage, Query(show="all", mode=3, sort="newest"))
    assert numbers(page) == sorted(members, reverse=True)
    assert page.total == len(members)


def test_kind_that_no_finding_has_gives_nothing(campaign):
    page = finding_page(campaign, Triage(""), Query(show="all", kind="' OR 1 --"))
    assert (page.findings, page.total, page.pages) == ([], 0, 1)


def test_most_different_come_first(campaign):
    page = finding_page(campaign, Triage(""), Query(show="all", sort="different"))
    first, second, third = (one.input for one in page.findings[:3])
    assert np.linalg.norm(first - second) >= np.linalg.norm(first - third)


@pytest.mark.parametrize(
    "given",
    [
        {"page": "-1"}, {"page": "9" * 40}, {"page": "٣"}, {"sort": "id; DROP TABLE findings"}, {"show": "x"},
        {"mode": "M"}, {"mode": "1e9"}, {"kind": "x" * 10_000},
    ],
)  # fmt: skip
def test_nonsense_in_an_address_is_left_out(campaign, given):
    query = Query.of(given)
    assert finding_page(campaign, Triage(""), query).query.page >= 1


def test_address_says_only_what_is_not_usual():
    assert Query().address() == "?"
    assert Query.of({"show": "all", "kind": "a&b"}).address(page=2) == "?show=all&kind=a%26b&page=2"


def test_empty_campaign_has_one_empty_page(tmp_path):
    page = finding_page(CampaignReader(write_campaign(tmp_path / "c", 0)), Triage(""), Query())
    assert (page.findings, page.pages, page.kinds) == ([], 1, [])
