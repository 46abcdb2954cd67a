import sys

import pytest

import policyfuzz as pf
from policyfuzz.api.monitor import subject_of
from policyfuzz.core.errors import CampaignError
from policyfuzz.execution.executor import choose_executor

MODULE = """
from policyfuzz import load_target

def make():
    return load_target("ripple:dimensions=2,probability=0.3")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A campaign on a target that is code in a file of the user's."""
    monkeypatch.delenv("POLICYFUZZ_TRUST", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "target_of_test_monitor.py").write_text(MODULE)
    name = f"{tmp_path / 'target_of_test_monitor.py'}:make"
    return pf.fuzz(name, max_execs=200, out=tmp_path / "c", progress=False, force=True).folder


def test_a_result_that_was_opened_with_trust_is_trusted(folder):
    opened = pf.open_result(folder, trust=True)

    target, campaigns = subject_of([opened], False, choose_executor())

    assert target.name.endswith("target_of_test_monitor.py:make")
    assert [one.folder for one in campaigns] == [folder]


def test_a_folder_is_not_trusted_by_itself(folder):
    with pytest.raises(CampaignError, match="--trust"):
        subject_of([folder], False, choose_executor())
