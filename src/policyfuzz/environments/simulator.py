"""Steps many environment objects in lock-step, each started from an input."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from types import FrameType, TracebackType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import (
    CannotRender,
    PolicyFuzzError,
    TargetCodeError,
    UsageError,
    is_interrupt,
)
from policyfuzz.core.extras import install_hint
from policyfuzz.core.forks import end_copy_of, this_process
from policyfuzz.core.interfaces import (
    ENDLESS,
    HUNG,
    NUMBERS,
    RAISED,
    STATE,
    EpisodeError,
    Frame,
    traceback_text,
)
from policyfuzz.environments.gauges import UNREADABLE, Gauge
from policyfuzz.environments.mujoco_camera import follow_body
from policyfuzz.environments.spaces import ActionReader, ObservationTable, StepTable
from policyfuzz.environments.starts import FirstObservation, Start

#: Words in the error of a renderer that mean that OpenGL is missing.
_OPENGL = ("OpenGL", "glGetError", "EGL", "GLFW")
#: How far what is read back may be from what was set, relative to it and at least to one: environments
#: that keep their state in single precision round it.
_TOLERANCE = 1e-5


class StateNotKept(Exception):
    """An environment does not start from its input."""


class EnvironmentSlot:
    """An environment whose innermost `reset` is replaced by one that starts from an input.

    Wrappers are outside of that, so they see the first observation of the episode that is really run.
    """

    def __init__(self, env: Any, start: Start) -> None:
        self.env = env
        self.base = env.unwrapped  #: the environment inside all wrappers
        self._own_reset = self.base.reset
        self._start = start
        self._values = np.empty(0)
        self._seed = 0
        self._is_beginning = False
        try:
            self.base.reset = self._begin
        except AttributeError as error:
            raise UsageError(
                f"the reset of {type(self.base).__name__} cannot be replaced: {error}",
                hint="its class must allow attributes (no __slots__)",
            ) from error

    def reset(self, values: NDArray[np.float64], seed: int) -> FirstObservation:
        """Start an episode at `values` (d,)."""
        self._values, self._seed = values, seed
        observation, info = self.env.reset(seed=seed)
        return observation, info

    def _begin(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> FirstObservation:
        if self._is_beginning:  # a reset that calls itself, to draw again until it likes what it has drawn
            again: FirstObservation = self._own_reset(seed=seed, options=options)
            return again
        self._is_beginning = True
        try:
            first = self._start.begin(self.base, self._own_reset, self._values, self._seed)
        finally:
            self._is_beginning = False
        self._compare(self._start.read(self.base))
        return first

    def _compare(self, read: NDArray[np.float64]) -> None:
        """Raise StateNotKept unless the environment has started from its input."""
        wanted = self._values
        differs = np.abs(read - wanted) > _TOLERANCE * np.maximum(np.abs(wanted), 1.0)  # not where NaN
        if differs.any():
            where = int(differs.argmax())
            name = self._start.inputs.names[where]
            raise StateNotKept(f"{name} was set to {wanted[where]:.9g} and reads back as {read[where]:.9g}")


#: Turns actions (m, ...) of a policy into one for each of m environments.
ActionsReader = Callable[[Any, int], Sequence[Any]]

#: Seeds of environments: many still hand them to generators that take no larger ones.
SEEDS = 2**31

#: Signals that every environment has; values of `info` follow.
TERMINATED, TRUNCATED, OUT_OF_SPACE = "terminated", "truncated", "out_of_space"


class GymSimulator:
    """n environment objects, reset by `start` and stepped together.

    An environment that raises, gives NaN or does not answer ends its own episode with an error, and is
    thrown away.
    """

    capacity: ClassVar[int | None] = None

    def __init__(
        self,
        make: Callable[[], Any],
        start: Start,
        info_keys: Collection[str] = (),
        *,
        endless_after: int | None = None,
        is_fresh: bool = False,
        watches_space: bool = False,
        may_be_infinite: bool = False,
        patience_seconds: float | None = 60.0,
        gauge: Gauge | None = None,
    ) -> None:
        """`make` gives an environment with all its wrappers.

        `endless_after` is the number of steps at which an episode that has not ended is an error, for
        environments that declare no limit; `is_fresh` makes a new object for every episode;
        `may_be_infinite` passes infinite observations on, which a network turns into NaN. What `gauge` reads
        becomes further signals.
        """
        self._gauge, gauged = gauge, () if gauge is None else gauge.signals
        self.signals = (TERMINATED, TRUNCATED, OUT_OF_SPACE, *(f"info.{key}" for key in info_keys), *gauged)
        self._make, self._start, self._info_keys = make, start, tuple(info_keys)
        self._endless_after, self._is_fresh, self._watches_space = endless_after, is_fresh, watches_space
        self._may_be_infinite = may_be_infinite
        self._watchdog = Watchdog(patience_seconds)
        first = EnvironmentSlot(make(), start)
        self._slots: list[EnvironmentSlot | None] = [first]
        self._observations, self._actions = self._readers(first.env)
        self._time = 0

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self._time = 0
        self._slots += [None] * (len(inputs) - len(self._slots))
        table = self._table(len(inputs))
        given = zip(inputs, (seeds % SEEDS).tolist(), strict=True)
        process = this_process()
        with self._watchdog:
            for row, (values, seed) in enumerate(given):
                try:
                    slot = self._slot(row)
                    observation, info = slot.reset(values, seed)
                    table.begin(row, observation, info, self._info_keys)
                    self._read_gauge(slot, table.signals[row])
                except PolicyFuzzError:
                    raise
                except BaseException as error:
                    if is_interrupt(error):
                        raise
                    table.fail(row, self._failed(row, error))
                end_copy_of(process)  # before it makes copies of its own
                self._watchdog.beats += 1
        return self._frame(table, np.arange(len(inputs)))

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        self._time += 1
        table = self._table(len(rows))
        chosen = self._actions(actions, len(rows))
        process = this_process()
        with self._watchdog:
            for position, (row, action) in enumerate(zip(rows.tolist(), chosen, strict=True)):
                try:
                    slot = self._slots[row]
                    assert slot is not None
                    table.put(position, *_checked_step(slot.env.step(action)), self._info_keys)
                    self._read_gauge(slot, table.signals[position])
                except PolicyFuzzError:
                    raise
                except BaseException as error:
                    if is_interrupt(error):
                        raise
                    table.fail(position, self._failed(row, error))
                end_copy_of(process)
                self._watchdog.beats += 1
        return self._frame(table, rows)

    @property
    def state_names(self) -> tuple[str, ...]:
        """A name for each number of a state, for plots; empty where they have none."""
        slot = self._slots[0]
        return () if slot is None else self._observations.names(slot.env)

    def _readers(self, env: Any) -> tuple[ObservationTable, ActionsReader]:
        """What keeps observations of such environments, and what reads actions for them."""
        return ObservationTable(env.observation_space), ActionReader(env.action_space)

    def _table(self, count: int) -> StepTable:
        """An empty table for what `count` environments give in one step."""
        return StepTable(count, self._observations, self.signals)

    def _read_gauge(self, slot: EnvironmentSlot, signals: NDArray[np.float64]) -> None:
        """Write what the gauge reads into the last of `signals` (s,); NaN where it cannot be read."""
        if self._gauge is not None:
            try:
                signals[-len(self._gauge.signals) :] = self._gauge.read(slot.base)
            except UNREADABLE:  # the user's class is not quite what its family is
                signals[-len(self._gauge.signals) :] = np.nan

    def _slot(self, row: int) -> EnvironmentSlot:
        slot = self._slots[row]
        if slot is None or self._is_fresh:
            self._throw_away(row)
            slot = self._slots[row] = EnvironmentSlot(self._make_another(), self._start)
        return slot

    def _make_another(self) -> Any:
        """A further environment. One has been made before, so what goes wrong now costs one episode."""
        try:
            return self._make()
        except TargetCodeError as error:
            raise error.__cause__ or error from None

    def _throw_away(self, row: int) -> None:
        """Close the environment at `row`, if there is one, whatever state it is in."""
        slot, self._slots[row] = self._slots[row], None
        if slot is not None:
            try:
                slot.env.close()
            except BaseException as error:  # it has failed already, or has done its work
                if is_interrupt(error):
                    raise

    def _failed(self, row: int, error: BaseException) -> EpisodeError:
        """What to say of an environment that raised `error`; it is not used again."""
        self._throw_away(row)
        if isinstance(error, StateNotKept):
            return EpisodeError(STATE, self._time, str(error))
        kind = HUNG if isinstance(error, NoAnswer) else RAISED
        return EpisodeError(kind, self._time, traceback_text(error))

    def _frame(self, table: StepTable, rows: NDArray[np.int64]) -> Frame:
        sound = np.ones(len(rows), np.bool_)
        sound[list(table.errors)] = False
        broken = sound & self._observations.is_broken(table.observations, self._may_be_infinite)
        for position in np.flatnonzero(broken).tolist():
            text = f"the observation has a NaN or infinite number in it at step {self._time}"
            table.fail(position, EpisodeError(NUMBERS, self._time, text))
        sound &= ~broken
        ended = (table.signals[:, 0] + table.signals[:, 1]) > 0
        if self._time == self._endless_after:
            for position in np.flatnonzero(~ended & sound).tolist():
                text = f"the episode has not ended after {self._time} steps, and no limit is declared"
                table.fail(position, EpisodeError(ENDLESS, self._time, text))
        if self._watches_space:
            table.signals[:, 2] = self._observations.is_outside(table.observations)
        ended[list(table.errors)] = True
        return Frame(
            observations=table.observations,
            states=self._observations.states(table.observations),
            signals=table.signals,
            rewards=table.rewards,
            ended=ended,
            errors=table.errors,
        )


def _checked_step(result: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The five values that a step of Gymnasium gives; raises if there are not five."""
    if len(result) != 5:
        raise ValueError(
            f"step gave {len(result)} values, expected 5: observation, reward, terminated, truncated, info"
        )
    observation, reward, terminated, truncated, info = result
    return observation, reward, terminated, truncated, info


class RenderedGymSimulator(GymSimulator):
    """Environments that were made with pictures."""

    _picture = np.zeros((400, 600, 3), np.uint8)

    def render(self, row: int) -> NDArray[np.uint8]:
        """The environment's own picture of episode `row`; the last one where it has ended in an error."""
        slot = self._slots[row]
        if slot is not None:
            self._picture = picture_of(slot.env)
        return self._picture


def prepare_headless() -> None:
    """Make MuJoCo and pygame draw without a screen, unless the user has set how."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")
        if not os.environ.get("WAYLAND_DISPLAY"):
            # pygame looks for a screen otherwise, and SDL complains of an "error" that is none
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def picture_of(env: Any) -> NDArray[np.uint8]:
    """What `env` draws of itself (height, width, 3)."""
    prepare_headless()
    try:
        follow_body(env.unwrapped)
        picture = env.render()
    except Exception as error:  # every renderer has its own
        text = f"{type(error).__name__}: {error}"
        raise CannotRender(f"the environment cannot draw itself: {text}", _render_hint(text)) from error
    pixels = np.asarray(picture)
    if pixels.dtype.kind not in "biuf":
        raise CannotRender(f"the environment cannot draw itself: render() gave {type(picture).__name__}")
    return pixels


def _render_hint(text: str) -> str:
    if any(word in text for word in _OPENGL):
        return (
            "MuJoCo draws without a screen by EGL or OSMesa: install libegl1 and libgl1-mesa-dri,"
            " or libosmesa6 and set MUJOCO_GL=osmesa"
        )
    return install_hint("gym") if "pygame" in text else ""


class NoAnswer(Exception):
    """An environment has not answered in time."""


class Watchdog:
    """Raises `NoAnswer` inside a `with` block whose `beats` stand still for longer than `seconds`.

    It takes between one and two times `seconds` to notice. It works by the alarm signal, so in the main
    thread of a Unix process only; elsewhere it does nothing. Code that never comes back to Python cannot be
    interrupted this way.
    """

    def __init__(self, seconds: float | None) -> None:
        self.beats = 0  #: the watched code counts this up
        self._seconds = seconds
        self._seen = -1
        self._before: Any = None
        self._is_set = False

    def __enter__(self) -> "Watchdog":
        is_main = threading.current_thread() is threading.main_thread()
        if self._seconds is not None and is_main and hasattr(signal, "setitimer"):
            self._seen = -1
            self._before = signal.signal(signal.SIGALRM, self._look)
            signal.setitimer(signal.ITIMER_REAL, self._seconds, self._seconds)
            self._is_set = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_set:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before)
            self._is_set = False

    def _look(self, _number: int, _frame: FrameType | None) -> None:
        if self.beats == self._seen:
            self._seen = -1
            raise NoAnswer(f"no answer within {self._seconds:g} s")
        self._seen = self.beats
