"""Arrays in shared memory: two objects on one descriptor, as in two processes."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from policyfuzz.execution.processes.worker import SharedArrays, anonymous_file

KINDS = ["<f8", "<f4", ">f8", "<i8", "<u8", "|u1", "|b1", "<c16", "<U3", "|S5", "<M8[s]"]


@pytest.fixture
def sides():
    """The writer and the reader, who share nothing but a descriptor."""
    descriptor = anonymous_file("test")
    yield SharedArrays(descriptor), SharedArrays(descriptor)
    os.close(descriptor)


def check_round_trip(writer, reader, given_arrays):
    got = reader.read(writer.write(given_arrays))
    assert len(got) == len(given_arrays)
    for one, other in zip(got, given_arrays, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == np.ascontiguousarray(other).tobytes()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from(KINDS).flatmap(
                lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0))
            ),
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_arrays_come_back_bit_for_bit_in_any_sequence(messages):
    descriptor = anonymous_file("test")
    writer, reader = SharedArrays(descriptor), SharedArrays(descriptor)
    for number, message in enumerate(messages):  # the two take turns, as coordinator and worker do
        check_round_trip(*((writer, reader) if number % 2 == 0 else (reader, writer)), message)
    os.close(descriptor)


@pytest.mark.parametrize("message", [[], [np.empty((0, 3))], [np.empty(0), np.empty((5, 0))]])
def test_nothing_at_all_can_be_sent_first(sides, message):
    check_round_trip(sides[0], sides[1], message)


def test_memory_grows_on_both_sides_as_needed(sides):
    for size in (1, 10_000, 3, 1_000_000, 7):
        for writer, reader in (sides, sides[::-1]):
            check_round_trip(writer, reader, [np.arange(size, dtype=np.float64), np.ones(size, np.bool_)])


def test_what_was_read_does_not_change_when_the_memory_is_written_again(sides):
    writer, reader = sides
    layout = writer.write([np.arange(5)])
    (first,) = reader.read(layout)
    writer.write([np.zeros(5, np.int64)])
    assert first.tolist() == [0, 1, 2, 3, 4]


def test_arrays_that_lie_strangely_in_memory_are_sent_as_they_read(sides):
    table = np.arange(24.0).reshape(2, 3, 4)
    check_round_trip(
        sides[0],
        sides[1],
        [table.swapaxes(0, 1), table[:, ::-1, 1], np.broadcast_to(np.float64(3), (4, 2))],
    )


def test_file_without_users_leaves_nothing_behind():
    descriptor = anonymous_file("test")
    SharedArrays(descriptor).write([np.ones(1000)])
    assert os.fstat(descriptor).st_nlink == 0
    os.close(descriptor)
