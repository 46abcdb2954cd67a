"""What an executor is: batches in, results out in the same order."""

from typing import Protocol

from policyfuzz.executions import Executions
from policyfuzz.search.cases import Cases


class Executor(Protocol):
    """Runs batches of cases; results come back in the order of submission."""

    def submit(self, cases: Cases) -> None:
        """Take a batch to run."""
        ...

    def collect(self) -> Executions:
        """Results of the oldest batch that was not collected yet; waits for them."""
        ...
