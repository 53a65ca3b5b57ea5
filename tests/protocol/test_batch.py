"""Record batch headers: golden bytes, checksums, and what a broker stamps.

Covers: protocol/_native.pyx.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

from kohort.protocol import (
    BATCH_OVERHEAD,
    Codec,
    CorruptBatchError,
    _batch,
    batch_extent,
    build_batch,
    iter_batches,
    parse_batch_header,
    read_varint,
    stamp_batch,
    stamp_built,
    verify_batch,
    write_varint,
)
from tests.leaks import require_no_leak
from tests.native_parts import needs_native

#: First batch header of a partition written by Apache Kafka 4.3.1.
APACHE_KAFKA_HEADER = bytes.fromhex(
    "0000000000000000000003ba000000000261b8a8d2000300000031000001a1fa6c78fe000001a1fa6c78ff"
    "ffffffffffffffffffffffffffff00000032"
)

NULLABLE = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=5), NULLABLE), max_size=3)


def as_library_reads(batch: bytes | bytearray) -> list[Any]:
    records = []
    for read in MemoryRecords(bytes(batch)):
        assert read.validate_crc()
        records += list(read)
    return records


def built(records: Any) -> bytearray | type[Exception]:
    try:
        return build_batch(records, timestamp_ms=7)
    except (TypeError, ValueError, IndexError) as error:
        return type(error)


#: Keys and values of all lengths that varints have, and what no record can have.
FIELDS = NULLABLE | st.sampled_from([63, 64, 1_000, 8_191, 8_192, 70_000]).map(bytes)
STRANGE = st.sampled_from(["text", bytearray(b"k"), memoryview(b"k"), 3])


@needs_native("protocol")
@given(
    st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=70)
    | st.lists(
        st.tuples(FIELDS, FIELDS)
        | st.tuples(FIELDS, FIELDS, HEADERS)
        | st.tuples(FIELDS | STRANGE, STRANGE)
        | st.lists(FIELDS, max_size=3),
        min_size=1,
        max_size=4,
    )
)
def test_records_are_joined_as_python_joins_them(records: list[Any]) -> None:
    with patch.object(_batch, "NATIVE", False):
        expected = built(records)
    assert built(records) == built(tuple(records)) == expected


@needs_native("protocol")
def test_what_cannot_be_joined_in_c_is_left_to_python() -> None:
    from kohort.protocol._native import join_records

    strange: Any = range(3)
    assert join_records(strange, 0) is None
    assert join_records([(b"k", b"v")], -1) is None
    pairs = [(b"key", b"value"), (b"key", None)]
    require_no_leak(lambda: (join_records(pairs, 61), join_records([*pairs, strange], 61)), pairs[0], 300)


def test_apache_kafkas_header_is_read() -> None:
    header = parse_batch_header(APACHE_KAFKA_HEADER)
    assert header.base_offset == 0
    assert header.length == 954
    assert header.size == 966
    assert header.leader_epoch == 0
    assert header.codec == Codec.LZ4
    assert header.record_count == 50
    assert header.last_offset == 49
    assert header.next_offset == 50
    assert header.producer_id == header.producer_epoch == header.base_sequence == header.last_sequence == -1
    assert header.attributes == Codec.LZ4
    flags = (header.transactional, header.control, header.log_append_time, header.has_delete_horizon)
    assert not any(flags)


@given(st.lists(st.tuples(NULLABLE, NULLABLE, HEADERS), min_size=1, max_size=5), st.integers(0, 2**45))
def test_a_built_batch_is_what_the_library_reads(
    records: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]], now_ms: int
) -> None:
    batch = build_batch(records, timestamp_ms=now_ms, base_offset=7)
    verify_batch(batch, parse_batch_header(batch))
    read = as_library_reads(batch)
    assert [(r.key, r.value, r.headers) for r in read] == records
    assert [r.offset for r in read] == list(range(7, 7 + len(records)))
    assert {r.timestamp for r in read} == {now_ms}


def test_producer_fields_and_flags_are_written() -> None:
    batch = build_batch(
        [(b"k", b"v", [])],
        timestamp_ms=1,
        producer_id=9,
        producer_epoch=2,
        base_sequence=2147483647,
        transactional=True,
        control=True,
    )
    header = parse_batch_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 2147483647)
    assert header.transactional
    assert header.control


def test_sequence_numbers_wrap_to_zero() -> None:
    batch = build_batch([(None, None, [])] * 2, timestamp_ms=1, producer_id=9, base_sequence=2147483647)
    assert parse_batch_header(batch).last_sequence == 0


def test_stamping_offset_and_epoch_keeps_the_checksum() -> None:
    batch = build_batch([(b"k", b"v", [])], timestamp_ms=1)
    before = parse_batch_header(batch)
    stamp_batch(batch, 0, base_offset=41, leader_epoch=3)
    after = parse_batch_header(batch)
    assert (after.base_offset, after.leader_epoch, after.crc) == (41, 3, before.crc)
    verify_batch(batch, after)


def test_a_batch_that_was_just_built_is_stamped_as_any_and_its_header_is_what_the_bytes_say() -> None:
    built = build_batch([(b"k", b"v"), (b"l", None)], timestamp_ms=7)
    stamped = bytearray(built)
    stamp_batch(stamped, 0, base_offset=41, leader_epoch=3)

    header = stamp_built(built, base_offset=41, leader_epoch=3)

    assert built == stamped
    assert header == parse_batch_header(stamped)
    verify_batch(built, header)


def test_stamping_the_time_of_append_makes_a_new_checksum() -> None:
    batch = build_batch([(b"k", b"v", [])] * 2, timestamp_ms=1)
    stamp_batch(batch, 0, base_offset=0, leader_epoch=0, log_append_time_ms=99)
    header = parse_batch_header(batch)
    verify_batch(batch, header)
    assert header.log_append_time
    assert header.max_timestamp_ms == 99
    assert {r.timestamp for r in as_library_reads(batch)} == {99}


def test_every_flipped_bit_behind_the_checksum_is_noticed() -> None:
    batch = build_batch([(b"key", b"value", [])], timestamp_ms=1)
    for position in range(21, len(batch)):
        broken = bytearray(batch)
        broken[position] ^= 0x10
        with pytest.raises(CorruptBatchError, match="checksum"):
            verify_batch(broken, parse_batch_header(broken))


def test_runs_of_batches_are_walked_with_positions() -> None:
    first = build_batch([(b"a", None, [])], timestamp_ms=1)
    second = build_batch([(b"b", None, [])], timestamp_ms=1, base_offset=1)
    walked = [(position, header.base_offset) for position, header in iter_batches(first + second)]
    assert walked == [(0, 0), (len(first), 1)]


HEADER_FIELDS = st.tuples(
    *[st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1) | st.integers(40, 60)],
    *[st.integers(-1, 2**31 - 1), st.just(2) | st.integers(-128, 127)],
    *[st.integers(0, 2**32 - 1), st.integers(-(2**15), 2**15 - 1), st.integers(-(2**31), 2**31 - 1)],
)


@given(HEADER_FIELDS, st.binary(min_size=30, max_size=40), st.integers(0, 3))
def test_the_extent_of_a_batch_is_what_its_header_says(
    fields: tuple[int, ...], rest: bytes, before: int
) -> None:
    data = bytes(before) + struct.pack(">qiibIhi", *fields) + rest

    def outcome(of: Callable[[bytes, int], object]) -> object:
        try:
            return of(data, before)
        except CorruptBatchError as error:
            return str(error)

    def parsed(data: bytes, position: int) -> object:
        header = parse_batch_header(data, position)
        return header.size, header.next_offset, header.leader_epoch

    assert outcome(batch_extent) == outcome(parsed)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x00" * (BATCH_OVERHEAD - 1), "cut short"),
        (b"\x00" * 16 + b"\x01" + b"\x00" * 60, "magic 1"),
        (b"\x00" * 16 + b"\x02" + b"\x00" * 60, "less than its header"),
        (build_batch([(b"k", b"v", [])], timestamp_ms=1)[:-1], "cut short by 1"),
    ],
)
def test_what_is_no_batch_is_named_with_its_position(data: bytes, text: str) -> None:
    with pytest.raises(CorruptBatchError, match=text) as caught:
        list(iter_batches(data))
    assert caught.value.position == 0


def test_a_batch_cut_short_fails_verification() -> None:
    batch = build_batch([(b"k", b"v", [])], timestamp_ms=1)
    with pytest.raises(CorruptBatchError, match="cut short by 2"):
        verify_batch(batch[:-2], parse_batch_header(batch))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert read_varint(bytes(out) + b"\xff", 0) == (value, len(out))
    for end in range(len(out)):
        with pytest.raises(IndexError):
            read_varint(out[:end], 0)


@pytest.mark.parametrize(("bits", "most"), [(64, 10), (32, 5)])
def test_a_varint_of_more_bytes_than_it_may_take_is_refused(bits: int, most: int) -> None:
    with pytest.raises(ValueError, match=f"more than {bits} bits"):
        read_varint(b"\xff" * most + b"\x01", 0, bits)
    assert read_varint(b"\xff" * (most - 1) + b"\x7f", 0, bits) == (-(1 << bits - 1), most)
