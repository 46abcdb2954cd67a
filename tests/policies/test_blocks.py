"""Padding to blocks of one size: every row comes out once, in order, whatever the size of the batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfuzz.policies.network import BLOCK_ROWS, in_blocks


@given(count=st.integers(1, 300), size=st.integers(1, 70))
def test_rows_come_out_once_and_in_order_for_any_count(count, size):
    first, second = np.arange(count * 3.0).reshape(count, 3), np.arange(count)
    seen = []

    def double(block, numbers):
        seen.append((len(block), len(numbers)))
        return 2 * block, -numbers

    doubled, negated = in_blocks(double, first, second, size=size)
    np.testing.assert_array_equal(doubled, 2 * first)
    np.testing.assert_array_equal(negated, -second)
    assert set(seen) == {(size, size)}
    assert len(seen) == -(-count // size)


def test_last_block_is_filled_with_the_first_row():
    blocks = []

    def note(block):
        blocks.append(block)
        return (block,)

    in_blocks(note, np.arange(5, 8), size=5)
    np.testing.assert_array_equal(blocks, [[5, 6, 7, 5, 5]])


@pytest.mark.parametrize("count", [1, 63, 64, 65, 130])
def test_structured_rows_keep_their_fields(count):
    batch = np.zeros(count, [("image", np.uint8, (2, 2)), ("text", object)])
    batch["image"] = np.arange(count)[:, None, None]
    batch["text"] = [f"go {row}" for row in range(count)]

    def both(block):
        assert len(block) == BLOCK_ROWS
        return block["image"], block["text"]

    images, texts = in_blocks(both, batch)
    np.testing.assert_array_equal(images, batch["image"])
    assert texts.tolist() == batch["text"].tolist()


def test_arguments_are_left_as_they_were():
    rows = np.arange(3.0)
    in_blocks(lambda block: (block,), rows)
    np.testing.assert_array_equal(rows, [0, 1, 2])
