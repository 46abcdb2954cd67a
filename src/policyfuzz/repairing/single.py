"""One network that a policy by URI consists of: what it is given, and how its outputs become actions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Target
from policyfuzz.policies.network import NetworkPolicy
from policyfuzz.repairing.networks import Decision, Examples
from policyfuzz.repairing.states import States

_HINT = (
    "one network without memory that sees numbers can be; export --what minari writes episodes for training"
    " elsewhere"
)


def acting_policy(target: Target) -> NetworkPolicy:
    """The policy of `target`; refuses one with memory, or that sees several things at once."""
    policy = target.policy()
    if not isinstance(policy, NetworkPolicy):
        raise UsageError(f"{target.policy_name} cannot be repaired: it is no network", _HINT)
    if policy.network.states:
        raise UsageError(
            f"{target.policy_name} cannot be repaired: it remembers a state for each episode", _HINT
        )
    if len(policy.network.layouts) != 1:
        raise UsageError(
            f"{target.policy_name} cannot be repaired: it sees a dictionary of observations", _HINT
        )
    space = target.actions
    is_one_kind = space is not None and (space.is_whole.all() or not space.is_whole.any())
    if space is None or not is_one_kind or (space.is_whole.any() and len(space.low) > 1):
        raise UsageError(
            f"{target.policy_name} cannot be repaired: its actions are neither one choice nor numbers", _HINT
        )
    return policy


class SingleNetwork:
    """A network between what a policy is given and what it does."""

    def __init__(
        self,
        target: Target,
        forward: Callable[[Any], Any],
        parameters: list[Any],
        write: Callable[[Path], None],
        layout: Callable[[NDArray[Any]], NDArray[Any]],
        is_rescaled: bool = False,
    ) -> None:
        """`forward` maps a tensor of what `layout` makes of observations (m, ...) to outputs (m, ...)."""
        assert target.actions is not None
        self._space, self._forward, self._layout = target.actions, forward, layout
        self._parameters, self.write, self._is_rescaled = parameters, write, is_rescaled
        self.decision = Decision.HIGHEST if self._space.is_whole[0] else Decision.NUMBERS
        if not parameters:
            raise UsageError(
                f"{target.policy_name} cannot be repaired: it has no weights that can be changed",
                "export it with its weights as parameters, not as constants",
            )

    def examples(self, states: States) -> Examples:
        actions = states.actions
        if self.decision is Decision.HIGHEST:
            actions = actions - self._space.low
        return Examples(
            self._layout(states.observations).astype(np.float32), np.zeros(len(states), np.int64), actions
        )

    def parameters(self) -> list[Any]:
        return self._parameters

    def outputs(self, inputs: Any, which: Any) -> Any:
        outputs = self._forward(inputs)
        outputs = outputs.reshape(len(inputs), -1)
        if self.decision is Decision.HIGHEST:
            choices = int(self._space.high[0] - self._space.low[0]) + 1
            if outputs.shape[1] != choices:
                raise UsageError(
                    f"the policy cannot be repaired: it gives {outputs.shape[1]} numbers for"
                    f" {choices} choices",
                    "export the scores of all actions, without the step that takes the best",
                )
        if not self._is_rescaled:
            return outputs
        torch = extras.load("torch", "repair")
        low, high = (torch.tensor(one, dtype=outputs.dtype) for one in (self._space.low, self._space.high))
        return low + 0.5 * (outputs + 1.0) * (high - low)
