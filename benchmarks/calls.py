"""Runs `python -m policyfuzz ARGUMENTS`, and writes which of its functions had run by certain moments.

It is started by its path and needs the standard library only, so that any interpreter can run it on the
policyfuzz that is installed there:

    PYTHON benchmarks/calls.py OUT.json fuzz acasxu --max-execs 64
"""

import atexit
import importlib.util
import inspect
import json
import os
import runpy
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

#: Moments are first calls of functions with these names; of some only after another moment.
CAMPAIGN, ROLLOUT, STEP, SUBMIT, SEND = "Campaign.run", "rollout", "step", "submit", "send"
_AFTER = {STEP: ROLLOUT, SEND: SUBMIT}


class Tracer:
    """Collects functions of one package as they are called first, and how many there were at each moment."""

    def __init__(self, package: Path) -> None:
        self._package = f"{package}{os.sep}"
        self._known: dict[CodeType, bool] = {}  #: True for a function of the package
        self._functions: set[tuple[str, str, int]] = set()
        self.moments: dict[str, dict[str, int]] = {}

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Take note of a call; for sys.setprofile."""
        code = frame.f_code
        if event != "call" or not self._known.setdefault(code, self._is_function(code)):
            return
        for name in (code.co_qualname, code.co_name):
            is_due = name in (CAMPAIGN, ROLLOUT, SUBMIT) or _AFTER.get(name) in self.moments
            if is_due and name not in self.moments:
                files = {file for file, _, _ in self._functions}
                self.moments[name] = {"functions": len(self._functions), "files": len(files)}
        self._functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    def _is_function(self, code: CodeType) -> bool:
        """True for functions with a name: no bodies of modules and classes, lambdas or comprehensions."""
        is_named = bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")
        return is_named and code.co_filename.startswith(self._package)


def main(out: Path, arguments: list[str]) -> None:
    """Run policyfuzz with `arguments`, and write moments and imported modules into `out` at its end."""
    spec = importlib.util.find_spec("policyfuzz")
    if spec is None or spec.origin is None:
        sys.exit("there is no policyfuzz")
    package = Path(spec.origin).parent
    tracer = Tracer(package)
    process = os.getpid()

    @atexit.register
    def write() -> None:
        if os.getpid() == process:  # and not a worker that was forked
            facts = {"package": str(package), "moments": tracer.moments}
            out.write_text(json.dumps(facts | {"modules": sorted(sys.modules)}))

    sys.argv = ["policyfuzz", *arguments]
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    runpy.run_module("policyfuzz", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
