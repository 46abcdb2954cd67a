import io
import sys
import types

import pytest

import policyfuzz as pf
from policyfuzz.api import progress
from policyfuzz.store.records import Progress

RIPPLE = "ripple:dimensions=3,probability=0.01"


def test_line_tells_findings_episodes_and_speed():
    done = Progress(seconds=10.0, executions=50_000, findings=1200, distinct_findings=7)
    assert progress.progress_text(done) == "1,200 findings, 7 distinct, 50,000 episodes, 5,000/s"
    assert ", 3 errors" in progress.progress_text(Progress(errors=3))


def test_nothing_is_shown_where_nobody_looks(capsys):
    pf.fuzz(RIPPLE, max_execs=300)
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("limits", [{"max_execs": 600}, {}])
def test_terminal_gets_a_bar(monkeypatch, limits):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "160")

    def stop(event):
        if isinstance(event, pf.BatchDone) and event.progress.batch == 5:
            raise pf.Stop

    result = pf.fuzz(RIPPLE, callbacks=[stop], **limits)
    assert f"{result.progress.executions:,} episodes" in terminal.getvalue()
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    pf.fuzz(RIPPLE, max_execs=100, progress=False)
    assert quiet.getvalue() == ""


def test_notebook_gets_one_bar_that_is_brought_up_to_date(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=shown.append)
    display = types.ModuleType("IPython.display")
    display.HTML = str

    def show(picture, display_id):
        shown.append(picture)
        return handle

    display.display = show
    shell = types.SimpleNamespace(kernel=object())
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    result = pf.fuzz(RIPPLE, max_execs=300)
    assert "random episodes" in shown[0]
    assert 'value="1.000"' in shown[-1]
    assert f"{result.progress.findings} findings" in shown[-1]
    assert shown[-1].endswith("stopped by max-execs")
