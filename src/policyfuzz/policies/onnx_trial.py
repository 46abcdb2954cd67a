"""A process in which an unknown ONNX network is built and run first: it can be ended, and has little memory.

A network is data, but it may ask for 2^60 rounds of a loop or for petabytes. onnxruntime has no limit for
either, and what it calculates while it builds a network cannot be interrupted from within.
"""

import io
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import IO, Any

import numpy as np

from policyfuzz.core.errors import PolicyError
from policyfuzz.core.zip_files import read_arrays
from policyfuzz.policies.onnx_signature import Port

#: For building a network and for each of its first steps; large ones take seconds.
TRIAL_SECONDS = 60.0
#: Of memory beside the network itself, several times over.
_ROOM_BYTES = 4 << 30
_COPIES = 8
_MOST_CPU_SECONDS = 600


class TrialEnded(PolicyError):
    """The network never answered, or took its process with it."""


class BrokenNetwork(PolicyError):
    """onnxruntime cannot build the network."""


class TrialSession:
    """Runs a network in a process of its own; `inputs`, `outputs` and `run` as those of `onnx.Session`."""

    def __init__(self, content: bytes, name: str) -> None:
        """`content` is a whole network, from the file `name`."""
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the coordinator
            env=_environment(),
        )
        try:
            ports = json.loads(self._asked(content, BrokenNetwork))
        except BaseException:
            self.close()
            raise
        self.inputs, self.outputs = (
            [Port(port, kind, tuple(shape)) for port, kind, shape in side] for side in ports
        )

    def __enter__(self) -> "TrialSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, outputs: list[str], feed: dict[str, Any]) -> list[Any]:
        """The values of `outputs` for inputs by name."""
        names, data = list(feed), io.BytesIO()
        np.savez(data, allow_pickle=False, **{f"a{place}": feed[name] for place, name in enumerate(names)})
        self._send(json.dumps([outputs, names]).encode())
        arrays = read_arrays(self._asked(data.getvalue()), _ROOM_BYTES)
        return [arrays[f"a{place}"] for place in range(len(outputs))]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        with suppress(BrokenPipeError):
            self._process.communicate()

    def _asked(self, message: bytes, failure: type[PolicyError] = PolicyError) -> bytes:
        """The answer to `message`, in time."""
        watch = Timer(TRIAL_SECONDS, self._process.kill)
        watch.start()
        try:
            self._send(message)
            is_good = self._process.stdout is not None and self._process.stdout.read(1) == b"+"
            answer = _receive(self._process.stdout)
        except EOFError:
            raise self._gone(is_late=not watch.is_alive()) from None
        finally:
            watch.cancel()
        if not is_good:
            raise failure(answer.decode(errors="replace"))
        return answer

    def _send(self, message: bytes) -> None:
        with suppress(BrokenPipeError):  # then there is no answer either
            _send(self._process.stdin, message)

    def _gone(self, is_late: bool) -> TrialEnded:
        if is_late:
            return TrialEnded(
                f"{self._name} was not built and run within {TRIAL_SECONDS:g} s",
                "does it hold a loop that does not end, or very large tensors?",
            )
        return TrialEnded(
            f"{self._name} ended the process in which it was tried",
            "it may ask for more memory than there is, or be damaged",
        )


def _environment() -> dict[str, str]:
    """Environment variables that make the process import this very package."""
    home = Path(__file__).parents[2]
    path = os.environ.get("PYTHONPATH", "")
    if "site-packages" not in home.parts:
        path = f"{home}{os.pathsep}{path}" if path else str(home)
    return os.environ | ({"PYTHONPATH": path} if path else {})


def serve() -> None:
    """Build the network on stdin, then run it as often as asked."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    content = _receive(requests)
    _limit_resources(_ROOM_BYTES + _COPIES * len(content))
    from policyfuzz.policies.onnx import Session

    try:
        session = Session(content)
        _answer(answers, json.dumps([_plain(session.inputs), _plain(session.outputs)]).encode())
    except Exception as error:  # onnxruntime has no base class for its errors
        return _answer(answers, _text(error), is_good=False)
    with suppress(EOFError):
        while True:
            outputs, names = json.loads(_receive(requests))
            feed = read_arrays(_receive(requests), _ROOM_BYTES)
            try:
                values = session.run(outputs, {name: feed[f"a{place}"] for place, name in enumerate(names)})
                data = io.BytesIO()
                np.savez(
                    data,
                    allow_pickle=False,
                    **{f"a{place}": np.asarray(one) for place, one in enumerate(values)},
                )
                _answer(answers, data.getvalue())
            except Exception as error:  # as above
                _answer(answers, _text(error), is_good=False)
    return None


def _plain(ports: list[Port]) -> list[tuple[str, str, tuple[Any, ...]]]:
    return [(port.name, port.type, port.shape) for port in ports]


def _text(error: Exception) -> bytes:
    return (str(error).strip() or type(error).__name__).encode()


def _answer(file: IO[bytes], message: bytes, is_good: bool = True) -> None:
    file.write(b"+" if is_good else b"-")
    _send(file, message)


def _send(file: IO[bytes] | None, message: bytes) -> None:
    if file is not None:
        file.write(len(message).to_bytes(8, "little") + message)
        file.flush()


def _receive(file: IO[bytes] | None) -> bytes:
    size = int.from_bytes(_exactly(file, 8), "little")
    return _exactly(file, size)


def _exactly(file: IO[bytes] | None, size: int) -> bytes:
    content = b"" if file is None else file.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _limit_resources(room: int) -> None:
    """Let this process have `room` bytes more than now, and be the first to go if the machine has fewer.

    The limit of its time counts if the process that started it has gone.
    """
    with suppress(ImportError, OSError, ValueError):  # not on every system
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_SECONDS, _MOST_CPU_SECONDS))
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    serve()
