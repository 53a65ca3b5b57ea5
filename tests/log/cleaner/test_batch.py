"""A batch rebuilt from some of its records."""

from __future__ import annotations

import pytest

from kohort.log import decode_records
from kohort.log.cleaner._batch import (
    empty_batch,
    plain_records,
    raw_records,
    rebuild_batch,
)
from kohort.protocol import (
    BATCH_DELETE_HORIZON,
    CorruptBatchError,
    build_batch,
    parse_batch_header,
    stamp_batch,
    verify_batch,
    write_varint,
)
from tests.log.cleaning import keyed, packed

NAMES = (
    "base_offset",
    "last_offset",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "codec",
)


def a_batch(codec: int) -> bytes:
    plain = bytearray(
        keyed(("a", "1"), ("b", "2" * 300), ("c", None), ("a", "4"), producer_id=7, sequence=40)
    )
    stamp_batch(plain, 0, base_offset=1_000, leader_epoch=3)
    return packed(bytes(plain), codec) if codec else bytes(plain)


@pytest.mark.parametrize("codec", range(5))
def test_it_keeps_its_place_its_producer_and_its_codec(codec: int) -> None:
    data = a_batch(codec)
    header = parse_batch_header(data)
    records = plain_records(data, 0, len(data), header.attributes)
    raw = raw_records(records, header.base_offset, header.record_count)
    made = rebuild_batch(header, records, [raw[1], raw[3]], None)
    after = parse_batch_header(made)
    verify_batch(made, after)
    assert [getattr(after, name) for name in NAMES] == [getattr(header, name) for name in NAMES]
    before = decode_records(data, header)
    assert decode_records(made, after) == [before[1], before[3]]
    assert after.record_count == 2
    assert not after.has_delete_horizon


@pytest.mark.parametrize("codec", range(5))
def test_a_delete_horizon_takes_the_place_of_the_base_timestamp_and_no_time_changes(codec: int) -> None:
    data = a_batch(codec)
    header = parse_batch_header(data)
    records = plain_records(data, 0, len(data), header.attributes)
    made = rebuild_batch(header, records, raw_records(records, 1_000, 4), 2_000_000_000_000)
    after = parse_batch_header(made)
    verify_batch(made, after)
    assert after.has_delete_horizon
    assert after.base_timestamp_ms == 2_000_000_000_000
    assert after.max_timestamp_ms == header.max_timestamp_ms
    assert decode_records(made, after) == decode_records(data, header)


def test_the_newest_time_is_that_of_what_is_left() -> None:
    header = parse_batch_header(keyed(("a", "1"), ("b", "2"), timestamp_ms=500))
    late = bytearray()
    for delta in (0, 900):
        body = bytearray(b"\0")
        write_varint(body, delta)
        body += b"\0\x02k\x02v\0"
        write_varint(late, len(body))
        late += body
    raw = raw_records(bytes(late), 0, 2)
    header = header._replace(max_timestamp_ms=1_400)
    assert parse_batch_header(rebuild_batch(header, bytes(late), raw, None)).max_timestamp_ms == 1_400
    assert parse_batch_header(rebuild_batch(header, bytes(late), raw[:1], None)).max_timestamp_ms == 500


def test_the_time_of_a_log_that_stamps_stays() -> None:
    data = bytearray(keyed(("a", "1"), ("b", "2"), timestamp_ms=500))
    stamp_batch(data, 0, base_offset=0, leader_epoch=0, log_append_time_ms=9_000)
    header = parse_batch_header(data)
    records = plain_records(bytes(data), 0, len(data), header.attributes)
    made = rebuild_batch(header, records, raw_records(records, 0, 2)[:1], 77)
    assert [record[1] for record in decode_records(made, parse_batch_header(made))] == [9_000]


def test_an_emptied_batch_is_a_header() -> None:
    data = a_batch(4)
    header = parse_batch_header(data)
    made = empty_batch(header._replace(attributes=header.attributes | BATCH_DELETE_HORIZON))
    after = parse_batch_header(made)
    verify_batch(made, after)
    assert len(made) == 61
    assert (after.base_offset, after.last_offset, after.record_count) == (1_000, 1_003, 0)
    assert (after.producer_id, after.last_sequence) == (7, 43)
    assert (after.codec, after.has_delete_horizon, after.max_timestamp_ms) == (
        0,
        False,
        header.max_timestamp_ms,
    )
    assert decode_records(made, after) == []


def test_only_the_wanted_records_are_looked_at() -> None:
    data = bytes(build_batch([(b"k%d" % n, b"v" * n, [("h", b"x")]) for n in range(200)], timestamp_ms=5))
    header = parse_batch_header(data)
    records = plain_records(data, 0, len(data), header.attributes)
    everything = raw_records(records, 0, 200)
    assert [record.offset for record in everything] == list(range(200))
    assert raw_records(records, 0, 200, {3, 150}) == [everything[3], everything[150]]


@pytest.mark.parametrize(
    ("records", "count"),
    [(b"\x02", 1), (b"\x7f", 1), (b"\x0c\0\0\0\x01\x01\0", 2), (b"\xff" * 12, 1), (b"\x04\0\0\0\x10k", 1)],
)
def test_records_that_cannot_be_read_are_an_error(records: bytes, count: int) -> None:
    with pytest.raises(CorruptBatchError):
        raw_records(records, 0, count)
