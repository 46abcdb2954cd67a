"""The PyPI package: it is left to itself, and stopped in time."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from benchmarks.versus.peers.mdpfuzz_package import MdpfuzzPackage, RememberedNormal
from policyfuzz import load_target
from policyfuzz.core.errors import TargetCodeError

Fuzzer = pytest.importorskip("mdpfuzz.mdpfuzz").Fuzzer


class BrokenPolicy:
    def begin(self, count: int) -> None: ...

    def act(self, observations: np.ndarray, rows: np.ndarray) -> np.ndarray:
        raise RuntimeError("out of order")


@pytest.mark.parametrize("dimensions", [1, 2, 7, 48])
def test_remembered_density_has_the_bits_of_scipy(dimensions):
    rng = np.random.default_rng(0)
    normal = RememberedNormal()
    for rank in {dimensions, max(dimensions - 1, 1)}:
        factor = rng.normal(size=(dimensions, rank))
        covariance, mean = factor @ factor.T, rng.normal(size=dimensions)
        for point in rng.normal(size=(20, dimensions)):
            expected = multivariate_normal.pdf(point, mean, covariance, allow_singular=True)
            assert normal.pdf(point, mean=mean, cov=covariance, allow_singular=True) == expected


@pytest.mark.slow
def test_remembered_density_changes_no_claim(monkeypatch):
    target = replace(load_target("ripple:dimensions=2,probability=0.4"), horizon=12)
    trial = MdpfuzzPackage()(target, 200, 0)
    monkeypatch.setattr(RememberedNormal, "pdf", staticmethod(multivariate_normal.pdf))
    again = MdpfuzzPackage()(target, 200, 0)
    assert len(trial.numbers)
    assert np.array_equal(trial.numbers, again.numbers)
    assert np.array_equal(trial.inputs, again.inputs)


def test_all_its_episodes_have_one_case_seed():
    trial = MdpfuzzPackage(coverage=False)(load_target("ripple:probability=0.2"), 200, 0)
    assert len(set(trial.seeds.tolist())) == 1


@pytest.mark.slow
def test_some_of_its_claims_on_acasxu_break_the_rules():
    target = load_target("acasxu")
    trial = MdpfuzzPackage(coverage=False)(target, 400, 0)
    assert target.solvable is not None
    good = target.inputs.is_valid(trial.inputs) & target.solvable(trial.inputs)
    assert trial.episodes == 400
    assert not good.all()


def test_its_mutants_stay_in_the_range_of_every_dimension():
    target = load_target("ripple:dimensions=2,probability=0.4")
    trial = MdpfuzzPackage(coverage=False)(target, 200, 0)
    assert target.inputs.is_valid(trial.inputs).all()


@pytest.mark.parametrize("coverage", [True, False])
def test_errors_of_the_target_are_not_swallowed(coverage):
    target = replace(load_target("ripple"), policy=BrokenPolicy)
    with pytest.raises(TargetCodeError, match="out of order"):
        MdpfuzzPackage(coverage)(target, 50, 0)


@pytest.mark.parametrize("coverage", [True, False])
def test_trial_ends_where_the_package_itself_fails(coverage, monkeypatch):
    def fail(*_arguments: object) -> None:
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr("mdpfuzz.pool.IndexedPool.select", fail)
    trial = MdpfuzzPackage(coverage)(replace(load_target("ripple"), horizon=12), 50, 0)
    seed_inputs, of_the_model = 10, 1 if coverage else 0
    assert trial.episodes == 2 * seed_inputs + of_the_model


def test_mixtures_start_with_the_states_that_short_episodes_have():
    target = replace(load_target("ripple"), horizon=4)
    assert MdpfuzzPackage(coverage=True)(target, 60, 0).episodes == 60


@pytest.mark.parametrize("coverage", [True, False])
def test_sensitivity_of_mutants_costs_no_episode(coverage, monkeypatch):
    """As its authors' scripts have it: only seed inputs are run a second time."""
    calls = []
    plain = Fuzzer.sentivity

    def count(self, *arguments, **options):
        calls.append(options.get("acc_reward"))
        return plain(self, *arguments, **options)

    monkeypatch.setattr(Fuzzer, "sentivity", count)
    target = replace(load_target("ripple:dimensions=2,probability=0.2"), horizon=12)
    assert MdpfuzzPackage(coverage)(target, 100, 0).episodes == 100
    assert calls == [None] * 20
