import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, ImageDraw

from policyfuzz import CampaignReader, Runner, load_target
from policyfuzz.cli.main import exit_code
from policyfuzz.core.branches import Segment
from policyfuzz.core.errors import MissingExtra
from policyfuzz.report import film as film_files
from policyfuzz.report.film import Marks, film_replay, new_film
from policyfuzz.store.triage_records import WITNESS, Avoidance
from policyfuzz.triage.replay import replay_on
from tests.report import drifting

SIZE = (60, 30)  # of the pictures of the target, caption included
RED = np.array([208, 32, 32])


@pytest.fixture
def campaign(tmp_path, monkeypatch, capsys) -> Path:
    """A campaign on a target that renders, in the current folder."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "conformance")
    monkeypatch.chdir(tmp_path)
    assert exit_code(["fuzz", "broken_targets:sound", "--max-execs", "300", "--ui", "none", "-o", "c"]) == 1
    capsys.readouterr()
    return tmp_path / "c"


def replay(*arguments: str, capsys) -> dict:
    assert exit_code(["replay", "c", "1", "--trust", "--json", *arguments]) == 1
    return json.loads(capsys.readouterr().out)


def frames_of_mp4(path: Path) -> np.ndarray:
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(path), "-f", "rawvideo"]
    raw = subprocess.run([*command, "-pix_fmt", "rgb24", "-"], check=True, capture_output=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, *SIZE, 3)


def has_red_frame(picture: np.ndarray) -> bool:
    edge = picture[10, :4].astype(int)
    return bool((np.abs(edge - RED) < 40).all())


def test_film_shows_every_step_and_marks_the_crash(campaign, capsys):
    report = replay(capsys=capsys)
    frames = frames_of_mp4(Path(report["film"]))
    step = report["crash_step"]
    assert report["film"] == "c/findings/1.mp4"
    # this target ends with its crash: a second of 20 pictures stands still there
    assert len(frames) == step + 1 + 20
    assert [has_red_frame(frame) for frame in frames] == [False] * step + [True] * 21
    # the dark spot is where the walk is: pictures are those of their step
    target, finding = load_target("broken_targets:sound"), CampaignReader(campaign).finding(1)
    heights = Runner(target)(finding.input[None], np.array([finding.case_seed], np.uint64)).states[0, :, 0]
    spots = frames[:step, 10].astype(int).sum(axis=2)[:, 6:24].argmin(axis=1) + 6
    inside = (heights[:step] > 0.6) & (heights[:step] < 2.4)
    np.testing.assert_array_equal(spots[inside], np.floor(10 * heights[:step][inside]))


def test_gif_is_written_where_no_encoder_is(campaign, capsys, monkeypatch):
    monkeypatch.setattr(film_files, "find_spec", lambda _name: None)
    report = replay(capsys=capsys)
    with Image.open(report["film"]) as film:
        assert film.format == "GIF"
        assert film.n_frames >= 2
        film.seek(film.n_frames - 1)
        assert has_red_frame(np.asarray(film.convert("RGB")))


def test_gif_keeps_the_speed_of_a_fast_film(tmp_path):
    with new_film(tmp_path / "fast.gif", pictures_per_second=50) as film:
        for shade in range(100):
            film.add(np.full((20, 30, 3), shade, np.uint8))
    with Image.open(tmp_path / "fast.gif") as written:
        assert written.n_frames == 50
        assert written.info["duration"] == 40


def test_mp4_names_the_extra_when_no_encoder_is_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[film\]'"):
        new_film(tmp_path / "film.mp4", 20).__enter__()


def test_film_is_written_where_the_name_looks_like_an_option_or_a_protocol(campaign, capsys):
    for name in ("12:30.mp4", "-x.mp4"):
        assert Path(replay(f"--film={name}", capsys=capsys)["film"]).stat().st_size > 0


@pytest.mark.parametrize("camera", ["broken", "float", "zooming"])
def test_verdict_is_told_and_no_half_film_is_left_when_rendering_fails(campaign, capsys, monkeypatch, camera):
    import broken_targets

    replay(capsys=capsys)
    film = campaign / "findings" / "1.mp4"
    good = film.read_bytes()
    broken = {"broken": "BrokenCamera", "float": "FloatCamera", "zooming": "ZoomingCamera"}[camera]
    monkeypatch.setattr(broken_targets.Walk, "render", getattr(broken_targets, broken).render)
    assert exit_code(["replay", "c", "1", "--trust"]) == 3
    printed = capsys.readouterr()
    assert "finding 1 crashes" in printed.out
    assert "render(row)" in printed.err
    assert film.read_bytes() == good
    assert sorted(path.name for path in film.parent.iterdir()) == ["1.mp4", "1.png"]


def test_full_disk_is_told_as_such(campaign, capsys, monkeypatch):
    def full(_film, _picture):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(film_files._Mp4, "add", full)
    assert exit_code(["replay", "c", "1", "--trust"]) == 2
    printed = capsys.readouterr()
    assert "finding 1 crashes" in printed.out
    assert "cannot write c/findings/1.mp4: No space left on device" in printed.err


def test_picture_and_no_picture_exclude_each_other(campaign, capsys):
    assert exit_code(["replay", "c", "1", "--no-picture", "--png", "x.png"]) == 2
    assert "exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "complaint"), [("film.avi", "ends in .mp4 or .gif"), (".", "cannot film"), ("c/x/", "cannot")]
)
def test_film_is_refused_where_it_cannot_be_written(campaign, capsys, name, complaint):
    assert exit_code(["replay", "c", "1", "--trust", "--film", name]) == 2
    assert complaint in capsys.readouterr().err


def test_film_is_refused_when_the_simulator_does_not_render(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exit_code(["fuzz", "ripple:probability=0.05", "--max-execs", "300", "--ui", "none", "-o", "c"])
    assert exit_code(["replay", "c", "1", "--trust", "--film", "film.gif"]) == 2
    assert "cannot be filmed" in capsys.readouterr().err


@pytest.mark.parametrize("width", [60, 160, 256, 480, 800])
def test_caption_is_never_cut_off(width):
    replay = SimpleNamespace(
        target=SimpleNamespace(name="gym:HalfCheetah-v5:env.x=1,oracle=return<5780 as slow | terminated"),
        finding=SimpleNamespace(id=1234),
        steps=1000,
        kind="return below 5780",
        crash_step=1000,
    )
    draw = ImageDraw.Draw(Image.new("RGB", (width, 40)))
    marks = Marks(1000, 1000, last_chance=700)
    title, said, font = film_files._texts(draw, width - 40, 1000, replay, marks)  # type: ignore[arg-type]
    assert draw.textlength(title, font) + draw.textlength(said, font) <= width - 40
    assert title in ("", "finding 1234", "gym:HalfCheetah-v5, finding 1234")
    assert said.endswith("step 1000 of 1000") or width < 160


BRAKE = Avoidance(WITNESS, 3, (Segment(5, 99, (1.0,)),), "brake from step 5 on", last_chance=8)


@pytest.fixture
def braking():
    """A replay on a target that crashes at step 30, and ends with it; braking goes on to step 40."""
    finding = SimpleNamespace(
        id=4, input=np.array([0.6, 1.0]), case_seed=3, kind="bump", crash_step=30, episode_return=30.0
    )
    return replay_on(drifting.target(), finding)  # type: ignore[arg-type]


def frames_of(path: Path) -> list[np.ndarray]:
    with Image.open(path) as film:
        frames = []
        for number in range(film.n_frames):
            film.seek(number)
            frames += [np.asarray(film.convert("RGB"))] * round(film.info["duration"] / 50)
        return frames


def spot(picture: np.ndarray) -> int:
    """Where the dark pixel of a picture of the target is."""
    return int(picture.astype(int).sum(axis=1).argmin())


def test_policy_and_witness_are_filmed_side_by_side(tmp_path, braking):
    film_replay(braking, tmp_path / "x.gif", BRAKE)
    frames = frames_of(tmp_path / "x.gif")
    # a second of 20 pictures stands still at the point of no return, at the crash and at the end
    assert len(frames) == 41 + 3 * 20
    assert {frame.shape for frame in frames} == {frames[0].shape}
    assert frames[0].shape[1] == 30 + 8 + 30
    for moment, of_policy, of_witness in ((0, 0, 0), (27 + 20, 17, 0), (29 + 20, 19, 0)):
        row = frames[moment][28 + 10]
        assert (spot(row[:30]), spot(row[38:])) == (of_policy, of_witness)


def test_only_the_policy_is_framed_at_its_crash_and_its_last_picture_held(tmp_path, braking):
    film_replay(braking, tmp_path / "x.gif", BRAKE)
    frames = frames_of(tmp_path / "x.gif")
    before, crash, last = frames[29 + 20], frames[30 + 20], frames[-1]
    assert np.abs(before[28 + 3, 3].astype(int) - RED).max() > 60
    for frame in (crash, last):
        assert np.abs(frame[28 + 3, 3].astype(int) - RED).max() < 40
        assert np.abs(frame[28 + 3, 38 + 3].astype(int) - RED).max() > 60
    np.testing.assert_array_equal(crash[28:48, :30], last[28:48, :30])


def test_a_film_of_both_is_written_as_mp4(tmp_path, braking):
    pytest.importorskip("imageio_ffmpeg")
    film_replay(braking, tmp_path / "x.mp4", BRAKE)
    assert (tmp_path / "x.mp4").stat().st_size > 0


def test_without_a_witness_the_policy_is_filmed_alone(tmp_path, braking):
    film_replay(braking, tmp_path / "x.gif", Avoidance("none found", 64))
    frames = frames_of(tmp_path / "x.gif")
    assert frames[0].shape == (20 + 40, 30, 3)
    assert len(frames) == 31 + 20
