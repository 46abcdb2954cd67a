import pickle

import numba.core.caching
import pytest

from policyfuzz.core.compiled import kernel


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), EOFError(), pickle.UnpicklingError()]
)
@pytest.mark.parametrize("when", ["load", "save"])
def test_kernel_runs_when_its_cache_fails(monkeypatch, error, when):
    def fail(*_arguments):
        raise error

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, when, fail)

    @kernel
    def twice(number):
        return 2 * number

    assert twice(21) == 42


def test_kernel_runs_when_no_folder_can_be_written(monkeypatch):
    def fail(*_arguments):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba.core.caching.FunctionCache, "__init__", fail)

    @kernel
    def thrice(number):
        return 3 * number

    assert thrice(14) == 42
