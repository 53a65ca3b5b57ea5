"""Records of share partitions are Apache Kafka's, byte for byte."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import KohortError, SharePartitionKey
from kohort.protocol.messages.read_share_group_state import StateBatch
from kohort.share_state.records import (
    CorruptStateError,
    ShareRecord,
    ShareSnapshot,
    ShareStateDeleted,
    ShareUpdate,
    decode,
    encode,
)

TOPIC = UUID("59d6a509-26d2-47f5-bb1b-c90fc0534c7a")

#: What Apache Kafka 4.3.1 wrote, and what it says: key, value, record.
WRITTEN: list[tuple[str, str, ShareRecord]] = [
    (
        "000000096873746174652d673159d6a50926d247f5bb1bc90fc0534c7a00000000",
        "0000000000000000000500000000ffffffffffffffff000001a21f59e2b3000001a21f59e2b30100",
        ShareSnapshot(
            SharePartitionKey("hstate-g1", TOPIC, 0), 0, 5, 0, -1, 1_795_822_314_163, 1_795_822_314_163
        ),
    ),
    (
        "0000000a6873746174652d613a6259d6a50926d247f5bb1bc90fc0534c7a00000000",
        "00000000000000000001000000000000000000000000000001a21f59e374000001a21f59e3740101000400000000",
        ShareSnapshot(
            SharePartitionKey("hstate-a:b", TOPIC, 0),
            0,
            1,
            0,
            0,
            1_795_822_314_356,
            1_795_822_314_356,
            (),
            0,
        ),
    ),
    (
        "000100096873746174652d673159d6a50926d247f5bb1bc90fc0534c7a00000000",
        (
            "00000000000100000000ffffffffffffffff030000000000000005000000000000000800000300000000000000001e"
            "000000000000001f0400010001000400000004"
        ),
        ShareUpdate(
            SharePartitionKey("hstate-g1", TOPIC, 0),
            1,
            0,
            -1,
            (StateBatch(5, 8, 0, 3), StateBatch(30, 31, 4, 1)),
            4,
        ),
    ),
    (
        "000100096873746174652d673159d6a50926d247f5bb1bc90fc0534c7a00000000",
        "00000000000100000000ffffffffffffffff02000000000000000f00000000000000100000020000",
        ShareUpdate(SharePartitionKey("hstate-g1", TOPIC, 0), 1, 0, -1, (StateBatch(15, 16, 0, 2),)),
    ),
]

_int32 = st.integers(-(2**31), 2**31 - 1)
_int64 = st.integers(-(2**63), 2**63 - 1)
_keys = st.builds(SharePartitionKey, st.text(max_size=20), st.uuids(), _int32)
_batches = st.lists(
    st.builds(StateBatch, _int64, _int64, st.integers(-128, 127), st.integers(-(2**15), 2**15 - 1)),
    max_size=4,
).map(tuple)
_records: st.SearchStrategy[ShareRecord] = st.one_of(
    st.builds(ShareSnapshot, _keys, _int32, _int32, _int32, _int64, _int64, _int64, _batches, _int32),
    st.builds(ShareUpdate, _keys, _int32, _int32, _int64, _batches, _int32),
    st.builds(ShareStateDeleted, _keys),
)


@pytest.mark.parametrize(("key", "value", "record"), WRITTEN)
def test_records_are_those_of_apache_kafka(key: str, value: str, record: ShareRecord) -> None:
    assert decode(bytes.fromhex(key), bytes.fromhex(value)) == record
    assert encode(record) == (bytes.fromhex(key), bytes.fromhex(value))


def test_a_tombstone_has_the_key_of_a_snapshot() -> None:
    key = bytes.fromhex(WRITTEN[0][0])
    record = ShareStateDeleted(SharePartitionKey("hstate-g1", TOPIC, 0))
    assert encode(record) == (key, None)
    assert decode(key, None) == record
    assert decode(b"\x00\x01" + key[2:], None) is None


@given(_records)
def test_every_record_is_read_as_it_was_written(record: ShareRecord) -> None:
    assert decode(*encode(record)) == record


@given(_records, st.data())
def test_broken_bytes_are_refused_with_a_reason(record: ShareRecord, data: st.DataObject) -> None:
    key, value = encode(record)
    cut = data.draw(st.integers(0, len(key) - 1))
    with pytest.raises(CorruptStateError):
        decode(key[:cut], value)
    if value is not None:
        at = data.draw(st.integers(0, len(value) - 1))
        with pytest.raises(CorruptStateError):
            decode(key, value[:at])


@given(st.binary(max_size=60), st.one_of(st.none(), st.binary(max_size=100)))
def test_any_bytes_are_a_record_or_refused(key: bytes, value: bytes | None) -> None:
    try:
        decode(b"\x00" + key, value)
    except KohortError:
        return


def test_a_value_of_a_later_version_is_refused() -> None:
    key, value = encode(ShareUpdate(SharePartitionKey("g", UUID(int=1), 0), 0, 0, 0))
    assert value is not None
    with pytest.raises(CorruptStateError, match="version 1"):
        decode(key, b"\x00\x01" + value[2:])


def test_a_key_of_another_type_is_passed_over() -> None:
    assert decode(b"\x00\x02abc", b"") is None
    with pytest.raises(CorruptStateError, match="without a key"):
        decode(None, b"")


def test_a_group_id_that_no_record_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="32767"):
        encode(ShareStateDeleted(SharePartitionKey("g" * 40_000, UUID(int=1), 0)))
