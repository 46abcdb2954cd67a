from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import policyfuzz
from policyfuzz.analysis.campaign_episodes import count_known, known_cases, repeat_campaign
from policyfuzz.analysis.coverage import (
    CoverageSettings,
    compare_visits,
    cover_campaigns,
    labels_of,
    reference_behaviours,
)
from policyfuzz.analysis.coverage import Label as Name
from policyfuzz.analysis.visited import DIRECTIONS, MOMENTS, StateProjection, Visited
from policyfuzz.campaign.launch import launch
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.settings import Budget, CampaignOptions
from policyfuzz.execution.executor import choose_executor
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.store.reader import CampaignReader
from policyfuzz.targets.registry import load_target

TARGET = "ripple:dimensions=3,probability=0.01"
#: Farther apart than any radius or cell.
APART = 20.0


def visited(regions, copies=1, jitter=0.0, per_region=5):
    """Episodes in planted regions, far from each other, in turn; `copies` of each, near-clones."""
    places = np.tile(np.repeat(regions, copies), per_region)
    noise = np.random.default_rng(3).uniform(-jitter, jitter, (len(places), DESCRIPTOR_SIZE))
    descriptors = np.zeros((len(places), DESCRIPTOR_SIZE)) + noise
    descriptors[:, 0] += APART * places
    states = np.full((len(places), MOMENTS, DIRECTIONS), 0.25)
    states[:, :, 0] += APART * places[:, None]
    states += 0.1 * jitter * noise[:, None, :DIRECTIONS]
    numbers = np.arange(1, len(places) + 1)
    return Visited(numbers, descriptors, states, np.zeros(len(places), np.bool_), len(places))


def compared(*visits, random, **settings):
    names = [(Name(str(place), str(place)), one) for place, one in enumerate(visits)]
    return compare_visits(names, random, max(len(one) for one in visits), CoverageSettings(**settings))


def test_twice_the_planted_regions_are_twice_the_behaviours_and_cells():
    found = compared(visited(range(4)), visited(range(8)), random=visited(range(10)))
    few, many = found.campaigns
    assert (few.behaviours, many.behaviours, found.reference) == (4, 8, 10)
    assert (few.cells, many.cells) == (4, 8)
    assert found.share(many) == 2 * found.share(few) == 0.8


def test_near_clones_raise_neither_the_share_nor_the_reference():
    plain, random = visited(range(4)), visited(range(10))
    cloned = visited(range(4), copies=50, jitter=0.02)
    alone = compared(plain, random=random)
    both = compared(plain, cloned, random=random)
    assert both.reference == alone.reference
    assert [both.share(one) for one in both.campaigns] == [alone.share(alone.campaigns[0])] * 2
    assert both.campaigns[1].cells == both.campaigns[0].cells


def test_reference_behaviours_are_apart_and_every_point_is_near_one():
    points, radius = np.random.default_rng(1).normal(size=(500, 3)), 0.5
    nearest = reference_behaviours(points, radius)
    centres = np.array([points[nearest == one].mean(axis=0) for one in range(nearest.max() + 1)])
    assert len(centres) > 20
    for one in range(len(centres)):
        members = points[nearest == one]
        assert np.ptp(members, axis=0).max() <= 2 * radius  # all are within the radius of one of them


def test_an_order_of_the_points_hardly_changes_how_many_references_there_are():
    points = np.random.default_rng(1).normal(size=(500, 3))
    counts = [reference_behaviours(points, 0.5).max(), reference_behaviours(points[::-1], 0.5).max()]
    assert counts[0] == counts[1]


def test_curves_only_count_what_came_before():
    late = visited(range(4), per_region=1)
    late = replace(late, numbers=np.array([10, 20, 30, 40]))
    found = compare_visits([(Name("late", "late"), late)], visited(range(4)), 40, CoverageSettings())
    curve = found.campaigns[0].curve
    assert curve.episodes[-1] == 40
    wanted = [time // 10 for time in curve.episodes]
    assert list(curve.behaviours) == wanted
    assert list(curve.cells) == wanted
    assert curve.area[0] == 0.0 < curve.area[-1]


def test_a_projection_has_the_units_of_its_states_and_ignores_constant_ones():
    rng = np.random.default_rng(0)
    states = np.stack([rng.normal(5, 100.0, 2000), np.full(2000, 7.0)], axis=1)
    projection = StateProjection.fit(states)
    places = projection.project(states)
    assert places[:, 0].std() == pytest.approx(1.0)
    assert not places[:, 1:].any()
    assert projection.words(0, ("range [ft]", "goal")) == "+ range"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Campaigns, to be read only; they differ in strategy or seed."""
    root, target, made = tmp_path_factory.mktemp("campaigns"), load_target(TARGET), []
    for strategy, seed in (("mdpfuzz", 0), ("mdpfuzz", 1), ("random", 0)):
        options = CampaignOptions(strategy=strategy, seed=seed)
        made.append(root / f"{strategy}-{seed}")
        launch(target, Budget(executions=1500), options, folder=made[-1])
    return made


@pytest.fixture
def campaigns(folders):
    return [CampaignReader(folder) for folder in folders]


def test_known_cases_are_the_seeds_and_findings_of_the_first_episodes(campaigns):
    campaign = campaigns[0]
    inputs, columns = campaign.corpus()
    crashes = {one.input.tobytes() for one in campaign.findings() if one.execution <= 600}
    found = known_cases(campaign, 600, 1.0, 0)
    rows = {row.tobytes() for row in found.inputs}
    assert len(found.numbers) == found.known == count_known(campaign, 600) < count_known(campaign, 1500)
    assert found.numbers.max() <= 600
    assert crashes <= rows <= crashes | {row.tobytes() for row in inputs[columns["is_crash"] == 0]}


def test_a_share_of_the_known_cases_is_chosen_by_the_seed(campaigns):
    few, same, other = (known_cases(campaigns[0], 1500, 0.1, seed) for seed in (0, 0, 1))
    assert len(few.numbers) == round(0.1 * few.known)
    assert (few.inputs == same.inputs).all()
    assert few.inputs.shape == other.inputs.shape
    assert not (few.inputs == other.inputs).all()


def test_repeating_a_campaign_shows_all_of_its_episodes(campaigns):
    campaign, numbers, crashed = campaigns[0], [], []

    def see(some, executions):
        numbers.extend(some.tolist())
        crashed.extend((some + 0)[executions.crashed].tolist())

    repeat_campaign(campaign, load_target(TARGET), choose_executor(), 1500, see)
    assert numbers == list(range(1, len(numbers) + 1))
    assert 1400 <= len(numbers) <= 1500  # replays of the health check are not part of the search
    assert len(crashed) >= campaign.progress().findings > 0


def test_a_campaign_that_comes_out_otherwise_is_not_called_repeated(campaigns):
    other = campaigns[1]
    other.config = replace(other.config, seed=17)
    with pytest.raises(CampaignError, match="cannot be repeated: other findings"):
        repeat_campaign(other, load_target(TARGET), choose_executor(), 1500, lambda *_: None)


@pytest.mark.slow
def test_coverage_is_the_same_for_the_same_seed(campaigns):
    target, settings = load_target(TARGET), CoverageSettings(most=200)
    first = cover_campaigns(campaigns[:2], target, choose_executor(), settings)
    assert first == cover_campaigns(campaigns[:2], target, choose_executor(), settings)
    assert first != cover_campaigns(campaigns[:2], target, choose_executor(), replace(settings, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("is_every_episode", [False, True])
def test_coverage_is_the_same_for_any_number_of_workers(campaigns, is_every_episode):
    target, settings = load_target(TARGET), CoverageSettings(None, is_every_episode, 300)
    alone = cover_campaigns(campaigns, target, choose_executor(), settings)
    assert alone == cover_campaigns(campaigns, target, choose_executor(None, 2), settings)


def test_campaigns_are_cut_at_the_shortest_and_grouped_by_strategy(run_campaign, campaigns):
    short = run_campaign(TARGET, "short", 600, strategy="reward")
    settings = CoverageSettings(most=200)
    found = cover_campaigns([*campaigns, short], load_target(TARGET), choose_executor(), settings)
    assert found.episodes == short.progress().executions
    assert list(found.groups) == ["mdpfuzz", "random", "reward", "random sampling"]
    assert [len(some) for some in found.groups.values()] == [2, 1, 1, 1]
    assert all(one.curve.episodes[-1] == found.episodes for one in found.all)


@pytest.mark.slow
def test_every_episode_sees_more_than_the_file_knows(campaigns):
    target = load_target(TARGET)
    known = cover_campaigns(campaigns[:1], target, choose_executor())
    every = cover_campaigns(campaigns[:1], target, choose_executor(), CoverageSettings(is_every_episode=True))
    assert every.campaigns[0].used > known.campaigns[0].used
    assert every.campaigns[0].cells > known.campaigns[0].cells


def test_settings_that_differ_make_groups_of_their_own(run_campaign):
    both = [
        run_campaign(TARGET, name, 300, strategy="random", batch_size=size)
        for name, size in (("a", 50), ("b", 100))
    ]
    assert [one.group for one in labels_of(both)] == ["a", "b"]


def test_campaigns_on_other_targets_are_refused(run_campaign, campaigns):
    other = run_campaign("ripple:dimensions=4", "other", 300)
    with pytest.raises(UsageError, match="another one than"):
        cover_campaigns([*campaigns, other], load_target(TARGET), choose_executor())


def test_more_episodes_than_there_are_are_refused(campaigns):
    with pytest.raises(UsageError, match=r"has 1,500 episodes, expected 9,999"):
        cover_campaigns(campaigns, load_target(TARGET), choose_executor(), CoverageSettings(9999))


def test_a_campaign_is_named_once(campaigns):
    with pytest.raises(UsageError, match="is named twice"):
        cover_campaigns([*campaigns, campaigns[0]], load_target(TARGET), choose_executor())


@pytest.mark.parametrize(
    "call", [lambda one, out: policyfuzz.coverage([one], out=out), policyfuzz.activations]
)
def test_another_ending_than_png_is_refused_before_anything_is_run(call, folders, tmp_path):
    with pytest.raises(UsageError, match=r"ends in \.png"):
        call(folders[0], out=tmp_path / "picture.jpg")
    assert not (tmp_path / "picture.jpg").exists()


@pytest.mark.slow
def test_python_gives_the_record_and_draws(folders, tmp_path: Path):
    found = policyfuzz.coverage(folders, out=tmp_path / "c.png", most=200)
    assert found.target == TARGET
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    assert all((folder / "coverage.json").is_file() for folder in folders)
