import numpy as np

from policyfuzz.campaign.queues import ImportQueue
from policyfuzz.search.cases import Purpose


def some(first, count):
    seeds = np.arange(first, first + count, dtype=np.uint64)
    return np.column_stack([seeds, seeds]).astype(np.float64), seeds


def filled():
    queue = ImportQueue(2)
    queue.add(queue.source_number("id-a", "a"), 3, *some(10, 4))
    queue.add(queue.source_number("id-b", "b"), 1, *some(20, 2))
    return queue


def test_newest_are_taken_first_and_each_once():
    queue = filled()
    taken = [queue.take(3), queue.take(2), queue.take(9), queue.take(9)]
    assert [cases.seeds.tolist() for cases in taken] == [[20, 21, 10], [11, 12], [13], []]
    assert [cases.parents.tolist() for cases in taken] == [[1, 1, 0], [0, 0], [0], []]
    assert set(taken[0].purposes.tolist()) == {Purpose.IMPORT}


def test_source_is_known_by_its_instance_when_its_folder_is_renamed():
    queue = filled()
    assert queue.source_number("id-a", "renamed") == 0
    assert (queue.source(0).name, queue.source(0).batches_read) == ("renamed", 3)


def test_those_that_waited_longest_are_dropped():
    queue = filled()
    assert queue.drop_oldest(4) == 2
    assert queue.take(9).seeds.tolist() == [20, 21, 10, 11]
    assert queue.drop_oldest(4) == 0


def test_state_goes_on_exactly_from_what_was_stored_last():
    queue, stored = filled(), {}
    for step in range(6):
        queue.take(1)
        if step == 3:
            queue.add(queue.source_number("id-c", "c"), 8, *some(30, 3))
        stored |= queue.state()  # as rows of a table that are replaced by name
        resumed = ImportQueue(2)
        resumed.restore(stored)
        expected = filled()
        for earlier in range(step + 1):
            expected.take(1)
            if earlier == 3:
                expected.add(expected.source_number("id-c", "c"), 8, *some(30, 3))
        assert resumed.take(99).seeds.tolist() == expected.take(99).seeds.tolist()
        assert resumed.source(0) == expected.source(0)
    assert resumed.source(2).batches_read == 8


def test_queue_is_stored_only_when_something_came_in():
    queue = filled()
    assert len(queue.state()) > 1
    queue.take(2)
    assert list(queue.state()) == ["taken"]


def test_nothing_is_stored_when_nothing_was_ever_received():
    queue = ImportQueue(2)
    assert queue.state() == {}
    queue.restore({})
    assert len(queue) == 0
