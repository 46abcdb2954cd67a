"""Choose among the rounds of a training: `python -m gym_ppo.choose TASK`.

All rounds of its second half are scored on a few drawn episodes, the best of them on many more; the one that
crashes least is written, of equals the one with the higher mean return.
"""

import argparse
import shutil
from pathlib import Path

from gym_ppo.scores import Scores, score
from gym_ppo.tasks import TASKS


def main() -> None:
    """Print the scores and write the winner."""
    arguments = parser().parse_args()
    choose(arguments)


def choose(arguments: argparse.Namespace) -> Path:
    """The network that was chosen; it lies in `out`, too."""
    target = TASKS[arguments.task].target
    networks = sorted(arguments.work.glob("round-*[0-9].npz"))
    if not networks:
        raise SystemExit(f"no networks in {arguments.work}: is it the work folder of gym_ppo.train?")
    screened = _ranked(target, networks[len(networks) // 2 :], arguments.episodes, arguments.seed)
    finals = _ranked(target, screened[: arguments.finalists], arguments.final_episodes, arguments.seed + 1)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(finals[0], arguments.out)
    return finals[0]


def _ranked(target: str, networks: list[Path], episodes: int, seed: int) -> list[Path]:
    """`networks`, the best first; prints their scores."""
    print(f"{episodes} episodes each, seed {seed}")
    scores: dict[Path, Scores] = {}
    for network in networks:
        scores[network] = score(target, network, episodes, seed)
        print(f"{network.stem}  {scores[network]}", flush=True)
    return sorted(networks, key=lambda network: (scores[network].crash_rate, -scores[network].returns.mean()))


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("task", choices=TASKS)
    options.add_argument("--work", type=Path, required=True, help="folder of the training")
    options.add_argument("--out", type=Path, required=True, help="the networks.npz to write")
    options.add_argument("--episodes", type=int, default=256, help="for all of them")
    options.add_argument("--finalists", type=int, default=4)
    options.add_argument("--final-episodes", type=int, default=2000)
    options.add_argument("--seed", type=int, default=100)
    return options


if __name__ == "__main__":
    main()
