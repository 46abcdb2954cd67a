import json
import shutil

import pytest


@pytest.fixture
def folder(campaign, tmp_path):
    """A copy of a finished campaign, beside which results may be written."""
    return shutil.copytree(campaign, tmp_path / "copied")


def test_coverage_prints_numbers_and_draws(cli, folder, tmp_path):
    code, out, _ = cli("coverage", folder, "-o", tmp_path / "c.png", "--most", 200)
    assert code == 0
    assert "portfolio" not in out  # a single campaign goes by its folder
    assert all(
        word in out for word in ("copied", "random sampling", "reference behaviours", "--every-episode")
    )
    assert (tmp_path / "c.png").is_file()
    assert (folder / "coverage.json").is_file()


def test_coverage_prints_json(cli, folder):
    code, out, _ = cli("coverage", folder, "--most", 200, "--json", "--every-episode")
    page = json.loads(out)
    assert code == 0
    assert page["is_every_episode"]
    assert page["episodes"] == page["campaigns"][0]["curve"]["episodes"][-1] == 2000
    assert page["campaigns"][0]["used"] <= 200


def test_activations_print_numbers_and_draw(cli, folder, tmp_path):
    code, out, _ = cli("activations", folder, "--method", "pca", "--episodes", 40, "-o", tmp_path / "a.png")
    assert code == 0
    assert "observations only" in out
    assert "crash / near miss" in out
    assert (tmp_path / "a.png").is_file()
    assert (folder / "activations.json").is_file()


def test_activations_print_json(cli, folder):
    code, out, _ = cli("activations", folder, "--method", "pca", "--episodes", 40, "--json")
    assert code == 0
    assert json.loads(out)["of"] == "observations"


@pytest.mark.parametrize("verb", ["coverage", "activations"])
def test_a_picture_is_a_png(cli, folder, verb):
    code, _, err = cli(verb, folder, "-o", "picture.pdf")
    assert code == 2
    assert "ends in .png" in err


@pytest.mark.parametrize("verb", ["coverage", "activations"])
def test_a_link_beside_the_campaign_is_refused_before_anything_is_run(cli, folder, verb, tmp_path):
    (folder / f"{verb}.json").symlink_to(tmp_path / "elsewhere")
    code, _, err = cli(verb, folder)
    assert code == 2
    assert "is a link" in err


@pytest.mark.parametrize("verb", ["coverage", "activations"])
def test_no_campaign_is_said_kindly(cli, tmp_path, verb):
    code, _, err = cli(verb, tmp_path / "nothing")
    assert code == 2
    assert "does not exist" in err
