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
