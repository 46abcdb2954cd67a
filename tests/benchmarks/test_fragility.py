import json

import pytest

pytest.importorskip("torch")


@pytest.mark.slow
def test_crashes_are_run_again_with_changed_weights(bench):
    code, out, _ = bench("fragility", "--draws", 20_000, "--copies", 2, "--seed", 3, "--json")
    lines = json.loads(out)
    assert code == 0
    crashes = int(lines[0]["baseline"].split()[0])
    assert crashes > 0
    tiny, _, large = (line["value"] for line in lines)
    assert tiny > crashes / 2, "most crashes of acasxu are regions, not luck"
    assert large < tiny, "the weights are really changed"


def test_no_share_is_printed_where_nothing_crashes(bench):
    code, out, _ = bench("fragility", "--draws", 1, "--copies", 1, "--seed", 3, "--json")
    assert code == 0
    assert {line["ratio"] for line in json.loads(out)} == {None}


def test_a_policy_that_cannot_be_written_is_refused(bench):
    code, _, talk = bench("fragility", "--target", "ripple-2")
    assert code == 2
    assert "cannot be repaired" in talk
