"""A finding that was run again, and how it looks."""

import base64
import os
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.errors import UsageError
from policyfuzz.report.recording import Recording, record
from policyfuzz.triage.replay import Replay

#: Films larger than this are not put into a notebook, which would hold them as text.
_MOST_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture or film: a file, which notebooks show."""

    path: Path

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        content, kind = self.path.read_bytes(), self.path.suffix.lower()
        if len(content) > _MOST_BYTES:
            return f"<code>{self.path}</code>"
        data = base64.b64encode(content).decode()
        if kind == ".mp4":
            return f'<video controls loop src="data:video/mp4;base64,{data}"></video>'
        return f'<img src="data:image/{kind[1:]};base64,{data}">'


@dataclass(frozen=True, slots=True)
class Replayed:
    """What happened this time. It can be drawn, filmed and looked at step by step."""

    replay: Replay
    folder: Path  #: where pictures and films go unless told otherwise

    @property
    def crashes(self) -> bool:
        """True if the oracle fired again."""
        return self.replay.crashes

    @property
    def is_identical(self) -> bool:
        """True if kind, step and return are those of the campaign, to the last bit."""
        return self.replay.is_identical

    @property
    def kind(self) -> str | None:
        """Kind of the crash, None where there is none."""
        return self.replay.kind

    @property
    def crash_step(self) -> int | None:
        """Step of the crash, None where there is none."""
        return self.replay.crash_step

    @property
    def steps(self) -> int:
        """Of the whole episode."""
        return self.replay.steps

    @property
    def episode_return(self) -> float:
        """Return of the whole episode."""
        return self.replay.episode_return

    def picture(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Draw the episode into the PNG file `path`."""
        from policyfuzz.report.episode_figure import draw_replay

        file = self._file(path, ".png")
        if file.suffix.lower() != ".png":
            raise UsageError(f"cannot draw into {file.name!r}", "name a file that ends in .png")
        draw_replay(self.replay, file)
        return Shown(file)

    def film(self, path: str | os.PathLike[str] | None = None) -> Shown:
        """Film the episode into `path`, an .mp4 or .gif file."""
        from policyfuzz.report.film import can_film, film_replay
        from policyfuzz.report.film_files import best_format

        if not can_film(self.replay.target):
            raise UsageError(
                f"target {self.replay.target.name} cannot be filmed",
                "its simulator has no render(row); of an environment, make it with render_mode='rgb_array'",
            )
        file = self._file(path, best_format())
        film_replay(self.replay, file)
        return Shown(file)

    def recording(self) -> Recording:
        """Actions, signals and states of the episode, step by step."""
        finding = self.replay.finding
        return record(self.replay.target, finding.input, finding.case_seed)

    def _file(self, path: str | os.PathLike[str] | None, ending: str) -> Path:
        if path is not None:
            return Path(path)
        return self.folder / "findings" / f"{self.replay.finding.id}{ending}"

    def __repr__(self) -> str:
        number = self.replay.finding.id
        if not self.crashes:
            return f"finding {number} does not crash: return {self.episode_return:.6g}"
        same = "exactly as recorded" if self.is_identical else "not as recorded"
        return f"finding {number} crashes: {self.kind} at step {self.crash_step}, {same}"
