import json

import pytest

from policyfuzz.benchmarks import table
from policyfuzz.core.errors import MissingExtra


def test_table_counts_what_a_campaign_gave(cli):
    code, out, _ = cli("bench", "table", "--episodes", 600, "--target", "acasxu", "--json")
    (row,) = json.loads(out)
    assert code == 0
    assert row["published"]["mutations"] == 161_543
    assert 0 < row["mutations"] <= 600 - 120, "a fifth of the episodes are seeds"
    assert row["distinct"] <= row["crashes"]
    assert 0 < row["fuzzer_share"] < 1


def test_table_says_what_to_install_where_a_target_cannot_run(cli, monkeypatch):
    def missing(_name):
        raise MissingExtra("gymnasium", "pip install 'policyfuzz[bipedal]'")

    monkeypatch.setattr(table, "load_target", missing)
    code, out, _ = cli("bench", "table", "--target", "bipedal")
    assert code == 0
    assert "bipedal cannot run here: pip install 'policyfuzz[bipedal]'" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["tabel"], "did you mean 'table'?"),
        (["table", "--target", "bipedl"], "did you mean 'bipedal'?"),
        (["table", "--episodes", "3"], "expected 10 or more"),
        (["table", "--target", "acasxu", "--strategy", "mdpfuz"], "did you mean 'mdpfuzz'?"),
        (["table", "--episodes", "0"], "expected 10 or more"),
        (["density", "--episodes", "100"], "bench table does"),
        (["density", "--episodes", "0"], "bench table does"),
    ],
)
def test_bench_refuses_what_makes_no_sense(cli, arguments, complaint):
    code, _, err = cli("bench", *arguments)
    assert code == 2
    assert complaint in err
