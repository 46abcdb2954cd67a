"""What `import policyfuzz` offers."""

import inspect
import pkgutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import policyfuzz as pf

LOADED = (
    "import sys, policyfuzz; print(*sorted(name for name in sys.modules if name.startswith('policyfuzz')))"
)


@pytest.mark.parametrize("name", pf.__all__)
def test_every_name_of_the_stub_can_be_imported(name):
    assert getattr(pf, name).__name__.rpartition(".")[2] in (name, "parse")


def test_names_are_listed_and_shadow_no_package():
    assert set(pf.__all__) <= set(dir(pf))
    packages = {module.name for module in pkgutil.iter_modules(pf.__path__)}
    assert not packages & set(pf.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fuz'"):
        _ = pf.fuz


def test_import_is_lazy():
    printed = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["policyfuzz"]


def test_rollout_is_a_function_whatever_was_imported_before():
    code = "import policyfuzz as pf; pf.load_target('ripple'); print(type(pf.rollout).__name__)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["function"]


def test_package_tells_type_checkers_that_it_is_typed():
    assert (Path(pf.__file__).parent / "py.typed").is_file()


def test_fuzz_takes_every_option_of_a_campaign_with_its_type():
    parameters = inspect.signature(pf.fuzz).parameters
    assert not [one for one in parameters.values() if one.kind is inspect.Parameter.VAR_KEYWORD]
    assert {option.name: option.type for option in fields(pf.CampaignOptions)} == {
        name: one.annotation for name, one in parameters.items() if name in CHOSEN
    }


CHOSEN = [option.name for option in fields(pf.CampaignOptions)]


def test_options_reach_their_settings():
    chosen: dict[str, Any] = {
        "strategy": "mdpfuzz",
        "seed": 5,
        "batch": 7,
        "window": 3,
        "samples": 11,
        "sensitivity": "exact",
        "quantile": 0.2,
        "freshness": "mean",
        "tau": -1.5,
        "gamma": 0.01,
        "components": 4,
        "children": 3,
        "when_empty": "stop",
        "radius": 0.2,
    }
    config = pf.CampaignOptions(**chosen).applied_to(pf.CampaignConfig("target"))
    search = config.search
    assert chosen == {
        "strategy": config.strategy,
        "seed": config.seed,
        "batch": config.batch_size,
        "window": config.window,
        "samples": search.samples,
        "sensitivity": search.sensitivity,
        "quantile": search.freshness.quantile,
        "freshness": search.freshness.score,
        "tau": search.freshness.threshold,
        "gamma": search.density.forgetting,
        "components": search.density.components,
        "children": search.published.children,
        "when_empty": search.published.when_empty,
        "radius": config.distinct_radius,
    }
    assert pf.CampaignOptions().applied_to(config) == config


def test_public_names_need_no_optional_package():
    missing = ("pytest", "pandas", "torch", "stable_baselines3", "onnx", "onnxruntime", "pettingzoo", "ray")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({missing!r})); from policyfuzz import *; print(fuzz)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
