import numpy as np
from PIL import Image

from policyfuzz import load_target
from policyfuzz.core.branches import Segment
from policyfuzz.core.recording import record
from policyfuzz.targets.acasxu import encounter
from policyfuzz.targets.acasxu.picture import View, draw_encounter


def test_pictures_show_both_aircraft_where_they_are():
    target = load_target("acasxu")
    row = np.array([300.0, 2000.0, 3000.0, np.pi])
    seen = record(target, row, 0, lambda _step, sim: (sim.flights[0].copy(), sim.render(0)))
    view = View(seen.scenes[0][0])
    for flight, picture in seen.scenes[::20]:
        assert picture.shape == (640, 640, 3)
        for columns in ([encounter.OWN_X, encounter.OWN_Y], [encounter.INT_X, encounter.INT_Y]):
            x, y = (round(side / 2) for side in view.pixel(flight[columns]))
            around = picture[y - 3 : y + 4, x - 3 : x + 4].reshape(-1, 3).astype(int)
            assert around.sum(axis=1).min() < 550, "nothing dark where an aircraft is"


def test_picture_of_an_encounter_in_a_large_batch_has_no_past():
    target = load_target("acasxu")
    simulator = target.simulator()
    inputs = np.tile([300.0, 2000.0, 3000.0, np.pi], (50, 1))
    simulator.reset(inputs, np.zeros(50, np.uint64))
    simulator.step(np.zeros(50, np.int64), np.arange(50))
    assert simulator.render(7).shape == (640, 640, 3)


def test_witness_and_point_of_no_return_are_drawn(tmp_path):
    target = load_target("acasxu")
    row = np.array([300.0, 2000.0, 3000.0, np.pi])
    draw_encounter(target, row, 0, tmp_path / "alone.png")
    draw_encounter(target, row, 0, tmp_path / "both.png", [Segment(10, 101, (3.0,))], last_chance=12)
    assert max(_distances(tmp_path / "both.png")) < 10
    assert min(_distances(tmp_path / "alone.png")) > 30


def _distances(path):
    """How near the colours of witness and point of no return come to any pixel of a picture."""
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    return [np.abs(pixels - colour).sum(axis=2).min() for colour in ((230, 159, 0), (91, 42, 134))]
