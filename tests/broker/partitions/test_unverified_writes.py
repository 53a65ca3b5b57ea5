"""What a coordinator has verified, and the beginning of a transaction."""

from __future__ import annotations

import pytest

from kohort.broker.partitions.unverified_writes import UnverifiedWrites
from kohort.log import ProducerEntry
from kohort.protocol import BatchHeader, ErrorCode, KafkaError, parse_batch_header
from tests.broker.wire import batch


def test_what_a_coordinator_has_verified_counts_until_a_marker_comes() -> None:
    writes = UnverifiedWrites()
    asked = writes.ask(7)
    assert writes.on_verified(7, 0, asked)
    assert writes.is_verified(7, 0)
    assert not writes.is_verified(7, 1)
    writes.on_marker(7)
    assert not writes.is_verified(7, 0)
    late = writes.ask(7)
    writes.on_marker(7)
    assert not writes.on_verified(7, 0, late), "the transaction may be the one that has ended"
    assert not writes.is_verified(7, 0)


def header(*, epoch: int, sequence: int, transactional: bool) -> BatchHeader:
    records = batch(
        1, producer_id=7, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )
    return parse_batch_header(records)


def test_a_batch_of_no_transaction_may_not_come_before_the_first_one_of_the_producers_transaction() -> None:
    writes = UnverifiedWrites()
    writes.begin(header(epoch=0, sequence=0, transactional=True), from_zero=False)
    with pytest.raises(KafkaError) as refused:
        writes.check(header(epoch=1, sequence=5, transactional=False), None)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    writes.check(header(epoch=1, sequence=0, transactional=False), None)


def test_a_batch_of_an_old_epoch_is_left_to_the_log_which_fences_it() -> None:
    writes = UnverifiedWrites()
    writes.begin(header(epoch=1, sequence=0, transactional=True), from_zero=False)
    writes.check(header(epoch=0, sequence=5, transactional=False), ProducerEntry(7, 1))
