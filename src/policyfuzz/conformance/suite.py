"""The checks as tests: inherit from `TargetConformance`, name a target, run pytest."""

from functools import lru_cache
from typing import Any, ClassVar

from policyfuzz.conformance.checks import CHECKS
from policyfuzz.conformance.subject import Subject

#: Keeps the last one, so that the checks of one target share its simulator and its first episodes.
_subject = lru_cache(maxsize=1)(Subject)


class TargetConformance:
    """All checks on one target. A subclass names the target, and may say how much to run."""

    target: ClassVar[str]
    policy: ClassVar[str | None] = None
    episodes: ClassVar[int] = 6
    executions: ClassVar[int] = 24  #: of each campaign that is run
    seed: ClassVar[int] = 0  #: of all episodes; one whose campaign has findings checks the most

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Make `test` one test for each check."""
        if "check" in metafunc.fixturenames:
            metafunc.parametrize("check", CHECKS)

    def test(self, check: str) -> None:
        """One of the checks."""
        import pytest  # which only those have installed who run tests

        subject = _subject(self.target, self.policy, self.episodes, self.executions, self.seed)
        why_skipped = CHECKS[check](subject)
        if why_skipped:
            pytest.skip(f"nothing to check: {why_skipped}")
