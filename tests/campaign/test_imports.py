import numpy as np

from policyfuzz.campaign.sync.imports import Imports
from policyfuzz.search.cases import Purpose


def some(first, count):
    seeds = np.arange(first, first + count, dtype=np.uint64)
    return np.column_stack([seeds, seeds]).astype(np.float64), seeds


def filled():
    imports = Imports(2)
    imports.add(imports.number("id-a", "a"), 3, *some(10, 4))
    imports.add(imports.number("id-b", "b"), 1, *some(20, 2))
    return imports


def test_newest_are_taken_first_and_each_once():
    imports = filled()
    taken = [imports.take(3), imports.take(2), imports.take(9), imports.take(9)]
    assert [cases.seeds.tolist() for cases in taken] == [[20, 21, 10], [11, 12], [13], []]
    assert [cases.parents.tolist() for cases in taken] == [[1, 1, 0], [0, 0], [0], []]
    assert set(taken[0].purposes.tolist()) == {Purpose.IMPORT}


def test_sender_is_known_by_its_instance_when_its_folder_is_renamed():
    imports = filled()
    assert imports.number("id-a", "renamed") == 0
    assert (imports.sender(0).name, imports.sender(0).parcels) == ("renamed", 3)


def test_those_that_waited_longest_are_left_out():
    imports = filled()
    assert imports.shorten(4) == 2
    assert imports.take(9).seeds.tolist() == [20, 21, 10, 11]
    assert imports.shorten(4) == 0


def test_state_goes_on_exactly_from_what_was_stored_last():
    imports, stored = filled(), {}
    for step in range(6):
        imports.take(1)
        if step == 3:
            imports.add(imports.number("id-c", "c"), 8, *some(30, 3))
        stored |= imports.state()  # as rows of a table that are replaced by name
        resumed = Imports(2)
        resumed.restore(stored)
        expected = filled()
        for earlier in range(step + 1):
            expected.take(1)
            if earlier == 3:
                expected.add(expected.number("id-c", "c"), 8, *some(30, 3))
        assert resumed.take(99).seeds.tolist() == expected.take(99).seeds.tolist()
        assert resumed.sender(0) == expected.sender(0)
    assert resumed.sender(2).parcels == 8


def test_queue_is_stored_only_when_something_came_in():
    imports = filled()
    assert len(imports.state()) > 1
    imports.take(2)
    assert list(imports.state()) == ["taken"]


def test_nothing_is_stored_when_nothing_was_ever_received():
    imports = Imports(2)
    assert imports.state() == {}
    imports.restore({})
    assert len(imports) == 0
