"""Writes requirements/*.txt, what make installs: hashes of every file, versions from constraints.txt.

A package that constraints.txt does not name yet gets its newest version, and a line there. To change a
version, edit its line and run this again: make lock. To get newer ones, delete their lines first.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
UNIVERSAL = ["--universal", "--python-version", "3.11"]  # for every system, and Python 3.11 and newer
#: The files, and what uv resolves for each.
LOCKS = {
    "build": [*UNIVERSAL, "--group", "build"],
    "run": [*UNIVERSAL, "pyproject.toml"],
    "extras": [*UNIVERSAL, "--extra", "all", "pyproject.toml"],
    "dev": [*UNIVERSAL, "--extra", "dev", "pyproject.toml"],
    "release": [*UNIVERSAL, "--group", "release"],
    # beside a build of torch that has no CUDA packages: the one for macOS asks for none
    "torch": ["--python-platform", "macos", "--extra", "sb3", "--no-emit-package", "torch", "pyproject.toml"],
}


def main() -> None:
    """Write all locks, and what constraints.txt lacks."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        subprocess.run(
            [*pip, "--require-hashes", "--no-deps", "-r", "requirements/release.txt"], cwd=ROOT, check=True
        )
        for name, arguments in LOCKS.items():
            compile_lock(f"{folder}/bin/uv", name, arguments)
    header, *lines = CONSTRAINTS.read_text().splitlines()
    locked = locked_versions()
    added = [f"{name}=={locked[name]}" for name in sorted(locked.keys() - set(map(package, lines)))]
    CONSTRAINTS.write_text("\n".join([header, *sorted(lines + added, key=package), ""]))
    print(f"{len(LOCKS)} files in requirements/; added to constraints.txt: {', '.join(added) or 'nothing'}")


def compile_lock(uv: str, name: str, arguments: list[str]) -> None:
    """Let uv write requirements/NAME.txt."""
    how = ["--generate-hashes", "--no-emit-index-url", "--no-annotate", "--constraint", CONSTRAINTS.name]
    header = ["--custom-compile-command", "make lock"]
    command = [uv, "pip", "compile", "--quiet", *how, *header, "-o", f"requirements/{name}.txt", *arguments]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"MACOSX_DEPLOYMENT_TARGET": "14.0"})


def locked_versions() -> dict[str, str]:
    """Version of every package in requirements/*.txt, by its normalised name."""
    texts = [path.read_text() for path in sorted((ROOT / "requirements").glob("*.txt"))]
    pins = re.findall(r"^([\w.-]+==)([^\s;]+)", "\n".join(texts), re.M)
    return {package(name): version for name, version in pins}


def package(line: str) -> str:
    """The name in front of ==, as indexes spell it."""
    return re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower()


if __name__ == "__main__":
    sys.exit(main())
