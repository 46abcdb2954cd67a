import json

import numpy as np
import pytest

import policyfuzz as pf
from policyfuzz.cli.main import exit_code
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.repairing.campaigns import crashes_of
from policyfuzz.repairing.states import ends_of
from policyfuzz.store.reader import CampaignReader

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repair") / "campaign"
    return pf.fuzz("acasxu", max_execs=3000, out=folder, progress=False)


def small(campaign, out, **options):
    chosen = {"rounds": 1, "budget": 400, "pool": 200, "episodes": 100, "seeds": 1} | options
    return pf.repair(campaign, out, **chosen)


def test_a_wrong_kind_of_file_is_refused_before_any_work(campaign, tmp_path):
    with pytest.raises(UsageError, match="another kind of file"):
        small(campaign, tmp_path / "new.zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["pool", "episodes", "seeds"])
def test_a_verdict_on_nothing_is_refused_before_any_work(campaign, tmp_path, name):
    with pytest.raises(UsageError, match=f"{name} is 0"):
        small(campaign, tmp_path / "new.npz", **{name: 0})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_repair_says_what_it_came_to_and_goes_on_from_its_folder(campaign, tmp_path, capsys):
    out = tmp_path / "new.npz"
    done = small(campaign, out)
    again = small(campaign, out)

    assert again.rounds == done.rounds
    assert again.verdict == done.verdict
    arguments = ["repair", str(campaign.folder), "-o", str(out), "--rounds", "1", "--budget", "400"]
    code = exit_code([*arguments, "--pool", "200", "--episodes", "100", "--seeds", "1", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert code == int(not done.holds)
    assert (told["verdict"] is None) == (done.policy is None)
    if done.policy is not None:
        assert pf.load_target("acasxu", f"acasxu:{out}").policy_sha256
    with pytest.raises(CampaignError, match="with other settings"):
        small(campaign, out, seed=1)


def test_the_repaired_networks_are_a_second_set():
    first, second = pf.load_target("acasxu"), pf.load_target("acasxu", "repaired")

    assert first.policy_uri is None
    assert second.policy_uri == "repaired"
    rng = np.random.default_rng(5)
    cases = first.inputs.sample(rng, 64)
    runs = [pf.Runner(one)(cases, np.zeros(64, np.uint64)) for one in (first, second)]
    assert (runs[0].returns != runs[1].returns).any()


def test_the_repaired_networks_avoid_most_crashes_of_the_first(campaign):
    cases = crashes_of(CampaignReader(campaign.folder))
    first, second = (
        ends_of(pf.Runner(pf.load_target("acasxu", one)), cases, 64).crashed for one in (None, "repaired")
    )

    assert len(cases)
    assert first.all()
    assert second.mean() < 0.5
