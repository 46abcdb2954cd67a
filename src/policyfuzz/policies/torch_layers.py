"""Hidden activations of PyTorch networks, seen while their operators run.

Operators are watched instead of modules: TorchScript and exported programs have no modules that could be
hooked, and many modules call their activation functions directly.
"""

from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.policies.network import Arrays, rows_first

#: Operators that have weights, in all ways in which they are called or taken apart.
_WITH_WEIGHTS = {
    "linear",
    "linear_dynamic",
    "linear_relu_dynamic",
    "addmm",
    "mm",
    "addmv",
    "mv",
    "matmul",
    "convolution",
    "_convolution",
    "conv1d",
    "conv2d",
    "conv3d",
    "embedding",
    "lstm",
    "gru",
    "rnn_tanh",
    "rnn_relu",
    "lstm_cell",
    "gru_cell",
    "rnn_tanh_cell",
    "rnn_relu_cell",
    "mkldnn_rnn_layer",
}


def hidden_layers(run: Callable[..., Arrays]) -> Callable[..., Arrays]:
    """The function from what `run` takes to what its layers with weights, but for the first, are given.

    `run` takes blocks (rows, ...) through a PyTorch network; the result is arrays (rows, ...).
    """

    def read(*blocks: NDArray[Any]) -> Arrays:
        with _watch() as watch:
            run(*blocks)
        found = (rows_first(array, len(blocks[0])) for array in watch.found)
        return tuple(array for array in found if array is not None)

    return read


def _watch() -> Any:
    """A context in which PyTorch tells of each operator; `found` is what layers with weights were given."""
    torch = extras.load("torch", "torch")

    class Watch(extras.load("torch.utils._python_dispatch", "torch").TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.found: list[NDArray[Any]] = []
            #: Tensors behind a layer with weights, by their identity; they must not be freed meanwhile.
            self._behind: dict[int, Any] = {}
            self._known: set[tuple[int, int]] = set()  #: place and size of what was found

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            given = [one for one in _tensors(torch, (args, kwargs or {})) if id(one) in self._behind]
            has_weights = func.overloadpacket.__name__ in _WITH_WEIGHTS
            for tensor in given if has_weights else ():
                self._keep(tensor)
            result = func(*args, **(kwargs or {}))
            if has_weights or given:
                self._behind |= {id(one): one for one in _tensors(torch, result)}
            if func._schema.is_mutable:  # the same place holds something else now
                changed = {one.data_ptr() for one in _tensors(torch, args)}
                self._known = {one for one in self._known if one[0] not in changed}
            return result

        def _keep(self, tensor: Any) -> None:
            place = (tensor.data_ptr(), tensor.numel())
            if place not in self._known:  # two layers may be given the same
                self._known.add(place)
                self.found.append(tensor.detach().cpu().numpy().copy())

    return Watch()


def _tensors(torch: Any, value: Any) -> Iterator[Any]:
    """All tensors in `value`, however it holds them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(torch, part)
    elif isinstance(value, dict):
        yield from _tensors(torch, tuple(value.values()))
