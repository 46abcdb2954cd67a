"""Score a network on held-out episodes: `python -m gym_ppo.evaluate TASK`. Needs no torch."""

import argparse
from pathlib import Path

from gym_ppo.scores import score
from gym_ppo.tasks import TASKS


def main() -> None:
    """Print the scores of the card."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("task", choices=TASKS)
    options.add_argument("--networks", type=Path, required=True)
    options.add_argument("--episodes", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=777)
    arguments = options.parse_args()
    target = TASKS[arguments.task].target
    scores = score(target, arguments.networks, arguments.episodes, arguments.seed)
    print(
        f"{target}: {arguments.episodes} drawn episodes, seed {arguments.seed}; intervals are 95 %\n{scores}"
    )


if __name__ == "__main__":
    main()
