"""Asks from Python what campaigns covered."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from policyfuzz.analysis.coverage import CoverageSettings, cover_campaigns
from policyfuzz.api.results import Result, open_result
from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Target
from policyfuzz.execution.executor import ExecutorChoice, choose_executor
from policyfuzz.report.png_files import check_png
from policyfuzz.search.distinct import ALIKE_BEHAVIOUR
from policyfuzz.store.coverage_file import FILE_NAME, Coverage, write_coverage
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.results_beside import path_beside
from policyfuzz.triage.campaign_triage import Tell
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
    return run_coverage(
        readers,
        settings,
        choose_executor(None, workers),
        trust=trust or all(one.trust for one in results),
        target=next((one.target for one in results if one.target is not None), None),
        picture=None if out is None else Path(out),
    )


def run_coverage(
    campaigns: Sequence[CampaignReader],
    settings: CoverageSettings,
    executor: ExecutorChoice,
    *,
    trust: bool,
    target: Target | None = None,
    picture: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    tell: Tell = lambda _what, _done, _count: None,
) -> Coverage:
    """As `coverage`, for the command line too; `say` hears what is being done, `tell` how far it is."""
    check_png(picture)
    for campaign in campaigns:
        path_beside(campaign.folder, FILE_NAME)  # refuses a link before anything is run
    say(f"loading {campaigns[0].config.target}")
    loaded = target or target_of(campaigns[0], None, trust, None, executor)
    say("running episodes")
    found = cover_campaigns(campaigns, loaded, executor, settings, tell)
    if picture is not None:
        from policyfuzz.report.coverage_figure import draw_coverage

        say("drawing")
        draw_coverage(found, picture)
    for campaign in campaigns:
        write_coverage(campaign.folder, found)
    return found
