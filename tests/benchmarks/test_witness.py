import json

import pytest


@pytest.mark.slow
def test_witnesses_of_a_campaign_are_run_again(bench):
    code, out, _ = bench("witness", "--target", "acasxu", "--episodes", 4000, "--findings", 4, "--json")
    lines = {line["what"].removeprefix("acasxu: "): line for line in json.loads(out)}
    assert code in (0, 1), "few findings may miss a median"
    assert lines["witnesses that replay"]["ratio"] == 1
    assert lines["and survive three times the horizon"]["ratio"] == 1
    assert "points of no return equal to a full sweep" in lines


def test_a_campaign_without_findings_says_so(bench):
    code, out, _ = bench("witness", "--target", "acasxu", "--episodes", 100, "--json")
    assert (code, json.loads(out)[0]["value"]) == (0, 0)


def test_findings_of_one_campaign_need_one_target(bench, tmp_path):
    code, _, talk = bench("witness", "--campaign", tmp_path)
    assert code == 2
    assert "exactly one --target" in talk
