import json
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from policyfuzz import CampaignConfig, CampaignReader, CampaignWriter, InputSpace, Real
from policyfuzz.store.records import BatchRecord, FailedEpisode, Progress
from policyfuzz.store.triage_file import FindingTriage, add_to_triage
from policyfuzz.store.triage_records import Avoidance, Mode, Modes
from policyfuzz.web import connections
from tests.store.example_findings import a_finding
from tests.web.serving import client_of, serving, wait_until, write_campaign, write_comparison

SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}\x1b[31m\u202e"
TABS = ("", "modes", "findings", "map", "coverage", "errors", "workers", "estimate", "policies")
OTHERS = (
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "localhost.evil",
    "0.0.0.0",
    "10.0.0.1",
)
TOKEN = "a-token-of-the-tests"
SECRET = "a secret outside of the campaign"


def hostile_campaign(folder: Path) -> Path:
    """A campaign all of whose texts are scripts."""
    space = InputSpace((Real(SCRIPT, 0.0, 1.0, unit=SCRIPT[:20]),))
    config = CampaignConfig(f"mine{SCRIPT}.py:make", policy=f"py:{SCRIPT}", strategy="portfolio")
    store = CampaignWriter.create(folder, config, space, {"solvability": SCRIPT})
    store.note("version.policyfuzz", SCRIPT)
    finding = replace(
        a_finding(1, kind=SCRIPT, status="confirmed", is_distinct=True, origin=SCRIPT, survived_by=SCRIPT),
        input=np.array([0.5]),
    )
    error = FailedEpisode(1, SCRIPT, 3, f"Traceback\n{SCRIPT}", SCRIPT, 1, 7, 1, 10, 0.5, finding.input)
    progress = Progress(batch=1, executions=10, findings=1, distinct_findings=1, errors=1, samples=2)
    store.commit(BatchRecord(progress, findings=[finding], failed=[error]))
    store.set_stop_reason(SCRIPT)
    instance = store.about["instance"]
    store.close()
    mode = Mode(1, SCRIPT, 1, (1,), 1, 0.5, words=SCRIPT)
    known = FindingTriage(
        survived_by=(SCRIPT,), avoidance=Avoidance("witness", 1, words=SCRIPT, blamed=SCRIPT)
    )
    add_to_triage(folder, instance, {1: known}, Modes((mode,), True, 1.0, 1, 0, 0, reason=SCRIPT))
    write_comparison(folder, "compare.json", SCRIPT)
    (folder / f"compare{SCRIPT.replace('/', '')}.json").write_text("no")
    return folder


def said_on(address, data: bytes, size: int = 65536) -> bytes:
    """What the server answers to `data` on a connection of its own."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(data)
        parts = []
        while part := connection.recv(size):
            parts.append(part)
    return b"".join(parts)


def place_of(server):
    url = httpx.URL(server.address)
    return url.host, url.port


# scripts in texts


def test_texts_never_become_markup(tmp_path):
    folder = hostile_campaign(tmp_path / f"x{SCRIPT.replace('/', '')}")
    with serving(folder, tmp_path / "none") as server, client_of(server) as client:
        index = client.get("/").text
        slug = index.split('href="/c/')[1].partition("/")[0]
        assert slug.isascii()
        addresses = ["/", "/compare", *(f"/c/{slug}/{tab}" for tab in TABS), f"/c/{slug}/findings/1"]
        addresses += [
            f"/c/{slug}/findings?show=all&kind=<script>",
            f"/c/{slug}/findings/2",
            "/c/<script>alert(1)/",
        ]
        for address in addresses:
            answer = client.get(address)
            assert "<script>alert" not in answer.text
            assert "<img src=x" not in answer.text
            assert "onerror=alert(2)>" not in answer.text
            assert "\x1b" not in answer.text
            assert (
                "49" not in answer.text.partition("<body")[2].partition("alert(2)")[2][:20]
            )  # no template in it
            assert "script-src 'self'" in answer.headers["content-security-policy"]
            assert "unsafe" not in answer.headers["content-security-policy"]


def test_pages_have_no_script_or_style_in_them(client):
    for tab in TABS:
        page = client.get(f"/c/finished/{tab}").text
        assert " style=" not in page
        assert " onclick=" not in page
        assert all(part.startswith(' type="module" src="/static/') for part in page.split("<script")[1:])


def test_json_is_not_taken_for_a_page(client):
    answer = client.get("/c/finished/figures/discovery")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


# paths


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/c/../etc/passwd", "/static/x/../../server.py", "/static/x/..%2f..%2fserver.py",
        "/static/x/%2e%2e/%2e%2e/app.py", "/c/finished/../../etc/passwd", "/c/..%2f..%2fetc/", "/c/%2e%2e/",
        "/c/finished/findings/..%2f..%2fcampaign/stored.png", "/c/finished/findings/1/stored.sqlite",
        "/c/finished/findings/1/stored.mp4%00.png", "/c/finished/findings/%00/stored.png", "//etc/passwd",
        "/c/finished/figures/..%2f..%2fcampaign.sqlite", "/c//", "/c/finished%2f/", "/static/x/style.css/..",
        "/c/finished/findings/-1", "/c/finished/findings/1e3", "/c/finished/findings/" + "9" * 30,
    ],
)  # fmt: skip
def test_no_path_leads_elsewhere(client, path):
    host = f"{client.base_url.host}:{client.base_url.port}"
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    answer = said_on((client.base_url.host, client.base_url.port), request.encode())
    assert answer.split(b" ")[1] in (b"404", b"400", b"503")
    assert b"root:" not in answer
    assert b"SQLite format" not in answer
    assert b"import " not in answer.partition(b"\r\n\r\n")[2].replace(b"important", b"")


@pytest.mark.parametrize(
    "what", ["film", "folder of films", "campaign file", "triage", "folder of the campaign"]
)
def test_links_out_of_the_campaign_are_not_followed(tmp_path, what):
    shared = tmp_path / "shared"
    folder = write_campaign(shared / "c", 300)
    write_campaign(shared / "d", 0)
    other = write_campaign(tmp_path / "secret" / "other", 300, seed=5)
    (tmp_path / "secret" / "1.mp4").write_text(SECRET)
    (tmp_path / "secret" / "triage.json").write_text(json.dumps({"instance": SECRET}))
    if what == "film":
        (folder / "findings").mkdir()
        (folder / "findings" / "1.mp4").symlink_to(tmp_path / "secret" / "1.mp4")
    elif what == "folder of films":
        (folder / "findings").symlink_to(tmp_path / "secret")
    elif what == "triage":
        (folder / "triage.json").symlink_to(tmp_path / "secret" / "triage.json")
    elif what == "campaign file":
        (folder / "campaign.sqlite").unlink()
        (folder / "campaign.sqlite").symlink_to(other / "campaign.sqlite")
    else:
        (shared / "e").symlink_to(other)
    instance = CampaignReader(other).about["instance"]
    with serving(shared) as server, client_of(server) as client:
        for address in ("/", "/compare", "/c/c/", "/c/e/", "/c/c/findings", "/c/c/findings/1", "/c/c/modes"):
            page = client.get(address).text
            assert SECRET not in page
            assert instance not in page
        assert SECRET not in client.get("/c/c/findings/1/stored.mp4").text
        assert client.get("/c/e/").status_code == 404


def test_pipe_in_place_of_a_film_is_not_waited_for(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    (folder / "findings").mkdir()
    os.mkfifo(folder / "findings" / "1.mp4")
    with serving(folder) as server, client_of(server) as client:
        assert client.get("/c/c/findings/1/stored.mp4").status_code == 503
        assert client.get("/c/c/findings/1").status_code == 200


# who may ask


def test_token_is_asked_for_and_kept_as_a_cookie(finished):
    with serving(finished, token=TOKEN) as server, client_of(server) as client:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "policyfuzz_token=wrong"}):
            for address in ("/", "/c/finished/findings", "/events", "/static/x/page.js", "/?token=wrong"):
                answer = client.get(address, headers=headers)
                assert answer.status_code == 401
                assert "finished" not in answer.text
                assert TOKEN not in answer.text
        assert client.get("/c/finished/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        opened = client.get(f"/c/finished/findings?show=all&token={TOKEN}")
        assert opened.status_code == 303
        assert opened.headers["location"] == "/c/finished/findings?show=all"
        assert "HttpOnly" in opened.headers["set-cookie"]
        assert "SameSite=Strict" in opened.headers["set-cookie"]
        assert client.get("/c/finished/").status_code == 200


def test_token_never_sends_a_browser_elsewhere(finished):
    with serving(finished, token=TOKEN) as server, client_of(server) as client:
        request = (
            f"GET //elsewhere.example/?token={TOKEN} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        answer = said_on(place_of(server), request.encode())
        assert b"location: /elsewhere.example/\r\n" in answer
        assert client.get("/").status_code == 401


def test_token_that_nobody_asked_for_is_not_kept(client):
    answer = client.get("/c/finished/?token=planted%0d%0aset-cookie:x=y")
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers


def test_other_address_than_loopback_makes_a_token(finished):
    with serving(finished, host="0.0.0.0") as server:
        address = httpx.URL(server.address)
        assert len(address.params["token"]) >= 32
        with httpx.Client(base_url=f"http://127.0.0.1:{address.port}", timeout=60) as client:
            assert client.get("/c/finished/").status_code == 401
            assert client.get("/c/finished/", params={"token": address.params["token"]}).status_code == 303
            assert client.get("/c/finished/").status_code == 200


@pytest.mark.parametrize("host", OTHERS)
def test_other_host_is_refused(client, host):
    answer = client.get("/c/finished/", headers={"host": host})
    assert answer.status_code == 421
    assert "finding" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:1", "[::1]:5"])
def test_names_of_loopback_are_ours_whatever_the_port(client, host):
    assert client.get("/c/finished/", headers={"host": host}).status_code == 200


def test_host_can_be_allowed(finished):
    with serving(finished, allowed_hosts=("fuzz.example",)) as server, client_of(server) as client:
        assert client.get("/c/finished/", headers={"host": "fuzz.example"}).status_code == 200
        assert client.get("/c/finished/", headers={"host": "x.example"}).status_code == 421


def test_requests_without_or_with_two_hosts_are_refused(client):
    place = client.base_url.host, client.base_url.port
    for head in ("GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n"):
        assert said_on(place, head.encode()).split(b" ")[1] in (b"400", b"421")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_other_sites_may_not_read(client, headers):
    assert client.get("/c/finished/figures/discovery", headers=headers).status_code == 403


def test_link_from_another_site_may_be_followed(client):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/c/finished/", headers=headers).status_code == 200


def test_form_on_another_site_cannot_make_films(finished):
    with serving(finished, allow_replay=True) as server, client_of(server) as client:
        address = "/c/finished/findings/1/film"
        assert client.post(address).status_code == 403
        assert (
            client.post(address, headers={"origin": "http://evil.example", "x-policyfuzz": "1"}).status_code
            == 403
        )
        assert client.get("/c/finished/findings/1/episode").status_code == 404  # nothing was asked for


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client.request(method, "/c/finished/").status_code == 405


# how much and how slowly


def test_large_requests_are_refused(client):
    assert client.post("/", content=b"x" * 5000).status_code == 413
    assert client.post("/", content=iter([b"x"] * 10)).status_code == 413
    assert client.get("/?" + "x" * 5000).status_code == 414
    place = client.base_url.host, client.base_url.port
    endless = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: x\r\n" % one for one in range(4000))
    assert said_on(place, endless).startswith(b"HTTP/1.1 400")
    assert client.get("/c/finished/").status_code == 200


@pytest.mark.parametrize(
    "nonsense",
    [b"\x00\xff\x16\x03\x01" * 50 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nno header\r\n\r\n"],
)
def test_nonsense_is_answered_and_forgotten(client, nonsense):
    place = client.base_url.host, client.base_url.port
    assert said_on(place, nonsense).startswith(b"HTTP/1.1 400")
    assert client.get("/c/finished/").status_code == 200


def test_client_that_never_finishes_its_request_is_dropped(finished, monkeypatch):
    monkeypatch.setattr(connections, "_HEAD_SECONDS", 0.3)
    with serving(finished) as server, client_of(server) as client:
        with socket.create_connection(place_of(server), timeout=60) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: local")
            assert slow.recv(100) == b""
        assert client.get("/c/finished/").status_code == 200


def test_client_that_does_not_take_its_answer_is_dropped(finished, monkeypatch):
    monkeypatch.setattr(connections, "_STALL_SECONDS", 0.3)
    with serving(finished) as server, client_of(server) as client:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            slow.connect(place_of(server))
            slow.settimeout(60)
            one = b"GET /c/finished/figures/maps HTTP/1.1\r\nHost: localhost\r\n\r\n"
            slow.sendall(one * 200)
            wait_until(lambda: server.connections == 1)
            wait_until(lambda: server.connections == 0)
        assert client.get("/c/finished/").status_code == 200


@pytest.mark.slow
def test_a_thousand_connections_do_no_harm(finished):
    with serving(finished) as server, client_of(server) as client:
        many = []
        try:
            for _ in range(1000):
                one = socket.socket()
                one.settimeout(60)
                one.connect(place_of(server))
                many.append(one)
            last = many[-1]
            wait_until(lambda: server.connections <= connections.MOST_CONNECTIONS + 1)
            assert last.recv(100).startswith(b"HTTP/1.1 503")
        finally:
            for one in many:
                one.close()
        wait_until(lambda: server.connections == 0)
        assert client.get("/c/finished/").status_code == 200


def test_few_may_watch_at_a_time(finished, monkeypatch):
    from policyfuzz.web import app

    monkeypatch.setattr(app, "MOST_WATCHERS", 1)
    with serving(finished) as server, client_of(server) as client:
        with client.stream("GET", "/events") as first:
            next(first.iter_lines())
            assert client.get("/events").status_code == 503
        assert client.get("/c/finished/").status_code == 200


# campaigns that go away


@pytest.mark.slow
def test_campaign_that_is_deleted_and_replaced_under_the_page(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    with serving(folder) as server, client_of(server) as client:
        with client.stream("GET", "/events?campaign=c") as events:
            lines = events.iter_lines()
            first = next_news(lines)["c"]
            assert first["texts"]["executions"] == "300"
            shutil.rmtree(folder)
            assert next_news(lines)["c"]["state"] == "gone"
            for address in ("/c/c/", "/c/c/findings", "/c/c/findings/1", "/c/c/map"):
                answer = client.get(address)
                assert answer.status_code == 503
                assert "This cannot be shown at the moment" in answer.text
            assert client.get("/c/c/figures/maps").status_code == 503
            write_campaign(folder, 600, seed=3)
            news = next_news(lines)["c"]
            while news["state"] == "gone":  # it is being made
                news = next_news(lines)["c"]
            assert news["instance"] != first["instance"]
        assert client.get("/c/c/").status_code == 200


@pytest.mark.parametrize("damage", [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_damaged_campaign_gets_a_kind_page_and_the_others_go_on(finished, tmp_path, damage):
    folder = write_campaign(tmp_path / "c", 300)
    with serving(finished, folder) as server, client_of(server) as client:
        for path in folder.glob("campaign.sqlite*"):
            path.unlink()
        (folder / "campaign.sqlite").write_bytes(damage)
        assert client.get("/c/c/").status_code == 503
        assert client.get("/").status_code == 200
        assert client.get("/compare").status_code == 200
        assert client.get("/c/finished/").status_code == 200


def test_damaged_triage_gets_a_kind_page(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    (folder / "triage.json").write_text('{"instance": 7}')
    with serving(folder) as server, client_of(server) as client:
        answer = client.get("/c/c/modes")
        assert answer.status_code == 503
        assert "run policyfuzz triage again" in answer.text
        assert client.get("/c/c/workers").status_code == 200


@pytest.mark.slow
def test_campaign_that_names_code_is_not_replayed_without_trust(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    store = CampaignWriter(folder)
    mark = tmp_path / "was-run"
    config = replace(store.config, target=f"os:system:command=touch {mark}")
    store.note("config", config.to_json())
    store.close()
    with serving(folder, allow_replay=True) as server, client_of(server) as client:
        address = "/c/c/findings/1"
        assert client.post(f"{address}/film", headers={"x-policyfuzz": "1"}).status_code == 202
        wait_until(lambda: client.get(f"{address}/episode").json()["state"] == "failed")
        told = client.get(f"{address}/episode").json()
        assert "names code to run" in told["problem"]
        assert "os:system" in client.get(address).text
    assert not mark.exists()


def next_news(lines):
    """The next event of a stream."""
    return json.loads(next(line for line in lines if line.startswith("data: "))[6:])
