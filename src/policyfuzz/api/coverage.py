"""Asks from Python what campaigns covered."""

import os
from collections.abc import Sequence
from pathlib import Path

from policyfuzz.analysis.coverage import CoverageSettings, cover_campaigns
from policyfuzz.api.results import Result, open_result
from policyfuzz.core.errors import UsageError
from policyfuzz.execution.executor import choose_executor
from policyfuzz.search.distinct import ALIKE_BEHAVIOUR
from policyfuzz.store.coverage_file import FILE_NAME, Coverage, write_coverage
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.results_beside import path_beside
from policyfuzz.triage.replay import target_of


def coverage(
    campaigns: Sequence[Result | str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str] | None = None,
    episodes: int | None = None,
    every_episode: bool = False,
    most: int = 10_000,
    radius: float = ALIKE_BEHAVIOUR,
    cell: float = 0.5,
    seed: int = 0,
    workers: int | None = None,
    trust: bool = False,
) -> Coverage:
    """Compare what `campaigns`, results or their folders, covered within the same number of episodes.

    `out` is a PNG file to draw. The record is stored beside each campaign, too. `every_episode` repeats the
    campaigns, since their files only know what the search kept and what crashed; `most` episodes of each are
    looked at. `trust` the code and the policy file that the campaigns name, as for `open_result`.
    """
    if isinstance(campaigns, str | os.PathLike | Result):
        raise UsageError("campaigns is one campaign", "give a list, even of one")
    settings = CoverageSettings(episodes, every_episode, most, seed, radius, cell)
    results = [one if isinstance(one, Result) else open_result(one, trust) for one in campaigns]
    readers = [CampaignReader(one.folder) for one in results]
    if not readers:
        raise UsageError("no campaign was given", "name the folders of one or more")
    for reader in readers:
        path_beside(reader.folder, FILE_NAME)  # refuses a link before anything is run
    executor = choose_executor(None, workers)
    given = next((one.target for one in results if one.target is not None), None)
    is_trusted = trust or all(one.trust for one in results)
    target = given or target_of(readers[0], None, is_trusted, None, executor)
    found = cover_campaigns(readers, target, executor, settings)
    if out is not None:
        from policyfuzz.report.coverage_figure import draw_coverage

        draw_coverage(found, Path(out))
    for reader in readers:
        write_coverage(reader.folder, found)
    return found
