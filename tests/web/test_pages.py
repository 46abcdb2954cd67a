import json
import shutil

import pytest

from policyfuzz import CampaignReader, estimate
from policyfuzz.store.triage_file import FindingTriage, add_to_triage
from policyfuzz.store.triage_records import Avoidance, Boundary, Mode, Modes
from tests.web.serving import TARGET, client_of, serving, write_campaign, write_comparison

TABS = ("", "modes", "findings", "map", "coverage", "errors", "workers", "estimate", "policies")


def instance_of(folder):
    return CampaignReader(folder).about["instance"]


@pytest.mark.parametrize("tab", TABS)
def test_every_page_opens_on_a_finished_and_on_an_empty_campaign(finished, empty, tab):
    with serving(finished, empty) as server, client_of(server) as client:
        for name in ("finished", "empty"):
            answer = client.get(f"/c/{name}/{tab}")
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/html")


def test_only_campaign_opens_at_once(client):
    answer = client.get("/")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/c/finished/"


def test_several_campaigns_are_listed_and_compared(finished, empty):
    with serving(finished, empty) as server, client_of(server) as client:
        for address in ("/", "/compare"):
            assert all(f'href="/c/{name}/"' in client.get(address).text for name in ("finished", "empty"))


def test_instances_of_a_sync_folder_are_listed_as_they_appear(tmp_path):
    write_campaign(tmp_path / "shared" / "main", 300)
    with serving(tmp_path / "shared") as server, client_of(server) as client:
        assert "secondary" not in client.get("/").text
        write_campaign(tmp_path / "shared" / "secondary", 300, seed=1)
        assert 'href="/c/secondary/"' in client.get("/").text
        assert client.get("/c/secondary/findings").status_code == 200


def test_campaigns_of_one_name_have_addresses_of_their_own(tmp_path):
    folders = [write_campaign(tmp_path / place / "same", 0) for place in "ab"]
    with serving(*folders) as server, client_of(server) as client:
        page = client.get("/").text
        addresses = {part.partition('"')[0] for part in page.split('href="/c/')[1:]}
        assert len(addresses) == 2
        assert {client.get(f"/c/{one}").status_code for one in addresses} == {200}


def test_copied_campaign_that_may_not_be_written_is_shown(finished, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy, ignore=shutil.ignore_patterns("*-shm", "*-wal"))
    copy.chmod(0o555)
    try:
        with serving(copy) as server, client_of(server) as client:
            assert client.get("/c/copy/findings").status_code == 200
    finally:
        copy.chmod(0o755)


def test_pages_write_nothing_into_the_campaign(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    before = (folder / "campaign.sqlite").read_bytes()
    with serving(folder) as server, client_of(server) as client:
        for tab in TABS:
            client.get(f"/c/c/{tab}")
        client.get("/c/c/figures/maps")
    assert (folder / "campaign.sqlite").read_bytes() == before
    extra = {"campaign.sqlite-shm", "campaign.sqlite-wal"}  # of SQLite, which every reader makes
    assert {path.name for path in folder.iterdir()} <= {"campaign.sqlite", "writer.lock", *extra}


def test_figures_are_json_without_numbers_that_json_does_not_know(client):
    for what in ("discovery", "maps", "histograms"):
        answer = client.get(f"/c/finished/figures/{what}")
        assert answer.headers["content-type"] == "application/json"
        assert json.loads(answer.text, parse_constant=pytest.fail)


def test_figure_follows_a_campaign_that_goes_on(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    with serving(folder) as server, client_of(server) as client:
        before = client.get("/c/c/figures/discovery").json()["episodes"][-1]
        shutil.rmtree(folder)
        write_campaign(folder, 600)
        assert client.get("/c/c/figures/discovery").json()["episodes"][-1] > before


def test_modes_and_what_triage_knows_are_shown(tmp_path):
    folder = write_campaign(tmp_path / "c", 1000)
    finding = CampaignReader(folder).findings(distinct_only=True)[0]
    number, passing = finding.id, tuple((finding.input * 0.5).tolist())
    mode = Mode(
        1, "caught", number, (number,), 1, 0.25, words="left of the wall", robustness=0.5, neighbours=8
    )
    known = FindingTriage(
        avoidance=Avoidance("witness", 7, words="brake from step 2 on", standing="decided", last_chance=2),
        boundary=Boundary(passing, passing, 0.125, 0.01, (), (), 40),
    )
    add_to_triage(folder, instance_of(folder), {number: known}, Modes((mode,), True, 1.0, 1, 0, 0))
    with serving(folder) as server, client_of(server) as client:
        modes, one = client.get("/c/c/modes").text, client.get(f"/c/c/findings/{number}").text
        assert "left of the wall" in modes
        assert "left of the wall" in client.get("/c/c/").text
        for text in ("brake from step 2 on", "last chance at step 2", "0.125 in the unit cube"):
            assert text in one
        listed = client.get("/c/c/findings?mode=1&show=all").text
        assert f'findings/{number}"' in listed
        assert "1 to 1 of 1" in listed


def test_comparisons_beside_the_campaign_are_shown(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    write_comparison(folder, "compare-new.json")
    (folder / "compare-running.json").touch()
    with serving(folder) as server, client_of(server) as client:
        page = client.get("/c/c/policies").text
        assert "B is worse" in page
        assert "compare-running.json" in page
        assert "has not come to its end" in page
        (folder / "compare-new.json").write_text("no")
        assert "B is worse" not in client.get("/c/c/policies").text


def test_estimate_that_can_go_on_is_shown(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    estimate(TARGET, max_execs=600, out=folder / "estimate.npz", force=True)
    with serving(folder) as server, client_of(server) as client:
        assert "plain sampling, 600 episodes" in client.get("/c/c/estimate").text


@pytest.mark.parametrize("name", ["estimate.json", "estimate.npz"])
def test_damaged_estimate_is_told_and_hurts_no_other_page(tmp_path, name):
    folder = write_campaign(tmp_path / "c", 300)
    (folder / name).write_text("no")
    with serving(folder) as server, client_of(server) as client:
        assert client.get("/c/c/").status_code == 200
        assert f"{name}: " in client.get("/c/c/estimate").text


def test_estimate_that_is_being_printed_is_no_damage(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    (folder / "estimate.json").touch()
    with serving(folder) as server, client_of(server) as client:
        assert "No estimate of this target" in client.get("/c/c/estimate").text


def test_finding_shows_its_input_beside_its_parent_and_a_usual_one(finished, client):
    found = next(one for one in CampaignReader(finished).findings() if one.parent is not None)
    page = client.get(f"/c/finished/findings/{found.id}").text
    assert f"seed {found.parent:,}" in page
    assert "a random draw that passes" in page


def test_without_allow_replay_nothing_is_run_and_the_command_is_shown(finished, client):
    page = client.get("/c/finished/findings/1").text
    assert f"policyfuzz replay {finished} 1" in page
    assert "data-film-button" not in page
    asked = client.post("/c/finished/findings/1/film", headers={"x-policyfuzz": "1"})
    assert asked.status_code == 403
    assert "--allow-replay" in asked.json()["problem"]


@pytest.mark.parametrize("address", ["finished/findings/999999", "finished/findings/0", "other/", "../x"])
def test_what_is_not_there_gets_a_kind_page(client, address):
    answer = client.get(f"/c/{address}")
    assert answer.status_code == 404
    assert "<h1>This is not here</h1>" in answer.text


def test_stored_film_is_served_whole_and_in_parts(tmp_path):
    folder = write_campaign(tmp_path / "c", 300)
    (folder / "findings").mkdir()
    (folder / "findings" / "1.mp4").write_bytes(bytes(range(200)))
    with serving(folder) as server, client_of(server) as client:
        assert "stored.mp4" in client.get("/c/c/findings/1").text
        whole = client.get("/c/c/findings/1/stored.mp4")
        assert (whole.status_code, whole.content) == (200, bytes(range(200)))
        assert whole.headers["content-type"] == "video/mp4"
        part = client.get("/c/c/findings/1/stored.mp4", headers={"range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, bytes(range(10, 20)))
        assert part.headers["content-range"] == "bytes 10-19/200"
