"""From a name to the film of a confirmed crash, with every model that comes with a simulator."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


#: Episodes of driving take a second each: a campaign that is known to crash within the first dozens.
DRIVING = ("--seed", 2, "--samples", 8, "--batch", 4)


def needing(package: str, target: str, episodes: int, *options: object) -> object:
    missing = find_spec(package) is None
    marks = pytest.mark.skipif(missing, reason=f"needs the package {package}")
    return pytest.param(target, episodes, options, id=target, marks=marks)


@pytest.mark.parametrize(
    ("target", "episodes", "options"),
    [
        pytest.param("coopnavi", 100_000, (), id="coopnavi"),
        needing("Box2D", "bipedal", 5000),
        needing("metadrive", "driving-rl", 1000, *DRIVING),
        needing("metadrive", "driving-il", 1000, *DRIVING),
    ],
)
def test_shipped_model_crashes_and_is_filmed(cli, target, episodes, options):
    limits = ["--max-findings", 1, "--max-execs", episodes, *options]
    code, out, _ = cli("fuzz", target, *limits, "--ui", "none", "--json", "-o", "c")
    assert code == 1, out
    code, out, _ = cli("replay", "c", 1, "--json")
    report = json.loads(out)
    assert code == 1
    assert report["is_identical"]
    assert Path(report["picture"]).read_bytes().startswith(b"\x89PNG")
    assert Path(report["film"]).stat().st_size > 10_000
