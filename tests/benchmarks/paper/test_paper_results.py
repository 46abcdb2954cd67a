import json
from dataclasses import replace

import pytest

from benchmarks.paper import results
from benchmarks.paper.results import Identity, Result
from policyfuzz.core.errors import CampaignError

IDENTITY = Identity("inconsistent", "acasxu", "small", {"episodes": 10}, 0, "policy", "rules", "code")


def test_a_result_is_read_as_it_was_written(tmp_path):
    result = Result(IDENTITY, {"crashes": [1, 2]}, {"cpu_seconds": 0.5}, {"machine": "one"})
    result.save(tmp_path / "small" / "acasxu" / "inconsistent-0.json")
    assert results.load_all(tmp_path) == [result]


def test_a_damaged_result_is_refused_with_its_name(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text(json.dumps({"format": results.FORMAT, "identity": {}}), encoding="utf-8")
    with pytest.raises(CampaignError, match=r"broken\.json"):
        results.load(path)


def test_a_result_of_another_format_is_refused(tmp_path):
    path = tmp_path / "old.json"
    Result(IDENTITY, {}, {}).save(path)
    facts = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(facts | {"format": results.FORMAT + 1}), encoding="utf-8")
    with pytest.raises(CampaignError, match="format"):
        results.load(path)


def test_only_another_code_makes_a_result_outdated():
    assert IDENTITY.is_outdated(replace(IDENTITY, code="older"))
    assert not IDENTITY.is_outdated(IDENTITY)
    assert not IDENTITY.is_outdated(replace(IDENTITY, code="older", seed=1))


def test_differences_name_what_was_and_what_is():
    assert IDENTITY.differences(replace(IDENTITY, seed=3)) == "seed was 3, now 0"


def test_the_digest_depends_on_the_folders_of_the_code():
    assert results.code_digest(("density",)) == results.code_digest(("density",))
    assert results.code_digest(("density",)) != results.code_digest(("density", "search"))
