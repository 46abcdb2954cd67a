from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from PIL import Image

from policyfuzz.core.branches import Segment
from policyfuzz.report.episode_figure import draw_replay, episode_figure
from policyfuzz.report.marks import CRASH, LAST_CHANCE, POLICY, WITNESS
from policyfuzz.store.triage_records import WITNESS as IS_WITNESS
from policyfuzz.store.triage_records import Avoidance
from policyfuzz.triage.replay import replay_on
from tests.report import drifting

BRAKE = Avoidance(IS_WITNESS, 3, (Segment(5, 99, (1.0,)),), "brake from step 5 on", last_chance=29)


def replayed(target, push=0.6):
    finding = SimpleNamespace(
        id=4, input=np.array([push, 1.0]), case_seed=3, kind="bump", crash_step=30, episode_return=30.0
    )
    return replay_on(target, finding)  # type: ignore[arg-type]


def panels(figure):
    """Name to axes of the small multiples."""
    return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_title(loc="left")}


def title(figure):
    return figure.get_suptitle()


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def lines(axes, colour):
    return [line for line in axes.lines if to_hex(line.get_color()).lower() == colour.lower()]


def test_the_number_that_leaves_the_band_first_comes_first():
    figure = episode_figure(replayed(drifting.target()))
    shown = panels(figure)
    # the colour never changes; the gap comes once, with its unit, and so does the speed
    assert list(shown) == ["speed [m/s]", "gap [m]", "wobble", "action", "reward"]
    (circle,) = [line for line in shown["speed [m/s]"].lines if line.get_marker() == "o"]
    assert abs(circle.get_xdata()[0] - (drifting.PUSHED + 1)) <= 2
    assert not [line for line in shown["wobble"].lines if line.get_marker() == "o"]


def test_the_band_and_the_crash_are_drawn_and_explained():
    figure = episode_figure(replayed(drifting.target()))
    speed = panels(figure)["speed [m/s]"]
    assert any(isinstance(one, PolyCollection) for one in speed.collections)
    assert [line.get_xdata()[0] for line in lines(speed, CRASH)] == [drifting.CRASH]
    assert any("passing episodes near this input stay inside" in text for text in legend(figure))
    assert "crash, step 30" in legend(figure)
    assert "bump at step 30" in title(figure)


def test_a_reward_that_never_changes_is_left_out():
    class Even(drifting.Drifting):
        def frame(self, rows):
            frame = super().frame(rows)
            return replace(frame, rewards=np.ones(len(rows)))

    assert "reward" not in panels(episode_figure(replayed(drifting.target(Even))))


def test_named_choices_are_drawn_by_name():
    action = panels(episode_figure(replayed(drifting.target())))["action"]
    assert [label.get_text() for label in action.get_yticklabels()] == ["rest", "brake"]


def test_a_witness_is_drawn_beside_the_policy():
    figure = episode_figure(replayed(drifting.target()), BRAKE)
    for axes in panels(figure).values():
        policy, witness = lines(axes, POLICY)[0], lines(axes, WITNESS)[0]
        assert len(policy.get_xdata()) == drifting.CRASH + 1
        assert len(witness.get_xdata()) == drifting.HORIZON + 1
        assert [line.get_xdata()[0] for line in lines(axes, LAST_CHANCE)] == [29]
    assert {"policy", "witness", "point of no return, step 29"} <= set(legend(figure))
    assert "brake from step 5 on" in title(figure)
    stills = [axes.get_title() for axes in figure.axes if axes.images]
    assert stills[0] == "policy, step 0"
    assert stills[-1] == "witness, step 30"


def test_a_branch_that_crashes_too_is_not_called_a_witness():
    late = Avoidance(IS_WITNESS, 3, (Segment(31, 99, (1.0,)),), "brake too late")
    figure = episode_figure(replayed(drifting.target()), late)
    assert "witness" not in legend(figure)
    assert any("crashes at step 30" in text for text in legend(figure))


def test_nothing_to_compare_with_leaves_the_lines():
    figure = episode_figure(replayed(drifting.target()), is_compared=False)
    assert "speed [m/s]" in panels(figure)
    assert not any("passing" in text for text in legend(figure))


def test_a_target_without_rendering_names_or_actions_is_drawn(tmp_path):
    class Bare(drifting.Drifting):
        state_names = ()
        render = None  # type: ignore[assignment]

    target = replace(drifting.target(Bare), actions=None)
    figure = episode_figure(replayed(target))
    assert {"state 0", "state 1", "gap", "reward"} <= set(panels(figure))
    assert not [axes for axes in figure.axes if axes.images]
    draw_replay(replayed(target), tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 0


@pytest.mark.parametrize("step", [0, 1, 15])
def test_an_episode_that_an_error_ended_is_drawn(tmp_path, step):
    class Failing(drifting.Drifting):
        def reset(self, inputs, seeds):
            if step == 0 and len(inputs) == 1 and inputs[0, 0] == 0.6:
                raise ValueError("no $start$")
            return super().reset(inputs, seeds)

        def step(self, actions, rows):
            if (self.step_number[rows] + 1 == step).any() and (self.inputs[rows, 0] == 0.6).any():
                raise ValueError("broken $pipe$")
            return super().step(actions, rows)

    replay = replayed(
        replace(drifting.target(Failing), actions=None) if step == 0 else drifting.target(Failing)
    )
    figure = episode_figure(replay)
    assert f"could not be run beyond step {step}" in title(figure)
    draw_replay(replay, tmp_path / "x.png", BRAKE)
    assert (tmp_path / "x.png").stat().st_size > 0


def test_hostile_names_are_drawn_as_they_are(tmp_path):
    class Hostile(drifting.Drifting):
        state_names = ("$\\frac{", "a\nb", "\x1b[31m", "x" * 500, "\u202e$")

    figure = episode_figure(replayed(drifting.target(Hostile)))
    figure.savefig(tmp_path / "x.png")
    names = set(panels(figure))
    assert "a\\nb" in names
    assert all(len(name) < 60 for name in names)


def test_the_own_drawing_of_a_target_comes_above_the_numbers(tmp_path):
    given = []

    def draw(_target, _row, _seed, path: Path, branch, last_chance) -> None:
        given.append((branch, last_chance))
        Image.new("RGB", (660, 100), (0, 200, 0)).save(path, format="PNG")

    target = replace(drifting.target(), draw=draw)
    draw_replay(replayed(target), tmp_path / "x.png", BRAKE)
    assert given == [(BRAKE.branch, 29)]
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.width == 1320
        assert picture.getpixel((600, 190)) == (0, 200, 0), "scaled to the width of the numbers"
        assert picture.getpixel((5, 210)) == (255, 255, 255)
        assert picture.height > 500
