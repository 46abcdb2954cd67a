"""`torchscript:FILE`: modules saved by `torch.jit`, and archives of `torch.export`.

    torchscript:FILE             forward(observations) gives actions or scores of actions
    torchscript:FILE?recurrent   forward(observations, state) gives (actions, state); found out where
                                 forward asks for it. It starts with initial_state(batch) if the module
                                 has that method, and else with zeros like what comes of the state None
    torchscript:FILE?rescale     outputs lie between -1 and 1 and are stretched to the bounds of the actions

Both formats need trust. TorchScript is a restricted language, but not a harmless one: its operators read and
write files (`torch.from_file`, `torch.save`). Archives of `torch.export` hold pickles.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from policyfuzz import extras
from policyfuzz.errors import PolicyError
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri.address import Address
from policyfuzz.policies.uri.file_kinds import not_a_file_of, scheme_of
from policyfuzz.policies.uri.network import NetworkPolicy
from policyfuzz.policies.uri.torch_network import settled, takes_state

_OPTIONS = {
    "recurrent": "forward(observations, state) gives (actions, state)",
    "rescale": "outputs to the bounds of the actions",
}


def load(rest: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:
    """The module in the file that `rest` names."""
    address = Address.parse("torchscript", rest, _OPTIONS)
    path = address.file()
    if scheme_of(path) != "torchscript":
        raise not_a_file_of("torchscript", path, "not an archive of TorchScript")
    if not trust:
        raise PolicyError(
            f"{path} can run code: TorchScript reads and writes files, torch.export archives hold pickles",
            hint="if you know where it comes from, add --trust; an ONNX file needs none",
        )
    module = _loaded(path)
    network = settled(
        module,
        spaces,
        path.name,
        is_recurrent="recurrent" in address.options or takes_state(module),
        rescale="rescale" in address.options,
        rows=module.rows,
    )
    return LoadedPolicy(
        make=lambda: NetworkPolicy(network, spaces),
        name=f"torchscript:{path.name}",
        uri=address.uri(path),
        sha256=address.sha256(module.content),
        notes=network.notes,
    )


def _loaded(path: Path) -> "StoredModule":
    extras.load("torch", "torch")
    try:
        return StoredModule(path.read_bytes())
    except (RuntimeError, ValueError, OSError, KeyError) as error:
        raise not_a_file_of("torchscript", path, str(error).strip().splitlines()[0]) from error


class StoredModule:
    """A module that was loaded from a file, and is pickled as the bytes of that."""

    def __init__(self, content: bytes) -> None:
        torch = extras.load("torch", "torch")
        with ZipFile(io.BytesIO(content)) as archive:
            is_export = any(name.endswith("archive_format") for name in archive.namelist())
        self.content = content
        self.rows: int | None = None  #: that it insists on
        file = io.BytesIO(content)
        with _quiet():
            if is_export:
                self._module, self.rows = _exported(torch.export.load(file))
            else:
                self._module = torch.jit.load(file, map_location="cpu").eval()

    def __reduce__(self) -> Any:
        return StoredModule, (self.content,)

    def __call__(self, *arguments: Any) -> Any:
        return self._module(*arguments)

    def __getattr__(self, name: str) -> Any:
        """Methods and weights of the module itself."""
        return getattr(self._module, name)


def _exported(program: Any) -> tuple[Any, int | None]:
    """The module of a `torch.export` archive; most are exported for one number of rows."""
    examples, _ = program.example_inputs
    if len(examples) != 1:
        raise PolicyError(
            f"the exported program takes {len(examples)} arguments, expected the observations alone",
            hint="save a module with memory as TorchScript or ONNX instead",
        )
    node = next(node for node in program.graph.nodes if node.name in program.graph_signature.user_inputs)
    rows = node.meta["val"].shape[0]
    return program.module(), rows if isinstance(rows, int) else None


@contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch calls TorchScript deprecated, which is no news to who still has such a file."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.load` is deprecated", DeprecationWarning)
        warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)`", FutureWarning)
        yield
