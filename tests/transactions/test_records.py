"""Records of transactions are Apache Kafka's, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import TopicPartition
from kohort.statemachine import TRANSACTION_DURABLE_STATES, TransactionState
from kohort.transactions.records import (
    CorruptTransactionRecordError,
    Record,
    TransactionDeleted,
    TransactionMetadata,
    decode,
    encode,
    encode_all,
)

KEY = b"\x00\x00\x00\x0atxn-35579e"
NAME, TOPIC = "txn-35579e", "txn-35579e-t"

PREPARED = (
    "0001000000000000000100000000ea6002020d74786e2d3335353739652d74030000000100000000000000"
    "01a204c3bef4000001a204c3bee70100080000000000000001"
)

#: What Apache Kafka 4.3.1 wrote, and what it says.
WRITTEN: list[tuple[str, TransactionMetadata]] = [
    (
        "0001000000000000000100000000ea600000000001a204c3bcb7ffffffffffffffff0100080000000000000001",
        TransactionMetadata(NAME, 1, 0, 60_000, update_ms=1_795_376_266_423, previous_producer_id=1),
    ),
    (
        PREPARED,
        TransactionMetadata(
            NAME,
            1,
            0,
            60_000,
            TransactionState.PREPARE_COMMIT,
            (TopicPartition(TOPIC, 1), TopicPartition(TOPIC, 0)),
            1_795_376_266_996,
            1_795_376_266_983,
            1,
        ),
    ),
    (
        "0001000000000000000100010000ea600501000001a204c3c064000001a204c3c060020008000000000000000102020002",
        TransactionMetadata(
            NAME,
            1,
            1,
            60_000,
            TransactionState.COMPLETE_ABORT,
            (),
            1_795_376_267_364,
            1_795_376_267_360,
            1,
            client_version=2,
        ),
    ),
]


@pytest.mark.parametrize(("value", "record"), WRITTEN)
def test_what_kafka_wrote_is_read(value: str, record: TransactionMetadata) -> None:
    assert decode(KEY, bytes.fromhex(value)) == record


@pytest.mark.parametrize(("value", "record"), [WRITTEN[0], WRITTEN[2]])
def test_what_is_written_is_what_kafka_writes(value: str, record: TransactionMetadata) -> None:
    assert encode(record) == (KEY, bytes.fromhex(value))


def test_a_value_of_the_old_version_is_read() -> None:
    head = "0000 0000000000000007 0003 00002710 01"
    topics = "00000001 0001 74 00000002 00000000 00000005"
    times = "0000000000000064 0000000000000032"
    value = bytes.fromhex(head + topics + times)
    partitions = (TopicPartition("t", 0), TopicPartition("t", 5))
    ongoing = TransactionState.ONGOING
    assert decode(KEY, value) == TransactionMetadata(NAME, 7, 3, 10_000, ongoing, partitions, 100, 50)
    found = decode(KEY, bytes.fromhex(head + "ffffffff" + times))
    assert isinstance(found, TransactionMetadata)
    assert (found.partitions, found.start_ms) == ((), 50)


def test_a_tombstone_has_no_value() -> None:
    assert encode(TransactionDeleted(NAME)) == (KEY, None)
    assert decode(KEY, None) == TransactionDeleted(NAME)


def test_keys_of_another_version_are_stepped_over() -> None:
    assert decode(b"\x00\x01\x00\x01x", b"anything") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", b""),
        (b"\x00\x00\x00\x05ab", b""),
        (KEY + b"x", b""),
        (KEY, b""),
        (KEY, b"\x00\x02" + b"\0" * 40),
        (KEY, bytes.fromhex(WRITTEN[0][0])[:-3]),
        (KEY, b"\x00\x01" + b"\0" * 14 + b"\x09" + b"\0" * 30),
    ],
)
def test_what_cannot_be_read_is_told_as_such(key: bytes | None, value: bytes) -> None:
    with pytest.raises(CorruptTransactionRecordError):
        decode(key, value)


partitions = st.lists(st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1)), unique=True)
transactions = st.builds(
    TransactionMetadata,
    st.text(max_size=9),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.integers(1, 2**31 - 1),
    st.sampled_from(TRANSACTION_DURABLE_STATES),
    partitions.map(tuple),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**63 - 1),
    st.integers(0, 2),
    st.just(-1),
)


@given(transactions)
def test_a_record_is_read_back_as_it_was_written(record: TransactionMetadata) -> None:
    found: Record | None = decode(*encode(record))
    assert isinstance(found, TransactionMetadata)
    kept = () if record.state is TransactionState.EMPTY else tuple(sorted(record.partitions))
    assert found == record._replace(partitions=kept)


def test_an_id_that_has_no_room_in_a_record_is_refused() -> None:
    with pytest.raises(ValueError, match="32767"):
        encode_all([TransactionDeleted("x" * 32_768)])
