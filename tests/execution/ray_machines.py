"""Machines of a Ray cluster, as far as one computer can pretend to have several.

Run as a script it starts a head without cores and two machines with a core each, prints the address, and
then takes lines from its standard input: `kill` ends the machine that was added first, as a power failure
would; `complete` adds machines until there are two. It answers each with a line, and ends with its input.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from policyfuzz.execution.processes.reaper import kill_group

COUNT = 2
#: Has the head notice within seconds that a machine is gone, but not that one is just busy.
FAST_CHECKS = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 3,
}


class Machines:
    """The script, seen from a test."""

    def __init__(self, process):
        self._process = process
        self.address = self._answer()

    def kill(self):
        self._do("kill")

    def complete(self):
        self._do("complete")

    def _do(self, what):
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        assert self._answer() == what

    def _answer(self):
        line = self._process.stdout.readline()
        assert line, "the machines have ended"
        return json.loads(line)


@contextmanager
def machines():
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    try:
        yield Machines(process)
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
        kill_group(process.pid)


def main(folder):
    os.environ["RAY_TMPDIR"] = folder  # read when Ray is imported
    Path(folder, "ray").mkdir()
    from ray.cluster_utils import Cluster

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Ray prints as it likes
    size = {"object_store_memory": 100_000_000}
    cluster = Cluster(
        initialize_head=True,
        head_node_args=size | {"num_cpus": 0, "include_dashboard": False, "_system_config": FAST_CHECKS},
    )
    nodes = [cluster.add_node(num_cpus=1, **size) for _ in range(COUNT)]
    print(json.dumps(cluster.address), file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            cluster.remove_node(nodes.pop(0), allow_graceful=False)
        else:
            nodes += [cluster.add_node(num_cpus=1, **size) for _ in range(COUNT - len(nodes))]
        print(json.dumps(line.strip()), file=answers, flush=True)
    cluster.shutdown()


def descendants(process):
    """Numbers of all processes that `process` has started, directly or not."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
    found, size = {process}, 0
    while len(found) > size:
        size = len(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found - {process}


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    # sockets have short paths at most, so that no folder of a test will do
    with TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as short_folder:
        main(short_folder)
