import threading

import pytest

from policyfuzz.environments.simulator import NoAnswer, Watchdog


def spin(watchdog: Watchdog, beats: int) -> None:
    """Run for ever, or until `beats` have been counted."""
    for _ in range(beats):
        watchdog.beats += 1
    while True:
        pass


def test_code_that_does_not_answer_is_interrupted():
    watchdog = Watchdog(0.05)
    with pytest.raises(NoAnswer, match=r"within 0\.05 s"), watchdog:
        spin(watchdog, beats=3)


def test_code_that_answers_now_and_then_is_left_alone():
    import signal

    watchdog, looks = Watchdog(0.02), []
    with watchdog:
        look = signal.getsignal(signal.SIGALRM)
        assert callable(look)

        def look_and_count(*given):
            looks.append(1)
            look(*given)

        signal.signal(signal.SIGALRM, look_and_count)
        while len(looks) < 5:
            watchdog.beats += 1


def test_nothing_is_left_behind():
    import signal

    before = signal.getsignal(signal.SIGALRM)
    with Watchdog(10.0):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_other_threads_and_no_limit_are_not_watched():
    import signal

    seen = []
    for run in (lambda action: action(), in_a_thread):
        with_limit = 10.0 if run is in_a_thread else None

        def look(limit=with_limit):
            with Watchdog(limit):
                seen.append(signal.getitimer(signal.ITIMER_REAL)[0])

        run(look)
    assert seen == [0.0, 0.0]


def in_a_thread(action):
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()
