"""The documentation site: it builds without a warning, holds what the code has, and needs no network."""

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import pytest

import policyfuzz
from policyfuzz.cli.main import EXIT_CODES, VERBS, exit_code
from policyfuzz.core.variables import VARIABLES
from policyfuzz.targets.registry import BUILT_INS

ROOT = Path(__file__).parents[1]
CHROMIUM = Path("/usr/bin/chromium")

pytestmark = pytest.mark.slow


class Resources(HTMLParser):
    """Addresses that a browser fetches by itself, and those of links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.linked: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = {name: value or "" for name, value in attributes}
        self.ids.add(given.get("id", ""))
        if tag == "a":
            self.linked.append(given.get("href", ""))
        elif tag == "link" and given.get("rel") not in ("prev", "next", "canonical"):
            self.fetched.append(given.get("href", ""))
        else:
            self.fetched.append(given.get("src", ""))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path.relative_to(site).as_posix(): path.read_text() for path in sorted(site.rglob("*.html"))}


def words(page: str) -> str:
    """The text of a page without tags."""
    return re.sub(r"<[^>]+>", "", page)


def test_reference_has_every_verb_and_option(pages, capsys):
    page = pages["reference/commands.html"]
    verbs = [[verb] for verb in VERBS]
    while verbs:
        verb = verbs.pop()
        assert f'id="{"-".join(verb)}"' in page
        exit_code([*verb, "--help"])
        text = capsys.readouterr().out
        listed = text.partition("Commands:\n")[2].partition("\n\n")[0]
        verbs += [[*verb, name] for name in re.findall(r"^  (\w+)", listed, re.M)]
        options = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.M)) - {"--help"}
        assert not [option for option in options if option not in words(page)], verb


def test_reference_has_every_public_name(pages):
    page = pages["reference/python.html"]
    titles = re.findall(r'<h3 id="[^"]*">([^<]+)<', page)
    assert sorted(titles) == sorted(policyfuzz.__all__)


def test_reference_has_every_target_exit_code_and_variable(pages):
    assert set(re.findall(r'<h2 id="([^"]+)"', pages["reference/targets.html"])) == set(BUILT_INS)
    page = words(pages["reference/exit-codes.html"])
    assert not [text for text in EXIT_CODES.values() if text not in page]
    assert not [name for name in VARIABLES if name not in page]


def test_every_variable_that_the_code_reads_is_documented():
    sources = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    named = set(re.findall(r"\bPOLICYFUZZ_[A-Z_]+\b", sources))
    # one marks our processes, the other is set for the command of --on-finding: no user sets them
    assert named - {"POLICYFUZZ_WORKER", "POLICYFUZZ_KIND"} == set(VARIABLES)


def test_every_page_fetches_only_files_of_the_site(site, pages):
    for name, text in pages.items():
        for address in Resources(text).fetched:
            path = address.partition("#")[0].partition("?")[0]
            if not path or path.startswith("data:"):
                continue
            assert ":" not in path, f"{name} fetches {address}"
            assert not path.startswith("//"), f"{name} fetches {address}"
            if name != "404.html":  # its addresses begin at the root of a server
                assert (site / name).parent.joinpath(path).resolve().is_file(), f"{name} fetches {address}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text()), style


def test_every_link_between_pages_has_an_end(site, pages):
    ids = {name: Resources(text).ids for name, text in pages.items()}
    for name, text in pages.items():
        if name == "404.html":
            continue
        for link in Resources(text).linked:
            path, _, anchor = link.partition("#")
            if ":" in path or link in ("", "."):
                continue
            there = (site / name).parent.joinpath(path).resolve() if path else site / name
            assert there.is_file(), f"{name} links to {link}"
            if anchor and there.suffix == ".html":
                assert anchor in ids[there.relative_to(site).as_posix()], f"{name} links to {link}"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if not CHROMIUM.exists():
        pytest.skip("needs chromium: apt-get install chromium")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_pages_open_without_complaint_and_fit_the_screen(browser, address, pages, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("response", lambda answer: wrong.append(answer.url) if answer.status >= 400 else None)
    page.on("request", lambda one: None if one.url.startswith(address) else wrong.append(one.url))
    for name in pages:
        page.goto(f"{address}/{name}")
        assert not wrong, name
        too_wide = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert too_wide <= 0, f"{name} is {too_wide} pixels too wide"
    page.close()


@pytest.mark.parametrize("is_served", [True, False], ids=["served", "from disk"])
def test_search_finds_a_page(browser, address, site, is_served):
    page = browser.new_page()
    page.goto(f"{address}/index.html" if is_served else (site / "index.html").as_uri())
    page.locator("input.md-search__input").click()
    page.get_by_text("Type to start searching").wait_for()  # the index has been read
    page.locator("input.md-search__input").press_sequentially("point of no return")  # it listens to keys
    found = page.locator(".md-search-result__link")
    found.first.wait_for()
    assert any("triage" in str(link.get_attribute("href")) for link in found.all())
    page.close()
