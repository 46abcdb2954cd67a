"""Train the three actors with MADDPG: `python -m coopnavi.train`. Continues where it was interrupted."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coopnavi.evaluate import run
from coopnavi.maddpg import Maddpg, Settings
from coopnavi.networks import to_bank
from coopnavi.replay import Replay
from coopnavi.worlds import TrainingWorlds
from policyfuzz.policies.mlp import write_npz
from policyfuzz.targets.coopnavi import layout

#: Rewards are this much smaller in training, so that values are of the size of one.
_REWARD_SCALE = 0.1
#: Gumbel noise of the behaviour falls from the first to the second over the first half.
_NOISE = (1.0, 0.3)
#: The learning rate falls to this share of itself over the last two thirds.
_LAST_RATE = 0.02
#: Starts for the log, the same every time.
_LOG_EPISODES, _LOG_SEED = 2000, 555
#: What a checkpoint must have been made with to be continued.
_OPTIONS = ("updates", "worlds", "length", "replay", "width", "batch", "seed")


class Training:
    """A run of MADDPG that can be interrupted at any update and go on exactly as it would have."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.rng = np.random.default_rng(arguments.seed)
        self.learner = Maddpg(Settings(critic_width=arguments.width, batch=arguments.batch), self.rng)
        self.worlds = TrainingWorlds(arguments.worlds, arguments.length, self.rng)
        self.replay = Replay(arguments.replay)

    def advance(self) -> None:
        """One step of all worlds, then one update."""
        progress = self.learner.updates / self.arguments.updates
        noise = _NOISE[0] + (_NOISE[1] - _NOISE[0]) * min(1.0, 2 * progress)
        before, forces, after, rewards = self.worlds.step(to_bank(self.learner.actors), noise, self.rng)
        self.replay.add(before, forces, after, rewards * _REWARD_SCALE)
        if self.replay.written >= min(20 * self.arguments.batch, len(self.replay.steps)):
            self.learner.update(self.replay, self.rng, _rate_factor(progress))

    def save(self, path: Path) -> None:
        """Write everything into `path`, at once or not at all."""
        state = {
            "learner": self.learner.state(),
            "worlds": {name: torch.from_numpy(value) for name, value in self.worlds.state().items()},
            "steps": torch.from_numpy(self.replay.steps),
            "written": self.replay.written,
            "rng": json.dumps(self.rng.bit_generator.state),
        }
        partial = path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(path)

    def load(self, path: Path) -> None:
        """Go on from what `save` wrote."""
        state: dict[str, Any] = torch.load(path, weights_only=True)
        self.learner.load(state["learner"])
        self.worlds.load({name: value.numpy().copy() for name, value in state["worlds"].items()})
        self.replay.steps[:] = state["steps"].numpy()
        self.replay.written = state["written"]
        self.rng.bit_generator.state = json.loads(state["rng"])


def main() -> None:
    """Train to the end, writing checkpoints on the way, and export the slow actors."""
    arguments = parser().parse_args()
    torch.set_num_threads(arguments.threads)
    train(arguments)


def train(arguments: argparse.Namespace) -> None:
    """Train with parsed options; stops early after `stop_after` updates, if given."""
    _claim(arguments)
    checkpoint = arguments.work / "checkpoint.pt"
    training = Training(arguments)
    if checkpoint.exists():
        training.load(checkpoint)
    started = time.monotonic()
    learner = training.learner
    end = min(arguments.updates, arguments.stop_after or arguments.updates)
    while learner.updates < end:
        done = learner.updates
        training.advance()
        is_new = learner.updates > done
        if is_new and learner.updates % arguments.log_every == 0:
            _log(training, time.monotonic() - started)
        if is_new and (learner.updates % arguments.every == 0 or learner.updates == end):
            training.save(checkpoint)
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            write_npz(arguments.out, to_bank(learner.slow_actors))


def _claim(arguments: argparse.Namespace) -> None:
    """Make the work folder, or check that the checkpoint in it belongs to the same options."""
    options = {name: getattr(arguments, name) for name in _OPTIONS}
    arguments.work.mkdir(parents=True, exist_ok=True)
    note = arguments.work / "options.json"
    if not note.exists():
        note.write_text(json.dumps(options) + "\n")
    elif json.loads(note.read_text()) != options:
        raise SystemExit(f"{arguments.work} holds a run with other options: give another folder, or empty it")


def _rate_factor(progress: float) -> float:
    """Constant for a third of the time, then half a cosine down."""
    cosine = 0.5 * (1 + np.cos(np.pi * max(0.0, 1.5 * progress - 0.5)))
    return float(_LAST_RATE + (1 - _LAST_RATE) * cosine)


def _log(training: Training, seconds: float) -> None:
    """One line: how the slow actors do in episodes of 25 and of 100 steps."""
    starts = layout.sample(np.random.default_rng(_LOG_SEED), _LOG_EPISODES)
    parts = []
    for steps in (25, 100):
        episodes = run(to_bank(training.learner.slow_actors), starts, steps)
        parts.append(
            f"{steps} steps: covered {episodes.covered.mean():.3f} finished {episodes.finished.mean():.3f} "
            f"collisions {episodes.collisions.mean():.3f} return {episodes.returns.mean():.2f}"
        )
    done = f"{training.learner.updates}/{training.arguments.updates}"
    print(f"{done}  {'  '.join(parts)}  {seconds:.0f} s", file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--work", type=Path, required=True, help="folder for the checkpoint")
    options.add_argument("--out", type=Path, required=True, help="the networks.npz to write")
    options.add_argument("--updates", type=int, default=150_000)
    options.add_argument("--worlds", type=int, default=256, help="simulated at once, one step per update")
    options.add_argument("--length", type=int, default=25, help="steps of a training episode")
    options.add_argument("--replay", type=int, default=500_000, help="steps remembered")
    options.add_argument("--width", type=int, default=128, help="of the critic's hidden layers")
    options.add_argument("--batch", type=int, default=1024)
    options.add_argument("--every", type=int, default=5000, help="updates between checkpoints")
    options.add_argument("--log-every", type=int, default=2500, help="updates between lines of the log")
    options.add_argument("--stop-after", type=int, help="updates after which to stop, to be continued")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--seed", type=int, default=1)
    return options


if __name__ == "__main__":
    main()
