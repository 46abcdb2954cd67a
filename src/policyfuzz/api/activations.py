"""Asks from Python how apart crashes are from other episodes inside a policy."""

import os
from collections.abc import Callable
from pathlib import Path

from policyfuzz.analysis.activation_map import MapSettings, map_activations
from policyfuzz.api.results import Result, open_result
from policyfuzz.core.target import Target
from policyfuzz.report.png_files import check_png
from policyfuzz.store.activations_file import FILE_NAME, ActivationMap, write_activations
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.results_beside import path_beside
from policyfuzz.triage.campaign_triage import Tell
from policyfuzz.triage.replay import target_of


def activations(
    campaign: Result | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    method: str = "tsne",
    episodes: int = 300,
    window: int = 10,
    seed: int = 0,
    trust: bool = False,
) -> ActivationMap:
    """Compare crashes of a `campaign` with near misses, random mutants and normal episodes inside its policy.

    There are up to `episodes` of each; each is the mean over `window` decisions before the crash, or at the
    same steps. `out` is a PNG file to draw. The record is stored beside the campaign, too.
    """
    result = campaign if isinstance(campaign, Result) else open_result(campaign, trust)
    return run_activations(
        CampaignReader(result.folder),
        MapSettings(method, episodes, window, seed),
        trust=trust or result.trust,
        target=result.target,
        picture=None if out is None else Path(out),
    )


def run_activations(
    campaign: CampaignReader,
    settings: MapSettings,
    *,
    trust: bool,
    target: Target | None = None,
    picture: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    tell: Tell = lambda _what, _done, _count: None,
) -> ActivationMap:
    """As `activations`, for the command line too; `say` hears what is being done, `tell` how far it is."""
    check_png(picture)
    path_beside(campaign.folder, FILE_NAME)  # refuses a link before anything is run
    say(f"loading {campaign.config.target}")
    loaded = target or target_of(campaign, None, trust, None)
    say("running episodes")
    found = map_activations(campaign, loaded, settings, tell)
    if picture is not None:
        from policyfuzz.report.activations_figure import draw_activations

        say("drawing")
        draw_activations(found, picture)
    write_activations(campaign.folder, found)
    return found
