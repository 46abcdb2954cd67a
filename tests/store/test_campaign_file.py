import json
import shutil
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import Angle, CampaignConfig, CampaignReader, CampaignWriter, InputSpace, Integer, Real
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.settings import CampaignConfig as Config
from policyfuzz.core.settings import SearchSettings
from policyfuzz.store.database import FILE_NAME, picture_file
from policyfuzz.store.records import BatchRecord, Progress

sys.path.insert(0, str(Path(__file__).parent))
from example_findings import a_finding

SPACE = InputSpace((Real("speed", 0, 9, unit="ft/s"), Angle("return"), Integer('odd "name"', 0, 5)))


@pytest.fixture
def store(tmp_path):
    store = CampaignWriter.create(tmp_path / "campaign", CampaignConfig("ripple"), SPACE)
    yield store
    store.close()


def test_finding_reads_back_as_it_was_written(store):
    store.commit(BatchRecord(Progress(batch=1, executions=10), findings=[a_finding(1), a_finding(2)]))
    read = store.findings()
    assert [finding.id for finding in read] == [1, 2]
    for got, expected in zip(read, (a_finding(1), a_finding(2)), strict=True):
        np.testing.assert_array_equal(got.input, expected.input)
        assert got.case_seed == expected.case_seed
        assert got.parent is None


def test_state_reads_back_with_shape_and_type(store):
    state = {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "b": np.empty((0, 4)), "c": np.array([np.nan])}
    store.commit(BatchRecord(Progress(batch=1), state=state))
    read = store.state()
    for name, array in state.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype


def test_failed_batch_leaves_nothing_behind(store):
    store.commit(BatchRecord(Progress(batch=1), findings=[a_finding(1)]))
    with pytest.raises(CampaignError, match="cannot write"):
        store.commit(BatchRecord(Progress(batch=2), findings=[a_finding(2), a_finding(1)]))
    assert store.progress().batch == 1
    assert [finding.id for finding in store.findings()] == [1]


def test_file_is_plain_sqlite_with_dimensions_as_columns(store):
    store.commit(BatchRecord(Progress(batch=1), findings=[a_finding()]))
    with closing(sqlite3.connect(store.folder / FILE_NAME)) as connection:
        speed, heading = connection.execute('SELECT speed, "input_return" FROM findings').fetchone()
    assert (speed, heading) == (1.1, np.pi)


def test_every_dimension_has_a_column_of_its_own(tmp_path):
    names = ("return", "input_return", "input_input_return", "id")
    space = InputSpace(tuple(Real(name, 0, 1) for name in names))
    store = CampaignWriter.create(tmp_path / "c", CampaignConfig("ripple"), space)
    row = np.array([0.1, 0.2, 0.3, 0.4])
    store.commit(BatchRecord(Progress(batch=1), findings=[replace(a_finding(), input=row)]))
    np.testing.assert_array_equal(store.findings()[0].input, row)
    store.close()


def test_finding_with_nan_return_reads_back(store):
    store.commit(BatchRecord(Progress(batch=1), findings=[replace(a_finding(), episode_return=np.nan)]))
    assert np.isnan(store.finding(1).episode_return)


def test_reader_that_was_opened_before_the_stop_knows_its_reason(store):
    with closing(CampaignReader(store.folder)) as reader:
        assert reader.stop_reason() is None
        store.set_stop_reason("max-execs")
        assert reader.stop_reason() == "max-execs"


def test_second_writer_is_refused_while_the_first_is_open(store):
    with pytest.raises(CampaignError, match="another process is writing"):
        CampaignWriter(store.folder)


def test_reader_reads_while_the_writer_is_open(store):
    store.commit(BatchRecord(Progress(batch=1, executions=5)))
    assert CampaignReader(store.folder).progress().executions == 5


def test_writer_is_free_again_after_close(store):
    store.close()
    CampaignWriter(store.folder).close()


def test_new_campaign_is_refused_where_one_exists(store):
    store.close()
    with pytest.raises(CampaignError, match="already holds a campaign"):
        CampaignWriter.create(store.folder, CampaignConfig("ripple"), SPACE)


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100])
def test_foreign_file_is_refused(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(CampaignError):
        CampaignReader(tmp_path)


def test_other_sqlite_file_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    with pytest.raises(CampaignError, match="not written by policyfuzz"):
        CampaignReader(tmp_path)


def test_truncated_file_is_refused_or_read_without_a_crash(store):
    store.commit(BatchRecord(Progress(batch=1), findings=[a_finding(n) for n in range(1, 500)]))
    store.close()
    path = store.folder / FILE_NAME
    whole = path.read_bytes()
    for size in range(0, len(whole), 4096):
        path.write_bytes(whole[:size])
        with pytest.raises(CampaignError), closing(CampaignReader(store.folder)) as damaged:
            damaged.findings()


def test_config_survives_the_round_trip_through_text():
    config = Config(
        "acasxu", policy="acasxu:x", seed=3, search=SearchSettings(samples=7, sensitivity="exact")
    )
    assert Config.from_json(config.to_json()) == config


def test_config_of_an_earlier_version_keeps_its_mean_freshness():
    values = json.loads(Config("acasxu", strategy="mdpfuzz").to_json())
    del values["search"]["freshness"]["score"]
    assert Config.from_json(json.dumps(values)).search.freshness.score == "mean"


def test_differences_name_what_changed():
    changed = Config("acasxu", search=SearchSettings(samples=8)).differences(Config("acasxu", seed=1))
    assert changed == ["seed was 0, now 1", "search.samples was 8, now 1000"]


def test_writer_notices_that_its_folder_was_removed(store):
    store.commit(BatchRecord(Progress(batch=1)))
    shutil.rmtree(store.folder)
    with pytest.raises(CampaignError, match="was removed or replaced while the campaign ran"):
        store.commit(BatchRecord(Progress(batch=2)))
    assert not store.folder.exists()


def test_writer_notices_that_its_file_was_replaced(store, tmp_path):
    other = CampaignWriter.create(tmp_path / "other", CampaignConfig("ripple"), SPACE)
    other.close()
    (tmp_path / "other" / FILE_NAME).replace(store.folder / FILE_NAME)
    with pytest.raises(CampaignError, match="was removed or replaced"):
        store.commit(BatchRecord(Progress(batch=1)))
    store.close_or_discard()
    assert CampaignReader(store.folder).progress().batch == 0, "the file of somebody else stays"


def test_writer_does_not_follow_a_link(store, tmp_path):
    store.close()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / FILE_NAME).symlink_to(store.folder / FILE_NAME)
    with pytest.raises(CampaignError, match="is a link"):
        CampaignWriter(tmp_path / "linked")


def test_picture_does_not_go_through_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "c").mkdir()
    assert picture_file(tmp_path / "c", "1.png") == tmp_path / "c" / "findings" / "1.png"
    (tmp_path / "c" / "findings").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CampaignError, match="is a link"):
        picture_file(tmp_path / "c", "1.png")
    (tmp_path / "c" / "findings").unlink()
    (tmp_path / "c" / "findings").mkdir()
    (tmp_path / "c" / "findings" / "1.png").symlink_to(tmp_path / "elsewhere" / "precious")
    with pytest.raises(CampaignError, match="is a link"):
        picture_file(tmp_path / "c", "1.png")


def test_statement_that_runs_in_circles_is_ended(store):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT COUNT(*) FROM n"
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        store._connection.execute(endless).fetchone()
