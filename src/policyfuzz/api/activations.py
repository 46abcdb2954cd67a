"""Asks from Python how apart crashes are from other episodes inside a policy."""

import os
from pathlib import Path

from policyfuzz.analysis.activation_map import MapSettings, map_activations
from policyfuzz.api.results import Result, open_result
from policyfuzz.store.activations_file import FILE_NAME, ActivationMap, write_activations
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.results_beside import path_beside
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
    reader, settings = CampaignReader(result.folder), MapSettings(method, episodes, window, seed)
    path_beside(reader.folder, FILE_NAME)  # refuses a link before anything is run
    target = result.target or target_of(reader, None, trust or result.trust, None)
    found = map_activations(reader, target, settings)
    if out is not None:
        from policyfuzz.report.activations_figure import draw_activations

        draw_activations(found, Path(out))
    write_activations(reader.folder, found)
    return found
