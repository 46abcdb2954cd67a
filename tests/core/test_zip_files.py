import io
import struct
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.zip_files import DamagedZip, ZipReader, read_arrays


def npz(**arrays):
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    return data.getvalue()


GOOD = npz(a=np.arange(6.0).reshape(2, 3), name="tanh", none=np.zeros((0, 3)))


def test_arrays_are_those_that_numpy_wrote():
    arrays = read_arrays(GOOD, 10_000)
    np.testing.assert_array_equal(arrays["a"], np.arange(6.0).reshape(2, 3))
    assert str(arrays["name"]) == "tanh"
    assert arrays["none"].shape == (0, 3)


def test_arrays_in_the_order_of_fortran_are_read():
    turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(read_arrays(npz(a=turned), 10_000)["a"], turned)


def test_bound_holds_for_all_arrays_together():
    several = npz(a=np.zeros(100), b=np.zeros(100))
    assert len(read_arrays(several, 2000)) == 2
    with pytest.raises(DamagedZip, match=r"b\.npy unpacks to"):
        read_arrays(several, 1500)


def test_pickles_are_refused():
    data = io.BytesIO()
    np.savez(data, a=np.array([object()]))
    with pytest.raises(DamagedZip, match=r"a\.npy is no array of numbers"):
        read_arrays(data.getvalue(), 10_000)


def test_no_more_is_unpacked_than_the_archive_says():
    """A member that says 10 bytes and holds 64 MB: reading it needs no 64 MB."""
    packed = zlib.compress(bytes(1 << 26), 9)[2:-4]
    sizes = struct.pack("<LLL", zlib.crc32(bytes(10)), len(packed), 10)
    local = b"PK\3\4" + struct.pack("<5H", 20, 0, 8, 0, 0) + sizes + struct.pack("<2H", 1, 0) + b"a" + packed
    central = (
        b"PK\1\2" + struct.pack("<6H", 20, 20, 0, 8, 0, 0) + sizes + struct.pack("<5HLL", 1, *[0] * 6) + b"a"
    )
    end = b"PK\5\6" + struct.pack("<4HLLH", 0, 0, 1, 1, len(central), len(local), 0)
    import tracemalloc

    content = local + central + end
    tracemalloc.start()
    try:
        assert ZipReader(content).read("a", 100) == bytes(10)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_ways_to_pack_without_a_bound_are_refused():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a", bytes(1000))
    with pytest.raises(DamagedZip, match="packed in a way"):
        ZipReader(data.getvalue()).read("a", 10_000)


def test_total_is_what_all_members_unpack_to():
    reader = ZipReader(npz(a=np.zeros(1000)))
    reader.check_total(8128)
    with pytest.raises(DamagedZip, match="8,128 bytes"):
        reader.check_total(8127)


@settings(max_examples=200)
@given(place=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255), end=st.integers(0, len(GOOD)))
def test_damage_is_one_kind_of_error_or_none(place, value, end):
    spoilt = bytearray(GOOD)
    spoilt[place] = value
    for content in (bytes(spoilt), GOOD[:end]):
        try:
            read_arrays(content, 10_000)
        except DamagedZip:
            continue
