"""Records found by prediction are those found one after another."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from inertid_ros.data.files.mcap_format import DATA_END, scan


def content_of(records):
    rng = np.random.default_rng(0)
    return np.frombuffer(b"".join(struct.pack("<BQ", op, n) + rng.bytes(n) for op, n in records), dtype=np.uint8)


def scanned(content, start=0, end=None):
    pieces = list(scan(content, start, len(content) if end is None else end))
    return [np.concatenate(column) for column in zip(*pieces, strict=True)]


@given(
    st.lists(st.tuples(st.lists(st.tuples(st.sampled_from([3, 5, 7]), st.integers(0, 40)), min_size=1, max_size=5),
                       st.integers(1, 400)), min_size=1, max_size=5)
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_every_record_is_found(pieces):
    records = [record for pattern, times in pieces for record in pattern * times]
    opcodes, offsets, lengths = scanned(content_of(records))
    assert opcodes.tolist() == [op for op, _ in records] and lengths.tolist() == [n for _, n in records]
    ends = np.cumsum([9 + n for _, n in records])
    assert (offsets + lengths).tolist() == ends.tolist()


def test_the_data_section_ends_the_scan():
    content = content_of([(5, 10)] * 1000 + [(DATA_END, 4)] + [(5, 10)] * 10)
    assert len(scanned(content)[0]) == 1000


def test_a_record_that_is_cut_is_unsuitable():
    content = content_of([(5, 10)] * 1000)
    with pytest.raises(ValueError, match="cut short"):
        scanned(content, end=len(content) - 3)
