"""The newest offset of each key."""

from __future__ import annotations

import pytest

from kohort.log._indexes import AbortedTransaction
from kohort.log.cleaner._keys import KEY_OVERHEAD_BYTES, KeyMap, TransactionWalk
from kohort.protocol import CorruptBatchError, build_batch, stamp_batch
from tests.log.batches import batch, marker
from tests.log.cleaning import keyed


def in_a_row(*batches: bytes) -> bytes:
    """The batches at the offsets that a log would give them."""
    out, offset = bytearray(), 0
    for one in batches:
        data = bytearray(one)
        stamp_batch(data, 0, base_offset=offset, leader_epoch=0)
        out += data
        offset += int.from_bytes(data[23:27], "big") + 1
    return bytes(out)


def key_map(first_offset: int = 0, memory: int = 1 << 20, *aborted: AbortedTransaction) -> KeyMap:
    return KeyMap(first_offset, memory, TransactionWalk(aborted))


@pytest.mark.parametrize("codec", range(5))
def test_the_last_record_of_a_key_counts(codec: int) -> None:
    data = in_a_row(keyed(("a", "1"), ("b", "2"), ("a", "3"), codec=codec), keyed(("c", None), codec=codec))
    keys = key_map()
    assert keys.add(data) == len(data)
    assert keys.newest == {b"a": 2, b"b": 1, b"c": 3}
    assert keys.tombstones == {3}
    assert (keys.next_offset, keys.records, keys.full) == (4, 4, False)


def test_long_keys_values_and_batches() -> None:
    records = [(b"k%d" % n * (1 + n % 40), b"v" * (n * 7 % 300) or None, [("h", b"")]) for n in range(300)]
    data = bytes(build_batch(records, timestamp_ms=1))
    keys = key_map()
    keys.add(data)
    assert keys.newest == {key: n for n, (key, _, _) in enumerate(records)}
    assert keys.tombstones == {n for n, (_, value, _) in enumerate(records) if value is None}


def test_a_batch_that_is_cut_is_left_for_the_next_time() -> None:
    data = in_a_row(keyed(("a", "1")), keyed(("b", "2")))
    keys = key_map()
    assert keys.add(data[:-1]) == len(data) // 2
    assert keys.add(data[:30]) == 0
    assert keys.newest == {b"a": 0}


def test_records_without_a_key_are_none() -> None:
    keys = key_map()
    keys.add(bytes(build_batch([(None, b"x", ()), (b"", b"y", ())], timestamp_ms=1)))
    assert keys.newest == {b"": 1}


def test_what_was_compacted_already_is_passed_over() -> None:
    keys = key_map(first_offset=1)
    keys.add(in_a_row(keyed(("a", "1")), keyed(("b", "2"))))
    assert keys.newest == {b"b": 1}


def test_aborted_records_and_markers_are_left_out() -> None:
    data = in_a_row(
        keyed(("a", "1"), producer_id=1, sequence=0, transactional=True),
        keyed(("b", "2"), producer_id=2, sequence=0, transactional=True),
        marker(1, committed=False),
        marker(2, committed=True),
    )
    keys = key_map(0, 1 << 20, AbortedTransaction(1, 0, 2, 1))
    keys.add(data)
    assert keys.newest == {b"b": 1}
    assert keys.next_offset == 4


def test_it_stops_when_the_memory_is_taken() -> None:
    data = in_a_row(*(keyed((f"key-{n}", "x")) for n in range(10)))
    keys = key_map(0, 3 * KEY_OVERHEAD_BYTES)
    used = keys.add(data)
    assert keys.full
    assert 2 <= len(keys.newest) <= 3
    assert keys.next_offset == len(keys.newest)
    assert used == len(data) // 10 * len(keys.newest)


def test_a_key_that_is_there_takes_no_more_memory() -> None:
    keys = key_map(0, 2 * KEY_OVERHEAD_BYTES + 100)
    keys.add(in_a_row(*([batch()] * 100)))
    assert keys.newest == {b"key-0": 99}
    assert not keys.full


def test_offsets_that_do_not_rise_within_their_segment_are_damage() -> None:
    data = in_a_row(keyed(("a", "1")), keyed(("b", "2")), keyed(("c", "3")))
    size = len(data) // 3
    with pytest.raises(CorruptBatchError, match="offset 0 where 1 is due"):
        key_map().add(data[:size] + data[:size])
    with pytest.raises(CorruptBatchError, match="offset 2"):
        key_map().add(data, 2)
    assert key_map().add(data, 3) == len(data)


@pytest.mark.parametrize("position", [3, 8, 16, 17, 40, 57, 61, 62, 66])
def test_damage_is_told_by_its_position(position: int) -> None:
    first, second = keyed(("a", "1")), bytearray(keyed(("b", "2")))
    second[position] ^= 0x41
    data = in_a_row(first) + bytes(second)
    keys = key_map()
    if position < 8:  # the base offset is no part of the checksum
        keys.add(data)
        return
    if position == 8:  # a length beyond the chunk: the rest has to be read first
        assert keys.add(data) == len(first)
        return
    with pytest.raises(CorruptBatchError) as caught:
        keys.add(data)
    assert caught.value.position == len(first)
