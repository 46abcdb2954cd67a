import numpy as np

from policyfuzz.campaign.queues import ImportQueue, storable
from policyfuzz.search.cases import Cases, Purpose


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


def test_stored_imports_that_cannot_be_stored_again_are_dropped():
    queue = filled()
    queue.take(2)
    state = queue.state()
    state["queue.seeds"][[3, 5]] = 2**63
    queue = ImportQueue(2)
    queue.restore(state)
    assert len(queue) == 2
    again = ImportQueue(2)
    again.restore(state | queue.state())
    assert again.take(9).seeds.tolist() == queue.take(9).seeds.tolist() == [10, 12]


def test_only_imports_are_dropped():
    inputs, seeds = np.zeros((2, 3)), np.full(2, 2**63, np.uint64)
    parents = np.zeros(2, np.int64)
    cases = [Cases.of(purpose, inputs, seeds, parents) for purpose in (Purpose.MUTANT, Purpose.IMPORT)]
    assert storable(Cases.concatenate(cases)).purposes.tolist() == [Purpose.MUTANT] * 2


def test_name_of_a_folder_that_is_no_text_can_be_stored():
    queue = ImportQueue(2)
    assert queue.source(queue.source_number("id", "a\udcff\n\x1b")).name == r"a\udcff\n\x1b"
