"""Idempotent producers and open transactions."""

from __future__ import annotations

import pytest

from kohort.log._indexes import AbortedTransaction
from kohort.log._producers import NONE, Producers, decode_snapshot, encode_snapshot
from kohort.log._records import Marker
from kohort.protocol import BatchHeader, CorruptBatchError, ErrorCode, KafkaError, parse_batch_header
from tests.log.batches import NOW_MS, batch, marker

LAST = 2**31 - 1


def header(
    count: int,
    sequence: int,
    *,
    offset: int = 0,
    producer_id: int = 7,
    epoch: int = 0,
    transactional: bool = False,
    timestamp_ms: int = NOW_MS,
) -> BatchHeader:
    data = batch(
        count,
        producer_id=producer_id,
        producer_epoch=epoch,
        sequence=sequence,
        transactional=transactional,
        timestamp_ms=timestamp_ms,
    )
    return parse_batch_header(data)._replace(base_offset=offset)


def marker_header(producer_id: int, offset: int, *, epoch: int = 0) -> BatchHeader:
    data = marker(producer_id, committed=True, producer_epoch=epoch)
    return parse_batch_header(data)._replace(base_offset=offset)


def wrote(*headers: BatchHeader) -> Producers:
    producers = Producers()
    for each in headers:
        producers.note(each, None, NOW_MS)
    return producers


def refusal(
    producers: Producers, each: BatchHeader, *, sequence: bool = True, marker: Marker | None = None
) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        producers.check(each, sequence=sequence, marker=marker)
    return caught.value.code


def test_a_producer_that_is_not_known_may_begin_anywhere() -> None:
    """As Apache Kafka since KIP-360: its records may have been deleted."""
    wrote().check(header(2, 5), sequence=True)


def test_the_next_batch_follows_the_last_sequence_number() -> None:
    producers = wrote(header(2, 5))
    producers.check(header(1, 7), sequence=True)
    for gap in (8, 100, 0):
        assert refusal(producers, header(1, gap)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_only_clients_have_their_sequence_numbers_checked() -> None:
    wrote(header(2, 5)).check(header(1, 0), sequence=False)


def test_sequence_numbers_wrap_to_zero() -> None:
    wrote(header(2, LAST - 1)).check(header(1, 0), sequence=True)
    producers = wrote(header(3, LAST - 1))  # LAST - 1, LAST, 0
    producers.check(header(1, 1), sequence=True)
    assert refusal(producers, header(1, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_last_five_batches_are_remembered() -> None:
    producers = wrote(*(header(2, 2 * number, offset=10 + 2 * number) for number in range(6)))
    assert producers.duplicate_of(header(2, 0)) is None
    for number in range(1, 6):
        duplicate = producers.duplicate_of(header(2, 2 * number))
        assert duplicate is not None
        assert (duplicate.base_offset, duplicate.last_offset) == (10 + 2 * number, 11 + 2 * number)


@pytest.mark.parametrize(("count", "sequence"), [(1, 5), (1, 6), (3, 5), (2, 4)])
def test_a_batch_that_overlaps_another_is_no_duplicate_and_out_of_order(count: int, sequence: int) -> None:
    producers = wrote(header(2, 5))
    assert producers.duplicate_of(header(count, sequence)) is None
    assert refusal(producers, header(count, sequence)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_newer_epoch_begins_at_zero_and_ends_the_older() -> None:
    producers = wrote(header(1, 0), header(1, 1))
    assert refusal(producers, header(1, 2, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    fresh = header(1, 0, epoch=1)
    assert producers.duplicate_of(fresh) is None
    producers.check(fresh, sequence=True)
    producers.note(fresh, None, NOW_MS)
    assert refusal(producers, header(1, 1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(producers, header(1, 1), sequence=False) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.duplicate_of(header(1, 1)) is None


def oldest_in(producers: Producers) -> int | None:
    found = producers.oldest_open
    return None if found is None else found.producer_id


def test_transactions_are_open_from_their_first_record_to_their_marker() -> None:
    producers = wrote(
        header(1, 0, offset=5, producer_id=1, transactional=True),
        header(1, 0, offset=6, producer_id=2, transactional=True),
        header(1, 1, offset=7, producer_id=1, transactional=True),
    )
    assert producers.first_open_offset == 5
    assert oldest_in(producers) == 1
    producers.note(marker_header(1, 8), Marker(committed=True, coordinator_epoch=3), NOW_MS)
    assert producers.first_open_offset == 6
    assert oldest_in(producers) == 2
    producers.note(marker_header(2, 9), Marker(committed=False, coordinator_epoch=3), NOW_MS)
    assert oldest_in(producers) is None
    assert producers.first_open_offset is None


def test_an_abort_is_told_with_what_was_stable_then() -> None:
    producers = wrote(
        header(1, 0, offset=5, producer_id=1, transactional=True),
        header(1, 0, offset=6, producer_id=2, transactional=True),
    )
    abort, commit = Marker(committed=False, coordinator_epoch=0), Marker(committed=True, coordinator_epoch=0)
    assert producers.ended_by(marker_header(1, 8), commit) is None
    assert producers.ended_by(marker_header(1, 8), abort) == AbortedTransaction(1, 5, 8, 6)
    assert producers.ended_by(marker_header(2, 8), abort) == AbortedTransaction(2, 6, 8, 5)
    assert producers.ended_by(marker_header(3, 8), abort) is None
    producers.note(marker_header(1, 8), abort, NOW_MS)
    assert producers.ended_by(marker_header(2, 9), abort) == AbortedTransaction(2, 6, 9, 10)


def test_records_outside_of_an_open_transaction_are_refused() -> None:
    producers = wrote(header(1, 0, transactional=True))
    assert refusal(producers, header(1, 1)) is ErrorCode.INVALID_TXN_STATE
    producers.check(header(1, 1, transactional=True), sequence=True)


def test_a_marker_of_an_earlier_coordinator_is_refused() -> None:
    producers = wrote(header(1, 0, transactional=True))
    producers.note(marker_header(7, 1), Marker(committed=True, coordinator_epoch=5), NOW_MS)
    late = Marker(committed=True, coordinator_epoch=4)
    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert refusal(producers, marker_header(7, 2), sequence=False, marker=late) == fenced
    producers.check(marker_header(7, 2), sequence=False, marker=Marker(committed=True, coordinator_epoch=5))


def test_a_marker_of_a_later_epoch_lets_the_sequence_begin_anew() -> None:
    """As with transaction.version 2 (KIP-890): the epoch rises with every transaction."""
    producers = wrote(header(3, 0, transactional=True))
    producers.note(marker_header(7, 3, epoch=1), Marker(committed=True, coordinator_epoch=0), NOW_MS)
    found = producers.get(7)
    assert found is not None
    assert (found.epoch, len(found.batches)) == (1, 0)
    assert refusal(producers, header(1, 3, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(producers, header(1, 3, epoch=0)) == ErrorCode.INVALID_PRODUCER_EPOCH
    producers.check(header(1, 0, epoch=1, transactional=True), sequence=True)


def test_producers_expire_by_the_brokers_clock_and_never_within_a_transaction() -> None:
    producers = wrote(
        header(1, 0, producer_id=1, timestamp_ms=0),
        header(1, 0, producer_id=2, transactional=True),
    )
    producers.expire(NOW_MS + 999, 1000)
    assert len(producers) == 2
    producers.expire(NOW_MS + 1000, 1000)
    assert [producer.producer_id for producer in producers] == [2]


#: ``clicks-a-2`` of a data folder of Apache Kafka 4.3.1.
GOLDEN_SNAPSHOT = bytes.fromhex(
    "0001 143293a9 00000002"
    "0000000000000000 0000 00000000 0000000000000032 00000000 000001a1fa6c9dbf 00000000 ffffffffffffffff"
    "0000000000000001 0000 00000000 0000000000000034 00000000 000001a1fa6c9e28 00000000 ffffffffffffffff"
)


def test_snapshots_are_written_and_read_as_kafka_does() -> None:
    read = decode_snapshot(GOLDEN_SNAPSHOT)
    assert [(each.producer_id, each.epoch, each.last_timestamp_ms) for each in read] == [
        (0, 0, 0x01A1FA6C9DBF),
        (1, 0, 0x01A1FA6C9E28),
    ]
    assert [each.batches[-1].last_offset for each in read] == [0x32, 0x34]
    assert encode_snapshot(read) == GOLDEN_SNAPSHOT


def test_a_snapshot_keeps_last_batch_and_open_transaction() -> None:
    producers = wrote(
        header(2, 0, offset=5, producer_id=1, transactional=True),
        header(2, 2, offset=9, producer_id=1, transactional=True),
        header(1, 40, offset=11, producer_id=2),
    )
    again = Producers()
    again.restore(decode_snapshot(encode_snapshot(producers)), NOW_MS)
    assert again.first_open_offset == 5
    again.check(header(1, 4, producer_id=1, transactional=True), sequence=True)
    duplicate = again.duplicate_of(header(2, 2, producer_id=1))
    assert duplicate is not None
    assert duplicate.base_offset == 9
    assert again.duplicate_of(header(1, 40, producer_id=2)) is not None


def test_a_producer_known_by_a_marker_alone_survives_a_snapshot() -> None:
    producers = Producers()
    producers.note(marker_header(4, 3, epoch=2), Marker(committed=True, coordinator_epoch=9), NOW_MS)
    (read,) = decode_snapshot(encode_snapshot(producers))
    assert (read.producer_id, read.epoch, read.coordinator_epoch, read.transaction_start) == (4, 2, 9, NONE)
    assert not read.batches


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOLDEN_SNAPSHOT[:9],
        GOLDEN_SNAPSHOT[:-1],
        GOLDEN_SNAPSHOT + b"\0",
        b"\x00\x02" + GOLDEN_SNAPSHOT[2:],
        GOLDEN_SNAPSHOT[:40] + b"\x01" + GOLDEN_SNAPSHOT[41:],
    ],
)
def test_a_damaged_snapshot_is_told(data: bytes) -> None:
    with pytest.raises(CorruptBatchError, match="producer snapshot"):
        decode_snapshot(data)


def test_behind_a_first_batch_that_could_not_be_written_none_is_taken_before_it() -> None:
    """It was refused with an error after which clients send it again, and others were under way behind it."""
    producers = Producers()
    producers.on_missed(header(3, 0))
    with pytest.raises(KafkaError) as refused:
        producers.check(header(2, 3), sequence=True)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producers.check(header(2, 3, epoch=1), sequence=True)
    producers.check(header(2, 3, producer_id=8), sequence=True)
    producers.check(header(3, 0), sequence=True)
    producers.note(header(3, 0), None, NOW_MS)
    producers.check(header(2, 3), sequence=True)


def test_a_thousand_missed_first_batches_are_remembered() -> None:
    producers = Producers()
    for number in range(1_001):
        producers.on_missed(header(1, 0, producer_id=number))
    producers.check(header(1, 1, producer_id=0), sequence=True)
    with pytest.raises(KafkaError):
        producers.check(header(1, 1, producer_id=1), sequence=True)
