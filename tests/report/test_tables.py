import csv
import json

import numpy as np
import pytest

from policyfuzz.core.errors import CampaignError
from policyfuzz.report.tables import Table, write_table

COLUMNS = ["id", "status", "speed [ft/s]", "parent"]
ROWS = [[1, "confirmed", 12.5, None], [2, "flaky", -0.1, 7]]


def table(columns=COLUMNS, rows=ROWS):
    return Table(list(columns), (list(row) for row in rows), len(rows))


def test_csv_has_a_header_and_exact_numbers(tmp_path):
    assert write_table(table(), "csv", tmp_path / "t.csv") == 2
    with (tmp_path / "t.csv").open(newline="") as file:
        read = list(csv.reader(file))
    assert read == [COLUMNS, ["1", "confirmed", "12.5", ""], ["2", "flaky", "-0.1", "7"]]


def test_json_has_one_object_per_row(tmp_path):
    assert write_table(table(), "json", tmp_path / "t.json") == 2
    read = json.loads((tmp_path / "t.json").read_text())
    assert read == [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]


def test_npz_has_one_array_per_column(tmp_path):
    assert write_table(table(), "npz", tmp_path / "t.npz") == 2
    with np.load(tmp_path / "t.npz") as read:
        assert sorted(read) == sorted(COLUMNS)
        assert read["id"].dtype == np.int64
        assert read["status"].tolist() == ["confirmed", "flaky"]
        np.testing.assert_array_equal(read["speed [ft/s]"], [12.5, -0.1])
        np.testing.assert_array_equal(read["parent"], [np.nan, 7.0])


@pytest.mark.parametrize("form", ["csv", "json", "npz"])
def test_table_is_written_when_it_has_no_rows(tmp_path, form):
    assert write_table(table(rows=[]), form, tmp_path / "t") == 0
    assert (tmp_path / "t").stat().st_size > 0


def test_npz_has_all_columns_when_one_is_called_file(tmp_path):
    write_table(table(["id", "file"], [[1, 2.5]]), "npz", tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as read:
        assert read["file"].tolist() == [2.5]


@pytest.mark.parametrize("form", ["csv", "json", "npz"])
def test_the_place_is_named_when_it_cannot_be_written(tmp_path, form):
    with pytest.raises(CampaignError, match="cannot write"):
        write_table(table(), form, tmp_path / "no such folder" / "t")
