"""Train a policy with PPO: `python -m gym_ppo.train TASK`. Continues where it was interrupted.

A round depends on its number, the seed and the model of the round before, so that an interrupted run ends
with the same network as an uninterrupted one.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from gym_ppo.export import export
from gym_ppo.starts import drawn_starts
from gym_ppo.tasks import TASKS, Task


def main() -> None:
    """Train to the end, a checkpoint and a network for each round."""
    arguments = parser().parse_args()
    torch.set_num_threads(1)
    train(TASKS[arguments.task], arguments.work, arguments.seed)


def train(task: Task, work: Path, seed: int, stop_after: int | None = None) -> None:
    """Train in the folder `work`; stops after so many rounds, if given."""
    _claim(work, {"task": repr(task), "seed": seed})
    for number in range(min(task.rounds, stop_after or task.rounds)):
        checkpoint = work / f"round-{number:03d}.zip"
        if checkpoint.exists():
            continue
        started = time.monotonic()
        before = work / f"round-{number - 1:03d}.zip" if number else None
        model, line = run_round(task, before, number, seed)
        export(work / f"round-{number:03d}.npz", model.policy)
        partial = work / "partial.zip"
        model.save(partial)
        partial.replace(checkpoint)
        print(f"round {number + 1}/{task.rounds}  {line}  {time.monotonic() - started:.0f} s", flush=True)


def run_round(task: Task, before: Path | None, number: int, seed: int) -> tuple[PPO, str]:
    """One round of PPO from the model `before`; the model after it, and how its episodes went."""
    round_seed = int(np.random.SeedSequence((seed, number)).generate_state(1)[0]) % 2**31
    monitor = VecMonitor(DummyVecEnv([lambda: drawn_starts(task.environment_id)] * task.environments))
    model = PPO(
        "MlpPolicy",
        monitor,
        n_steps=task.steps,
        policy_kwargs={"net_arch": [task.width, task.width], "activation_fn": torch.nn.Tanh},
        seed=round_seed,
        device="cpu",
        **task.schedule(number),
        **task.settings,
    )
    if before is not None:
        model.set_parameters(str(before), device="cpu")  # network and optimiser
    model.learn(task.environments * task.steps * task.updates)
    ended = list(model.ep_info_buffer or [])
    returns, lengths = ([episode[key] for episode in ended] for key in ("r", "l"))
    monitor.close()
    return model, f"return {np.mean(returns or np.nan):.1f}  length {np.mean(lengths or np.nan):.0f}"


def _claim(work: Path, options: dict[str, object]) -> None:
    """Make the work folder, or check that what is in it belongs to the same options."""
    work.mkdir(parents=True, exist_ok=True)
    note = work / "options.json"
    if not note.exists():
        note.write_text(json.dumps(options) + "\n")
    elif json.loads(note.read_text()) != options:
        raise SystemExit(f"{work} holds a run with other options: give another folder, or empty it")


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("task", choices=TASKS)
    options.add_argument("--work", type=Path, required=True, help="folder for the checkpoints")
    options.add_argument("--seed", type=int, default=1)
    return options


if __name__ == "__main__":
    main()
