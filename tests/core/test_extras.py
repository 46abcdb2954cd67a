import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from policyfuzz import load_target
from policyfuzz.core import extras
from policyfuzz.core.errors import MissingExtra
from policyfuzz.targets.registry import BUILT_INS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["bipedal"], "gymnasium", "bipedal"),
        (["driving-rl"], "metadrive", "metadrive"),
        (["driving-il"], "metadrive", "metadrive"),
        (["carla", "--policy", "carla:autopilot"], "carla", "carla"),
    ],
)
def test_missing_package_names_the_line_that_installs_it(tmp_path, arguments, package, extra):
    # in a process of its own, where nothing has been imported yet; the package is as if not installed
    code = f"import sys; sys.modules['{package}'] = None; from policyfuzz.cli.main import run; run()"
    command = [sys.executable, "-c", code, "check", *arguments, "--episodes", "1"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert f"needs the package {package}" in finished.stderr
    assert f"pip install -c constraints.txt -e '.[{extra}]' in {ROOT}" in finished.stderr
    assert BUILT_INS[arguments[0]].extra == extra


def test_package_that_lacks_something_itself_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "half_installed.py").write_text("import surely_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_there"):
        extras.load("half_installed", "film")


def test_hint_names_the_python_that_the_package_is_published_for(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 13, 1))
    monkeypatch.setitem(sys.modules, "metadrive", None)
    with pytest.raises(MissingExtra, match=r"with Python 3.11 or older; this is 3.13"):
        extras.load("metadrive", "metadrive")


def test_core_targets_need_no_extra(monkeypatch):
    for package in ("gymnasium", "metadrive", "carla", "mpe2", "imageio_ffmpeg", "onnx", "torch"):
        monkeypatch.setitem(sys.modules, package, None)
    for name, built_in in BUILT_INS.items():
        if not built_in.extra:
            assert load_target(name).name == name


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (
            '{"url": "file:///home/me/policyfuzz-0.1.0-py3-none-any.whl"}',
            "/home/me/policyfuzz-0.1.0-py3-none-any.whl",
        ),
        ('{"url": "https://example.org/x.whl"}', "policyfuzz"),
        (None, "policyfuzz"),
        ("{", "policyfuzz"),
    ],
)
def test_package_that_is_no_checkout_names_the_wheel_it_came_from(tmp_path, monkeypatch, source, line):
    info = tmp_path / "policyfuzz-0.1.0.dist-info"
    info.mkdir()
    if source is not None:
        (info / "direct_url.json").write_text(source)
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "a" / "b" / "c" / "extras.py"))
    monkeypatch.setattr("importlib.metadata.distribution", lambda _name: PathDistribution(info))
    assert extras.install_hint("film") == f"pip install '{line}[film]'"


def test_no_page_says_to_install_from_an_index_that_has_no_such_package():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").iterdir()]
    pages += (ROOT / "src").rglob("*.md")
    said = [
        page.name
        for page in pages
        if page.suffix in (".md", ".yaml") and "install 'policyfuzz[" in page.read_text()
    ]
    assert said == []
