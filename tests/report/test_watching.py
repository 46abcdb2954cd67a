"""Who else hears of a campaign, at its end."""

from policyfuzz.campaign.finding_commands import FindingCommands
from policyfuzz.report.watching import watching
from policyfuzz.targets.registry import load_target


def test_interrupt_at_the_end_skips_the_wait_and_not_the_results(monkeypatch):
    said: list[str] = []
    closed: list[float | None] = []

    def close(self, seconds=None):
        closed.append(seconds)
        if seconds is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(FindingCommands, "close", close)
    monkeypatch.setattr(FindingCommands, "is_busy", True)
    with watching(load_target("ripple"), (), "true", said.append, said.append) as listeners:
        assert len(listeners) == 1
    assert closed == [None, 0.0], "ended at once, and nothing is raised"
    assert "Ctrl-C skips that" in said[0]


def test_nothing_listens_when_nothing_is_asked_for():
    with watching(load_target("ripple"), (), None, lambda _: None) as listeners:
        assert listeners == ()
