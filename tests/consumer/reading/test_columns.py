"""The walk over the lengths of records: in runs of equal ones it is as exact as one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer.reading.columns import walk
from kohort.protocol import CorruptBatchError

#: Sizes at which a length takes a byte more, and their neighbours.
EDGES = (1, 2, 62, 63, 64, 65, 8191, 8192, 8193)


def records(sizes: list[int]) -> tuple[bytes, list[int]]:
    """Records of so many bytes behind their length, and where these bytes start."""
    out, bodies = bytearray(), []
    for nth, size in enumerate(sizes):
        length = size << 1
        while length > 0x7F:
            out.append(length & 0x7F | 0x80)
            length >>= 7
        out.append(length)
        bodies.append(len(out))
        # what lies in a record may look like a length of its neighbours'
        out += bytes([size * 2 & 0xFF | 0x80 * (nth & 1)]) * size
    return bytes(out), bodies


def walked(data: bytes, count: int, start: int = 0) -> list[int]:
    found: list[int] = walk(data, start, len(data), count).tolist()
    return found


@given(
    st.lists(
        st.tuples(st.sampled_from(EDGES) | st.integers(1, 200), st.integers(1, 40)), min_size=1, max_size=12
    )
)
def test_finds_every_record_in_any_order_of_runs(runs: list[tuple[int, int]]) -> None:
    sizes = list(itertools.chain.from_iterable([size] * count for size, count in runs))
    data, bodies = records(sizes)
    assert walked(data, len(sizes)) == bodies


def test_finds_the_records_of_one_batch_among_others() -> None:
    before, _ = records([9] * 50)
    data, bodies = records([70] * 100 + [3])
    assert walked(before + data, 101, start=len(before)) == [len(before) + body for body in bodies]


@pytest.mark.parametrize("sizes", [[20] * 100, [90] * 100, [3, 200, 77] * 30])
@pytest.mark.parametrize("wrong", [-1, 1])
def test_too_many_or_too_few_records_for_the_bytes_are_corrupt(sizes: list[int], wrong: int) -> None:
    data, _ = records(sizes)
    with pytest.raises(CorruptBatchError, match="do not fill"):
        walked(data, len(sizes) + wrong)


@pytest.mark.parametrize("sizes", [[20] * 100, [90] * 100])
@pytest.mark.parametrize("nth", [1, 17, 60, 99])
def test_one_length_that_is_wrong_in_a_run_is_corrupt(sizes: list[int], nth: int) -> None:
    data, bodies = records(sizes)
    changed = bytearray(data)
    changed[bodies[nth] - 1] ^= 2
    with pytest.raises(CorruptBatchError):
        walked(bytes(changed), len(sizes))
