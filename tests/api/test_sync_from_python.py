import pytest

import policyfuzz
from policyfuzz.core.errors import UsageError

RIPPLE = "ripple:dimensions=3,probability=0.01,regions=2"


def run(tmp_path, **options):
    return policyfuzz.fuzz(
        RIPPLE, sync=tmp_path / "shared", progress=False, **({"max_execs": 3000} | options)
    )


def test_instances_in_python_take_what_others_found(tmp_path):
    first, second = run(tmp_path), run(tmp_path)
    assert (first.folder.parent, second.folder.parent) == (tmp_path / "shared", tmp_path / "shared")
    assert second.summary["imported_findings"] > 0
    assert second.summary["seed"] == 1
    assert {row["origin"] for row in second.rows()} == {None, first.folder.name}


def test_instance_is_resumed_by_its_name(tmp_path):
    run(tmp_path, out="mine")
    result = run(tmp_path, out="mine", resume=True, max_execs=4000)
    assert result.folder == tmp_path / "shared" / "mine"
    assert result.progress.executions == 4000


def test_callback_hears_of_every_sync(tmp_path):
    heard = []
    run(tmp_path)
    run(tmp_path, callbacks=heard.append)
    events = [event for event in heard if isinstance(event, policyfuzz.Synced)]
    assert events[0].instances == [next((tmp_path / "shared").glob("*-0")).name]
    assert events[0].queued > 0


@pytest.mark.parametrize("out", ["a/b", "../mine", "/elsewhere"])
def test_folder_that_is_not_in_the_shared_one_is_refused(tmp_path, out):
    with pytest.raises(UsageError, match="does not lie directly in"):
        run(tmp_path, out=out)


@pytest.mark.parametrize("out", [".", ".."])
def test_shared_folder_itself_cannot_be_the_campaign(tmp_path, out):
    with pytest.raises(UsageError, match="does not lie directly in"):
        run(tmp_path, out=out)
