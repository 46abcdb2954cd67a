"""Every page in a real browser, on a live, a finished, an empty and a large campaign."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.campaigns import write_large
from policyfuzz import CampaignConfig, CampaignReader, CampaignWriter, estimate, load_target
from policyfuzz.core.branches import Segment
from policyfuzz.store.records import BatchRecord, Progress
from policyfuzz.store.triage_file import FindingTriage, add_to_triage
from policyfuzz.store.triage_records import Avoidance, Boundary, Mode, Modes
from tests.browser import DESK, TELEPHONE, opened
from tests.store.example_findings import a_finding
from tests.web.serving import TARGET, serving, wait_until, write_campaign, write_comparison
from tests.web.test_attacks import SCRIPT, hostile_campaign

pytestmark = pytest.mark.slow

TABS = ("", "modes", "findings", "map", "coverage", "errors", "workers", "estimate", "policies", "findings/1")
#: Findings of the large campaign.
MANY = 100_000


@pytest.fixture(scope="module")
def triaged(tmp_path_factory) -> Path:
    """A finished campaign with two failure modes, of which much is known."""
    folder = write_campaign(tmp_path_factory.mktemp("browser") / "triaged", 2000)
    campaign = CampaignReader(folder)
    last = campaign.last_number("findings") or 0
    middle = last // 2
    finding = campaign.finding(1)
    known = FindingTriage(
        avoidance=Avoidance(
            "witness",
            7,
            (Segment(1, 3, (1.0, 1.0, 1.0)),),
            "away from step 0 on",
            standing="decided",
            last_chance=1,
        ),
        boundary=Boundary((0.5,) * len(finding.input), (0.4,) * len(finding.input), 0.1, 0.01, (), (), 40),
    )
    modes = Modes(
        (
            Mode(1, "caught", 1, tuple(range(1, middle)), 3, 0.5, words="in the middle", share=0.6),
            Mode(
                2,
                "caught",
                middle,
                tuple(range(middle, last + 1)),
                2,
                0.2,
                words="at the edge",
                robustness=0.9,
            ),
        ),
        True,
        0.97,
        last,
        10,
        100,
    )
    add_to_triage(folder, campaign.about["instance"], {1: known}, modes)
    write_comparison(folder, "compare.json", "npz:" + "a-rather-long-name-" * 6 + ".npz")
    (folder / "compare-damaged.json").write_text("no")
    estimate(TARGET, max_execs=600, out=folder / "estimate.npz", force=True)
    return folder


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    return write_large(tmp_path_factory.mktemp("browser") / "large", MANY)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A campaign that runs while the tests do."""
    folder = tmp_path_factory.mktemp("browser") / "live"
    command = [
        "-m",
        "policyfuzz",
        "fuzz",
        TARGET,
        "-o",
        str(folder),
        "--force",
        "--ui",
        "none",
        "--batch",
        "64",
    ]
    running = subprocess.Popen(
        [sys.executable, *command, "--max-time", "10m"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: has_findings(folder))
        yield folder
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()


@pytest.fixture(scope="module")
def address(triaged, empty, large, live):
    with serving(triaged, empty, large, live) as server:
        yield server.address.rstrip("/")


def has_findings(folder):
    try:
        return CampaignReader(folder).progress().findings > 10
    except Exception:  # it is being made
        return False


def problems(seen):
    """What went wrong, but for watching, which ends when a page is left."""
    return [one for one in seen.problems if "/events" not in one]


@pytest.mark.parametrize("size", [TELEPHONE, DESK], ids="{0[0]}".format)
def test_every_page_is_sound_in_every_look(browser, address, size):
    pages = ["/", "/compare", *(f"/c/{name}/{tab}" for name in ("triaged", "large", "live") for tab in TABS)]
    pages += [f"/c/empty/{tab}" for tab in TABS[:-1]]
    with opened(browser, f"{address}/", (*size, "light")) as seen:
        wrong = []
        for page in pages:
            seen.page.goto(address + page, wait_until="load")
            settle(seen.page)
            for scheme in ("light", "dark"):
                seen.page.emulate_media(color_scheme=scheme)
                if seen.overflow > 0:
                    wrong.append(f"{page}: {seen.overflow} pixels too wide, {scheme}")
            wrong += [f"{page}: {one}" for one in problems(seen)]
            seen.problems.clear()
        assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility_checker_finds_nothing_serious(browser, address, scheme):
    pages = ["/", "/compare", *(f"/c/triaged/{tab}" for tab in TABS), "/c/empty/modes", "/c/none/"]
    with opened(browser, f"{address}/", (*(TELEPHONE if scheme == "dark" else DESK), scheme)) as seen:
        wrong = []
        for page in pages:
            seen.page.goto(address + page, wait_until="load")
            settle(seen.page)
            wrong += [f"{page}: {one}" for one in seen.serious()]
        assert wrong == []


def test_live_numbers_move(browser, address):
    with opened(browser, f"{address}/c/live/", (*DESK, "light")) as seen:
        number = seen.page.locator("[data-live=executions]").first
        assert seen.page.locator("[data-live-state]").inner_text() == "running"
        before = number.inner_text()
        seen.page.wait_for_function(
            "before => document.querySelector('[data-live=executions]').textContent !== before", arg=before
        )
        assert problems(seen) == []


def test_present_tab_is_in_sight_on_a_telephone(browser, address):
    with opened(browser, f"{address}/c/triaged/policies", (*TELEPHONE, "light")) as seen:
        seen.page.wait_for_function(
            "() => document.querySelector('.tabs [aria-current]').getBoundingClientRect().right <= innerWidth"
        )


def test_comparison_and_estimate_are_reached_by_keyboard_alone(browser, address):
    with opened(browser, f"{address}/c/triaged/", (*DESK, "light")) as seen:
        page = seen.page
        focus_by_tab(page, "a[href$='/policies']")
        page.keyboard.press("Enter")
        page.wait_for_selector("h2:has-text('B is worse')")
        assert page.locator(".intervals svg:not(.ticks)").count() == 2
        assert page.get_by_text("compare-damaged.json").is_visible()
        focus_by_tab(page, "a[href$='/estimate']")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=plain sampling, 600 episodes")
        assert problems(seen) == []


def test_findings_are_filtered_sorted_and_paged_by_keyboard_alone(browser, address):
    with opened(browser, f"{address}/c/large/findings", (*DESK, "light")) as seen:
        page = seen.page
        focus_by_tab(page, "select[name=sort]")
        page.keyboard.type("worst")
        page.wait_for_url("**sort=severity**")
        focus_by_tab(page, "a[rel=next]")
        page.keyboard.press("Enter")
        page.wait_for_url("**page=2**")
        assert "51 to 100 of 10," in page.locator("main [role=status]").first.inner_text()
        focus_by_tab(page, "tbody a")
        page.keyboard.press("Enter")
        page.wait_for_selector("h1:has-text('Finding')")
        assert problems(seen) == []


def test_map_is_moved_zoomed_and_picked_by_keyboard_alone(browser, address):
    with opened(browser, f"{address}/c/triaged/map", (*DESK, "dark")) as seen:
        page = seen.page
        page.wait_for_selector("[data-says]:has-text('findings')")
        focus_by_tab(page, "canvas")
        for key in ("ArrowLeft", "ArrowUp", "+", "-", "0", "n", "n", "p"):
            page.keyboard.press(key)
        chosen = page.locator("[data-says] a").inner_text()
        page.keyboard.press("Enter")
        page.wait_for_selector(f"h1:has-text('{chosen.capitalize()}')")
        assert problems(seen) == []


def test_point_of_the_map_is_picked_with_the_mouse(browser, address):
    with opened(browser, f"{address}/c/triaged/map", (*DESK, "light")) as seen:
        page = seen.page
        page.wait_for_selector("[data-says]:has-text('findings')")
        canvas = page.locator("canvas")
        canvas.focus()
        page.keyboard.press("n")
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.wheel(0, -300)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 + 60, box["y"] + box["height"] / 2 + 30, steps=4)
        page.mouse.up()
        assert "/map" in page.url  # dragging opens nothing
        page.keyboard.press("0")
        page.keyboard.press("Escape")
        x, y = first_point(page, box)
        page.mouse.click(x, y)
        page.wait_for_url("**/findings/*")
        assert problems(seen) == []


def test_axis_of_a_chart_is_chosen_and_its_table_opened(browser, address):
    with opened(browser, f"{address}/c/triaged/", (*DESK, "light")) as seen:
        page = seen.page
        page.wait_for_selector(".chart > svg")
        page.click("[data-axis=seconds]")
        assert page.get_attribute("[data-axis=seconds]", "aria-pressed") == "true"
        page.click(".chart summary")
        assert page.locator(".chart tbody tr").count() > 3
        assert problems(seen) == []


def test_first_stop_of_the_keyboard_skips_to_the_content(browser, address):
    with opened(browser, f"{address}/c/triaged/", (*DESK, "light")) as seen:
        seen.page.keyboard.press("Tab")
        assert seen.page.evaluate("document.activeElement.className") == "skip"
        seen.page.keyboard.press("Enter")
        assert seen.page.evaluate("document.activeElement.id") == "main"


def test_film_is_made_and_strips_move_with_it(browser, triaged):
    with (
        serving(triaged, allow_replay=True) as server,
        opened(browser, f"{server.address}c/triaged/findings/1", (*DESK, "light")) as seen,
    ):
        page = seen.page
        page.set_default_timeout(240_000)
        focus_by_tab(page, "[data-film-button]")
        page.keyboard.press("Enter")
        page.wait_for_selector("[data-strips] .strip, .warning")
        before = page.get_attribute(".strip .head", "x1")
        page.locator("[data-step]").focus()
        page.keyboard.press("ArrowRight")
        assert page.get_attribute(".strip .head", "x1") != before
        assert page.locator("[data-step-text]").inner_text().startswith("1 of ")
        page.keyboard.press("End")
        assert "crashed" in page.locator("[data-step-text]").inner_text()
        assert page.locator(".strip .crashline").count() > 0
        assert seen.serious() == []
        assert problems(seen) == []


def test_film_of_a_target_that_renders_goes_with_the_steps(browser, tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="films that tell their time need the extra film")
    target = load_target("acasxu")
    config = CampaignConfig(target.name, policy_sha256=target.policy_sha256)
    store = CampaignWriter.create(tmp_path / "c", config, target.inputs)
    crash = np.array([78.6215, 826.792, -907.017, -1.12708])
    found = a_finding(1, status="confirmed", kind="collision", crash_step=89, is_distinct=True, input=crash)
    store.commit(BatchRecord(Progress(batch=1, executions=10, findings=1, distinct_findings=1), [found]))
    store.close()
    with (
        serving(tmp_path / "c", allow_replay=True) as server,
        opened(browser, f"{server.address}c/c/findings/1", (*DESK, "light")) as seen,
    ):
        page = seen.page
        page.set_default_timeout(240_000)
        page.click("[data-film-button]")
        page.wait_for_selector("[data-strips] .strip, .warning")
        page.wait_for_function("() => document.querySelector('[data-film]').readyState >= 2")
        assert page.evaluate("document.querySelector('[data-film]').duration") > 2
        page.locator("[data-step]").focus()
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        page.wait_for_function("() => document.querySelector('[data-film]').currentTime > 0.2")
        assert page.locator("[data-step-text]").inner_text().startswith("5 of ")
        page.click("[data-play]")
        page.wait_for_function("() => Number(document.querySelector('[data-step]').value) > 8")
        assert problems(seen) == []


def test_scripts_in_texts_do_not_run(browser, tmp_path):
    folder = hostile_campaign(tmp_path / f"x{SCRIPT.replace('/', '')}")
    with serving(folder) as server, opened(browser, server.address, (*DESK, "light")) as seen:

        def refuse(dialog):
            seen.problems.append(dialog.message)
            dialog.dismiss()

        seen.page.on("dialog", refuse)
        base = seen.page.url
        for tab in TABS:
            seen.page.goto(base + tab, wait_until="load")
            settle(seen.page)
            assert seen.page.evaluate("document.querySelectorAll('img[src=x]').length") == 0
        assert problems(seen) == []


def test_deleted_campaign_is_told_on_the_open_page(browser, tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    with serving(folder) as server, opened(browser, f"{server.address}c/c/", (*DESK, "light")) as seen:
        settle(seen.page)
        shutil.rmtree(folder)
        seen.page.wait_for_selector("[data-notice]:has-text('cannot be read any more')")
        assert problems(seen) == []


def first_point(page, box):
    """Where a point of the map lies: under the pointer it tells its number."""
    for y in range(30, int(box["height"]), 25):
        for x in range(30, int(box["width"]), 25):
            page.mouse.move(box["x"] + x, box["y"] + y)
            if page.locator("[data-says] a").count():
                return box["x"] + x, box["y"] + y
    return pytest.fail("there is no point on the map")


def settle(page):
    """Until scripts have drawn what they draw."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('.chart')].every(one => one.children.length)"
        " && (!document.querySelector('canvas') || document.querySelector('[data-says]').textContent)"
    )


def focus_by_tab(page, selector):
    """Press Tab until what `selector` names first has the focus."""
    wanted = page.locator(selector).first
    for _ in range(80):
        page.keyboard.press("Tab")
        if wanted.evaluate("one => one === document.activeElement"):
            return
    pytest.fail(f"Tab never came to {selector}")
