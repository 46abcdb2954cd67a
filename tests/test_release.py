"""What is installed and what is shipped: versions, hashes, licences of models, files of the wheel."""

import re
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
MODELS = ROOT / "src" / "policyfuzz" / "models"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: Markers are left out where they do not matter.
Locked = dict[str, list[tuple[str, list[str]]]]


def read_lock(path: Path) -> Locked:
    """Versions and hashes of each package: several where they depend on the Python."""
    found: Locked = {}
    text = re.sub(r"\s*\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.M))
    for line in text.splitlines():
        requirement, *hashes = re.split(r" --hash=", line.strip())
        name, version = requirement.partition(";")[0].strip().split("==")
        found.setdefault(canonicalize_name(name), []).append((version, hashes))
    return found


def pinned_versions() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


def required(extra: str) -> set[Requirement]:
    """Requirements of an extra, with those of the extras that it names."""
    found = set()
    for text in PROJECT["project"]["optional-dependencies"][extra]:
        requirement = Requirement(text)
        if requirement.name == "policyfuzz":
            found |= set().union(*map(required, requirement.extras))
        else:
            found.add(requirement)
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_locked_package_has_hashes_and_the_version_of_the_constraints(lock):
    locked, pinned = read_lock(lock), pinned_versions()
    assert locked
    for name, entries in locked.items():
        for version, hashes in entries:
            assert hashes, f"{name} has no hash: make lock"
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), name
            assert pinned.get(name) == version, f"{name} differs from constraints.txt: make lock"


def test_every_pinned_package_is_locked_except_for_torch():
    locked = set().union(*map(read_lock, LOCKS))
    assert pinned_versions().keys() - locked == {"torch"}


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("build", set(map(Requirement, PROJECT["build-system"]["requires"]))),
        ("run", set(map(Requirement, PROJECT["project"]["dependencies"]))),
        ("extras", required("all")),
        ("dev", required("dev")),
        ("torch", {one for one in required("sb3") if one.name != "torch"}),
    ],
)
def test_locks_hold_what_the_project_asks_for(lock, requirements):
    locked = read_lock(ROOT / "requirements" / f"{lock}.txt")
    for requirement in requirements:
        versions = [version for version, _ in locked[canonicalize_name(requirement.name)]]
        assert all(requirement.specifier.contains(version) for version in versions), str(requirement)


@pytest.mark.parametrize("path", [ROOT / "constraints.txt", *LOCKS], ids=lambda path: path.stem)
def test_pins_name_no_place_to_download_from(path):
    assert not re.search(r"://|index-url|find-links|trusted-host", path.read_text())


@pytest.mark.parametrize("goal", ["demo", "extras", "test"])
def test_make_installs_nothing_from_elsewhere_without_hashes(goal, tmp_path):
    dry_run = ["make", "--dry-run", "--always-make", "--directory", ROOT, f"VENV={tmp_path}", goal]
    printed = subprocess.run(dry_run, capture_output=True, text=True, check=True).stdout
    installs = re.findall(r"pip .* install .*", printed)
    assert any("--require-hashes" in line for line in installs)
    assert [line for line in installs if "--require-hashes" not in line and "--no-index" not in line] == []


def test_every_model_says_under_which_licence_it_is():
    folders = {
        path.parent for pattern in ("*.npz", "*.onnx", "*.pt", "*.zip") for path in MODELS.rglob(pattern)
    }
    assert len(folders) >= 6
    for folder in folders:
        licence = re.search(r"^\| licence \| (.+) \|$", (folder / "CARD.md").read_text(), re.M)
        assert licence, f"{folder.name}/CARD.md has no line of its licence"
        assert licence[1].startswith(PROJECT["project"]["license"])


@pytest.mark.slow
def test_wheel_holds_cards_weights_and_licence(tmp_path):
    wheels = pytest.importorskip("hatchling.builders.wheel")
    (wheel,) = wheels.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {f"policyfuzz/models/{path.relative_to(MODELS)}" for path in MODELS.glob("*/*.*")}
    shipped = {name for name in shipped if not name.endswith(".pyc")}
    assert {name for name in shipped if name.endswith("CARD.md")}
    assert shipped <= names
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert not [name for name in names if not name.startswith(("policyfuzz/", "policyfuzz-"))]
