"""torch on one thread: more of them round differently, and on a busy machine they wait for each other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """One thread for what is run inside; as before afterwards."""
    threads = torch.get_num_threads()
    # also where there is one already: a limit that others have set does not reach all of torch's threads
    torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)
