"""Uses an installed PolicyFuzz in all ways that need no optional package, in an empty folder without network.

    cd EMPTY && unshare --map-root-user --net VENV/bin/python -I scripts/try_wheel.py

Prints one line. --onnx tries a policy of that extra only. --online does not insist on having no network.
"""

import errno
import json
import platform
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

COMMAND = str(Path(sysconfig.get_path("scripts")) / "policyfuzz")
RIPPLE = "ripple:dimensions=3,probability=0.003"
PYTHON_API = """
import policyfuzz as p
result = p.fuzz("acasxu", max_execs=300, out="from-python", progress=False)
assert p.open_result("from-python").progress.executions == result.progress.executions == 300
"""
ONNX = """
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
weights = numpy_helper.from_array(np.array([[0, 1], [0, 1], [0, 9], [0, 2]], np.float32), "weights")
inputs = [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", 4])]
outputs = [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["batch", 2])]
nodes = [helper.make_node("MatMul", ["observation", "weights"], ["action"])]
graph = helper.make_graph(nodes, "controller", inputs, outputs, [weights])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "controller.onnx")
"""


class Trial:
    """Runs steps one after another; the first that fails ends it with all that was printed."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def run(self, name: str, *command: str, codes: tuple[int, ...] = (0,), makes: str = "") -> str:
        """Run a command; its code must be one of `codes`, and the file it `makes` must be there."""
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in codes or "Traceback" in done.stderr or (makes and not Path(makes).exists()):
            sys.exit(f"{name} failed, exit code {done.returncode}: {command}\n{done.stdout}{done.stderr}")
        self.steps.append(name)
        return done.stdout

    def policyfuzz(self, *arguments: str, codes: tuple[int, ...] = (0,), makes: str = "") -> str:
        """Run a verb of the command line."""
        return self.run(arguments[0].lstrip("-"), COMMAND, *arguments, codes=codes, makes=makes)

    def python(self, name: str, code: str) -> str:
        """Run `code`; warnings are errors."""
        return self.run(name, sys.executable, "-W", "error", "-c", code)


def has_network() -> bool:
    """False if the kernel knows no way to any other machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation; nothing is sent
        except OSError as error:
            return error.errno != errno.ENETUNREACH
    return True


def main() -> None:
    """Take all steps, and say which."""
    is_cut = not has_network()
    if not is_cut and "--online" not in sys.argv:
        sys.exit("there is a network: run it under unshare --net, or add --online")
    trial = Trial()
    if "--onnx" in sys.argv:
        use_onnx(trial)
        print("and an onnx policy")
        return
    use_everything(trial)
    network = "without network" if is_cut else "WITH network, which could not be cut"
    print(f"Python {platform.python_version()}, {network}: {', '.join(trial.steps)}")


def use_everything(trial: Trial) -> None:
    """Every verb, the Python API, and a target of one's own."""
    trial.policyfuzz("--version")
    names = "import policyfuzz as p; print(p.__file__, len([getattr(p, name) for name in p.__all__]))"
    if sys.prefix not in trial.python("public names", names):
        sys.exit("policyfuzz is not the installed one")
    trial.policyfuzz("targets")
    trial.policyfuzz("check", "acasxu")
    fuzz = ("fuzz", "acasxu", "--max-execs", "2000", "--ui", "none")
    trial.policyfuzz(*fuzz, "-o", "inline", codes=(0, 1))
    trial.policyfuzz("fuzz", RIPPLE, "--max-execs", "2000", "--ui", "none", "-o", "one", codes=(1,))
    workers = ("fuzz", RIPPLE, "--max-execs", "2000", "--ui", "none", "-o", "two", "-j", "2")
    trial.policyfuzz(*workers, codes=(1,))
    one, two = (trial.policyfuzz("show", folder, "--all", "--json") for folder in ("one", "two"))
    if not json.loads(one) or [f["input"] for f in json.loads(one)] != [f["input"] for f in json.loads(two)]:
        sys.exit("two workers found something else than one process")
    trial.policyfuzz("status", "two")
    trial.policyfuzz("export", "two", "-o", "findings.csv", makes="findings.csv")
    trial.policyfuzz("replay", "two", "1", codes=(1,), makes="two/findings/1.png")
    trial.python("Python API", PYTHON_API)
    trial.policyfuzz("init", makes="my_target.py")
    own = ("fuzz", "my_target.py:make_target", "--max-execs", "500", "--ui", "none", "-o", "own")
    trial.policyfuzz(*own, codes=(0, 1))


def use_onnx(trial: Trial) -> None:
    """Write a network, and fuzz it."""
    trial.python("onnx", ONNX)
    policy = ("gym:CartPole-v1", "--policy", "onnx:controller.onnx")
    trial.policyfuzz("fuzz", *policy, "--max-execs", "300", "--ui", "none", "-o", "onnx", codes=(0, 1))


if __name__ == "__main__":
    main()
