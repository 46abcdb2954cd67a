import json

import pytest

from benchmarks import table
from benchmarks.__main__ import BENCHMARKS
from benchmarks.measurement import Measurement
from benchmarks.speed import startup
from policyfuzz.cli.main import exit_code as policyfuzz_exit_code
from policyfuzz.core.errors import MissingExtra


def test_table_counts_what_a_campaign_gave(bench):
    code, out, _ = bench("table", "--episodes", 600, "--target", "acasxu", "--json")
    (row,) = json.loads(out)
    assert code == 0
    assert row["published"]["mutations"] == 161_543
    assert 0 < row["mutations"] <= 600 - 120, "a fifth of the episodes are seeds"
    assert row["distinct"] <= row["crashes"]
    assert 0 < row["fuzzer_share"] < 1


def test_table_tests_another_model_of_a_target(bench, monkeypatch):
    loaded = []

    def load(name, policy):
        loaded.append((name, policy))
        raise MissingExtra("onnx", "pip install 'policyfuzz[onnx]'")

    monkeypatch.setattr(table, "load_target", load)
    assert bench("table", "--target", "acasxu", "--policy", "acasxu=acasxu:their/networks")[0] == 0
    assert loaded == [("acasxu", "acasxu:their/networks")]
    assert bench("table", "--policy", "acasxu:their/networks")[0] == 2
    assert bench("table", "--policy", "acasux=x")[0] == 2


def test_table_says_what_to_install_where_a_target_cannot_run(bench, monkeypatch):
    def missing(_name, _policy):
        raise MissingExtra("gymnasium", "pip install 'policyfuzz[bipedal]'")

    monkeypatch.setattr(table, "load_target", missing)
    code, out, _ = bench("table", "--target", "bipedal")
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
        (["density", "--episodes", "100"], "No such option"),
        (["--lst"], "No such option"),
    ],
)
def test_bench_refuses_what_makes_no_sense(bench, arguments, complaint):
    code, _, err = bench(*arguments)
    assert code == 2
    assert complaint in err


def test_list_names_every_benchmark(bench):
    code, out, _ = bench("--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_a_help(bench, name):
    code, out, _ = bench(name, "--help")
    assert code == 0
    assert f"Usage: python -m benchmarks {name} [OPTIONS]" in out


def test_measurements_are_printed_as_json_or_as_a_table(bench, monkeypatch):
    monkeypatch.setattr(startup, "run", lambda _track: [Measurement("import", 3.0, "ms", is_met=False)])
    code, out, _ = bench("startup", "--json")
    assert code == 1, "a goal is missed"
    assert [line["value"] for line in json.loads(out)] == [3.0]
    code, out, _ = bench("startup")
    assert "import" in out
    assert "missed" in out


def test_installed_command_says_where_benchmarks_are(capsys):
    assert policyfuzz_exit_code(["bench", "density"]) == 2
    assert "python -m benchmarks --list" in capsys.readouterr().err
