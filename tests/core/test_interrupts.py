import signal

import numpy as np
import pytest

from policyfuzz import load_target
from policyfuzz.core.errors import Interrupted, TargetCodeError, blamed_on, interrupt
from policyfuzz.core.target import Runner


@pytest.fixture(autouse=True)
def handler():
    before = signal.signal(signal.SIGINT, interrupt)
    yield
    signal.signal(signal.SIGINT, before)
    Interrupted.is_pending = False


def test_interrupt_that_a_destructor_swallowed_stops_the_next_batch(monkeypatch):
    class Busy:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    run = Runner(load_target("ripple"))
    monkeypatch.setattr("sys.unraisablehook", lambda _: None)
    Busy()
    with pytest.raises(Interrupted):
        run(np.zeros((1, 4)), np.zeros(1, np.uint64))


def test_interrupt_goes_through_user_code():
    with pytest.raises(Interrupted), blamed_on("somebody"):
        signal.raise_signal(signal.SIGINT)


def test_keyboard_interrupt_of_user_code_is_its_own_error():
    with pytest.raises(TargetCodeError, match="raised KeyboardInterrupt"), blamed_on("somebody"):
        raise KeyboardInterrupt
