"""Networks as policies, run in blocks of one size, so that a row's result does not depend on its batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.activations import Activations, NoActivations
from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.spaces import rescaled, sample_observations, to_actions
from policyfuzz.policies.uri import Address

#: Rows that a network sees at once. BLAS rounds a row differently for other numbers of rows, but alike at
#: every position of a block of this size and whatever its other rows are.
BLOCK_ROWS = 64

Arrays = tuple[NDArray[Any], ...]

_DETERMINISTIC_HINT = "it must be deterministic: take the most likely or mean action; no dropout (eval mode)"


@dataclass(frozen=True, slots=True)
class Network:
    """A function of blocks of rows; what it remembers about an episode goes in and comes out."""

    run: Callable[..., Arrays]  #: inputs and states (rows, ...) to outputs and new states (rows, ...)
    #: From observations (m, ...) to each of the inputs.
    layouts: tuple[Callable[[NDArray[Any]], NDArray[Any]], ...]
    states: Arrays = ()  #: of one episode at its beginning
    rows: int | None = BLOCK_ROWS  #: in each call; None if it keeps rows apart by itself
    rescale: bool = False  #: outputs lie between -1 and 1, and are stretched to the bounds of the actions
    notes: tuple[str, ...] = ()
    may_squash: bool = True  #: the last layer may be a tanh
    gives_actions: bool = False  #: outputs are the actions of the environment as they are
    #: As `run`, but gives what each hidden layer is (rows, ...); None if that cannot be known.
    hidden: Callable[..., Arrays] | None = None
    #: What `run` and then `hidden` give, of one pass and to the same bits; None if that takes two.
    both: Callable[..., Arrays] | None = None

    def with_copies(self, rows: int) -> "Network":
        """The same, which takes exactly this many `rows`, as a network of one row: it gets copies of that.

        In small blocks even the position of a row changes how it is rounded, so other rows cannot fill them.
        """
        hidden = None if self.hidden is None else _with_copies(self.hidden, rows)
        both = None if self.both is None else _with_copies(self.both, rows)
        return replace(self, run=_with_copies(self.run, rows), hidden=hidden, both=both, rows=1)


class NetworkPolicy:
    """A network that acts, with its states for each episode."""

    def __init__(self, network: Network, spaces: Spaces) -> None:
        self._network, self._spaces = network, spaces
        self._states: list[NDArray[Any]] = []
        self._hidden_rows: int | None = 0  #: that go through `hidden` at once; 0 if that was not tried yet

    @property
    def network(self) -> Network:
        """The network that acts."""
        return self._network

    @property
    def spaces(self) -> Spaces:
        """What it acts in."""
        return self._spaces

    def begin(self, count: int) -> None:
        self._states = [np.repeat(state[None], count, axis=0) for state in self._network.states]

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return self.decode(self.outputs(observations, rows))

    def outputs(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """What the network itself gives (m, ...) for `observations` of episodes `rows` (m,)."""
        outputs, *states = _through(self._network.run, self._given(observations, rows), self._network.rows)
        self._remember(states, rows)
        return outputs

    def activations(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> Activations:
        network = self._network
        if network.hidden is None:
            raise NoActivations("the policy is a function, and what goes on inside it cannot be read")
        if self._hidden_rows == 0:
            self._hidden_rows = network.rows if _hidden_keeps_rows_apart(network, self._spaces) else 1
        return Activations.hidden(
            _through(network.hidden, self._given(observations, rows), self._hidden_rows)
        )

    def act_and_activations(
        self, observations: NDArray[Any], rows: NDArray[np.int64]
    ) -> tuple[NDArray[Any], Activations]:
        """Both of one pass, if the network can."""
        network = self._network
        if network.both is None:
            inside = self.activations(observations, rows)
            return self.act(observations, rows), inside
        outputs, *rest = _through(network.both, self._given(observations, rows), network.rows)
        inside = Activations.hidden(rest[len(self._states) :])
        self._remember(rest[: len(self._states)], rows)
        return self.decode(outputs), inside

    def _given(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> list[NDArray[Any]]:
        """What the network takes: its inputs, and its states of episodes `rows`."""
        inputs = [layout(observations) for layout in self._network.layouts]
        return [*inputs, *(state[rows] for state in self._states)]

    def _remember(self, states: Sequence[NDArray[Any]], rows: NDArray[np.int64]) -> None:
        for memory, state in zip(self._states, states, strict=True):
            memory[rows] = state

    def decode(self, outputs: NDArray[Any]) -> NDArray[Any]:
        """Actions for `outputs`."""
        if self._network.gives_actions:
            return outputs
        action = self._spaces.action
        return to_actions(rescaled(outputs, action) if self._network.rescale else outputs, action)


def loaded_network(
    network: Network, spaces: Spaces, address: Address, path: Path, *contents: bytes
) -> LoadedPolicy:
    """The policy of `network`, read from the `contents` of the file at `path`, after a trial in `spaces`."""
    network = validated(network, spaces, path.name)
    return LoadedPolicy(
        make=lambda: NetworkPolicy(network, spaces),
        name=f"{address.scheme}:{path.name}",
        uri=address.uri(path),
        sha256=address.sha256(*contents),
        notes=network.notes,
    )


def validated(network: Network, spaces: Spaces, name: str, random_hint: str = _DETERMINISTIC_HINT) -> Network:
    """`network` after a trial on sample observations.

    Refuses one that does not act in `spaces`. Refuses one that gives two different actions for the same
    observation; `random_hint` says the likely fix. One whose rows depend on each other, if only in the last
    bit, runs row by row.
    """
    observations = sample_observations(spaces.observation, BLOCK_ROWS)
    outputs = trial_outputs(network, spaces, observations)
    if not _equal(outputs, trial_outputs(network, spaces, observations)):
        raise PolicyError(
            f"{name} gives two different actions for the same observation",
            random_hint,
        )
    notes = list(network.notes)
    if not _keeps_rows_apart(network, spaces, observations, outputs):
        network = replace(network, rows=1)
        trial_outputs(network, spaces, observations[:1])
        notes.append("runs row by row, since its rows of a batch depend on each other")
    if network.may_squash and not network.rescale and _looks_squashed(outputs, spaces.action):
        notes.append(
            "outputs stayed within -1 and 1 in a trial, and actions go further:"
            " if the network ends in a tanh, add ?rescale"
        )
    return replace(network, notes=tuple(notes))


def trial_outputs(network: Network, spaces: Spaces, observations: NDArray[Any]) -> NDArray[Any]:
    """Outputs (2, m, ...) of two steps of m episodes that see the same `observations` (m, ...) twice."""
    policy = NetworkPolicy(network, spaces)
    policy.begin(len(observations))
    rows = np.arange(len(observations))
    steps = [policy.outputs(observations, rows) for _ in range(2)]
    for outputs in steps:
        policy.decode(outputs)
    return np.stack(steps)


def _keeps_rows_apart(
    network: Network, spaces: Spaces, observations: NDArray[Any], outputs: NDArray[Any]
) -> bool:
    """True if `outputs` of `observations` are the same in another order, and for one of them alone."""
    if network.rows == 1:
        return True
    turned = trial_outputs(network, spaces, observations[::-1])
    alone = trial_outputs(network, spaces, observations[:1])
    return _equal(outputs[:, ::-1], turned) and _equal(outputs[:, :1], alone)


def _hidden_keeps_rows_apart(network: Network, spaces: Spaces) -> bool:
    """True if hidden layers of sample observations are the same in another order."""
    if network.rows in (None, 1) or network.hidden is None:
        return True
    sample = sample_observations(spaces.observation, BLOCK_ROWS)
    inputs = [layout(sample) for layout in network.layouts]
    states = [np.repeat(state[None], BLOCK_ROWS, axis=0) for state in network.states]
    forth = network.hidden(*inputs, *states)
    back = network.hidden(*(array[::-1] for array in inputs), *states)
    return all(_equal(one, other[::-1]) for one, other in zip(forth, back, strict=True))


def _through(function: Callable[..., Arrays], arrays: Sequence[NDArray[Any]], size: int | None) -> Arrays:
    """All rows of `arrays` through `function`, `size` at once; None for all."""
    return tuple(function(*arrays)) if size is None else in_blocks(function, *arrays, size=size)


def _equal(first: NDArray[Any], second: NDArray[Any]) -> bool:
    return first.shape == second.shape and bool(np.array_equal(first, second))


def _looks_squashed(outputs: NDArray[Any], space: Any) -> bool:
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if low is None or high is None or not np.issubdtype(space.dtype, np.floating):
        return False
    bounded = np.isfinite(low).all() and np.isfinite(high).all()
    return bool(bounded and max(abs(low).max(), abs(high).max()) > 1 and abs(outputs).max() <= 1)


def _with_copies(run: Callable[..., Arrays], rows: int) -> Callable[..., Arrays]:
    if rows == 1:
        return run

    def run_one(*arrays: NDArray[Any]) -> Arrays:
        return tuple(result[:1] for result in run(*(np.repeat(array, rows, axis=0) for array in arrays)))

    return run_one


def rows_first(array: NDArray[Any], rows: int) -> NDArray[Any] | None:
    """`array` of something inside a network as (rows, ...); None if it does not belong to `rows`."""
    if rows == 1:
        return array.reshape(1, -1)
    if rows in array.shape:
        return np.moveaxis(array, array.shape.index(rows), 0)
    # several positions of each row, such as steps of a sequence
    return array.reshape(rows, -1) if array.ndim and array.size and len(array) % rows == 0 else None


def in_blocks(function: Callable[..., Arrays], *arrays: NDArray[Any], size: int = BLOCK_ROWS) -> Arrays:
    """All rows of `arrays` (m, ...), m >= 1, through `function`, which is given `size` rows each time.

    `function` takes one array (size, ...) for each of `arrays`, in their order, and gives a tuple of
    arrays (size, ...); the result is the same tuple for all rows, arrays (m, ...). Copies of the first row
    fill the last block; what comes of them is left out. Structured arrays are treated like all others.
    """
    count = len(arrays[0])
    if count == size:
        return tuple(function(*arrays))
    parts = []
    for start in range(0, count, size):
        blocks = [_block(array, start, size) for array in arrays]
        parts.append([result[: count - start] for result in function(*blocks)])
    if len(parts) == 1:
        return tuple(parts[0])
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _block(array: NDArray[Any], start: int, size: int) -> NDArray[Any]:
    """The rows of `array` from `start` on, exactly `size` of them."""
    rows = array[start : start + size]
    if len(rows) == size:
        return rows
    block = np.empty((size, *array.shape[1:]), array.dtype)
    block[: len(rows)] = rows
    block[len(rows) :] = array[0]
    return block
