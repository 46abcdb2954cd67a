from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small matrices are factored a hundred times slower when BLAS threads wait for busy cores."""
    with threadpool_limits(1):
        yield
