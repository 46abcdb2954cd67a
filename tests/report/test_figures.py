"""Figures: the numbers that they show, read without running anything, and drawings of them."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import Angle, CampaignConfig, CampaignReader, CampaignWriter, InputSpace, Real
from policyfuzz.report.figures import drawing
from policyfuzz.report.figures.distributions import histograms
from policyfuzz.report.figures.history import Discovery, discovery, time_split
from policyfuzz.report.figures.maps import behaviour_map, input_map
from policyfuzz.report.figures.sample import sample_corpus, sample_findings
from policyfuzz.search.corpus import COLUMNS
from policyfuzz.store.plain_records import to_plain
from policyfuzz.store.records import BatchRecord, Progress
from policyfuzz.store.triage_file import Triage
from policyfuzz.store.triage_records import Mode, Modes

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
from example_findings import a_finding

SPACE = InputSpace((Real("speed $x$", 0, 9, unit="m/s"), Real("gap", 0, 1), Angle("heading")))


def campaign(folder: Path, size: int, batches: int = 3, space: InputSpace = SPACE) -> CampaignReader:
    """A campaign with `size` findings that lie on a line, every tenth of them flaky."""
    store = CampaignWriter.create(folder, CampaignConfig("ripple"), space)
    width = len(space.dimensions)
    for batch in range(1, batches + 1):
        share = batch / batches
        store.commit(
            BatchRecord(
                Progress(
                    batch=batch,
                    seconds=2.0 * share,
                    executions=round(1000 * share),
                    samples=round(100 * share),
                    sample_crashes=round(4 * share),
                    findings=round(size * share),
                    simulate_seconds=1.5 * share,
                )
            )
        )
    findings = [
        a_finding(
            number,
            status="flaky" if number % 10 == 0 else "confirmed",
            input=np.full(width, number / size),
            episode_return=-float(number),
            margin=math.nan if number % 2 else -0.5,
            behaviour=json.dumps([float(number), 0.0, 1.0]),
        )
        for number in range(1, size + 1)
    ]
    columns = {name: np.ones(size, kind) for name, kind in COLUMNS.items()}
    last = store.progress()
    inputs = np.tile(np.linspace(0, 1, max(size, 1))[:size, None], (1, width))
    store.commit(
        BatchRecord(replace(last, batch=batches + 1), findings, seed_inputs=inputs, seed_columns=columns)
    )
    store.close()
    return CampaignReader(folder)


def test_random_curve_is_the_rate_of_the_random_draws(tmp_path):
    curve = discovery(campaign(tmp_path / "c", 20))
    assert curve.episodes[-1] == 1000
    assert curve.random[-1] == pytest.approx(40)
    assert curve.random_low[-1] < 40 < curve.random_high[-1]
    assert (curve.samples, curve.sample_crashes) == (100, 4)


def test_long_history_is_thinned_and_keeps_its_ends(tmp_path):
    curve = discovery(campaign(tmp_path / "c", 5, batches=60), most=10)
    assert len(curve.episodes) == 10
    assert (curve.episodes[0], curve.episodes[-1]) == (17, 1000)


def test_campaign_without_draws_has_no_random_curve(tmp_path):
    CampaignWriter.create(tmp_path / "c", CampaignConfig("ripple"), SPACE).close()
    curve = discovery(CampaignReader(tmp_path / "c"))
    assert curve == Discovery((), (), (), (), (), (), (), (), 0, 0)


def test_seconds_that_no_activity_claims_are_other():
    split = time_split(Progress(seconds=10.0, simulate_seconds=6.0, search_seconds=3.0))
    assert dict(zip(split.activities, split.seconds, strict=True)) == {
        "running episodes": 6.0,
        "search": 3.0,
        "other": 1.0,
    }


def test_sample_is_spread_and_holds_every_representative(tmp_path):
    reader = campaign(tmp_path / "c", 100)
    mode = Mode(1, "caught", 37, (36, 37), 1, 0.5)
    sample = sample_findings(reader, Triage("", modes=Modes((mode,), True, 1.0, 100, 0, 0)), most=5)
    assert 37 in sample.numbers
    assert sample.modes[sample.numbers.tolist().index(37)] == 1
    assert len(sample.numbers) <= 6
    assert not (sample.numbers % 10 == 0).any()  # flaky ones are none
    assert sample_corpus(reader, 7)[0].shape == (7, 3)


def test_map_lies_along_what_varies(tmp_path):
    reader = campaign(tmp_path / "c", 50)
    made = input_map(reader, sample_findings(reader, Triage("")))
    assert made.axes[0].share == pytest.approx(1.0)
    assert np.all(np.diff(made.x) > 0) or np.all(np.diff(made.x) < 0)
    assert np.allclose(made.y, 0, atol=1e-6)
    assert (len(made.corpus_x), made.corpus) == (50, 50)


def test_two_dimensions_are_their_own_map(tmp_path):
    space = InputSpace((Real("speed", 0, 9, unit="m/s"), Real("gap", 0, 1)))
    reader = campaign(tmp_path / "c", 9, space=space)
    made = input_map(reader, sample_findings(reader, Triage("")))
    assert [axis.label for axis in made.axes] == ["speed [m/s]", "gap"]
    assert made.x == made.y == tuple(number / 9 for number in range(1, 10))


def test_behaviours_of_several_lengths_are_those_of_the_most_frequent(tmp_path):
    reader = campaign(tmp_path / "c", 5)
    sample = sample_findings(reader, Triage(""))
    assert behaviour_map(sample).x == pytest.approx((-2, -1, 0, 1, 2))
    assert behaviour_map(replace(sample, behaviours=np.full((5, 0), np.nan))) is None


@pytest.mark.parametrize("values", [[], [3.0], [2.0, 2.0], [-1e308, 1e308], [1, 2, 5], [np.inf, np.nan, 0.5]])
def test_histogram_counts_every_value_once(tmp_path, values):
    sample = sample_findings(campaign(tmp_path / "c", 1), Triage(""))
    made = histograms(
        replace(
            sample,
            returns=np.array(values, float),
            margins=np.full(len(values), np.nan),
            crash_steps=np.zeros(0, int),
        )
    )
    known = [value for value in values if not math.isnan(value)]
    assert [sum(one.counts) for one in made] == ([len(known)] if known else [])


@pytest.mark.parametrize("size", [0, pytest.param(30, marks=pytest.mark.slow)])
def test_every_figure_is_drawn_alike_each_time(tmp_path, size):
    reader = campaign(tmp_path / "c", size)
    sample = sample_findings(reader, Triage(""))
    curve = discovery(reader)
    figures = [
        lambda: drawing.draw_discovery(curve),
        lambda: drawing.draw_side_by_side({"<b>$\\x$": curve, "b": curve}),
        lambda: drawing.draw_map(input_map(reader, sample)),
        lambda: drawing.draw_histograms(histograms(sample)),
        lambda: drawing.draw_time_split(time_split(reader.progress())),
    ]
    for draw in figures:
        picture = drawing.svg_of(draw)
        assert picture == drawing.svg_of(draw)
        assert b"<script" not in picture
    json.dumps(to_plain(input_map(reader, sample)), allow_nan=False)
