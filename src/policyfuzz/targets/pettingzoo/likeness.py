"""Whether agents see the same in environments that draw themselves and in those that do not.

In some the observations are pictures, and stay black where nobody asked for pictures.
"""

from collections.abc import Callable
from typing import Any

#: Steps in which a difference would show.
_STEPS = 5


def is_seen_alike(make_one: Callable[[], Any], make_other: Callable[[], Any]) -> bool:
    """True where random actions from one seed lead to equal observations in both environments."""
    from gymnasium.utils.env_checker import data_equivalence

    one, other = make_one(), make_other()
    try:
        seen = [env.reset(seed=0)[0] for env in (one, other)]
        for step in range(_STEPS):
            if not data_equivalence(*seen):
                return False
            actions = {agent: _drawn(one.action_space(agent), step) for agent in one.agents}
            if not actions:
                break
            seen = [env.step(actions)[0] for env in (one, other)]
        return bool(data_equivalence(*seen))
    except Exception:  # an environment in trouble; nothing is known of it
        return False
    finally:
        one.close()
        other.close()


def _drawn(space: Any, seed: int) -> Any:
    """An action."""
    space.seed(seed)
    return space.sample()
