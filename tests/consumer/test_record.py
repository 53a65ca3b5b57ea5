"""Records: what a consumer gives is a Record like one that is made by hand."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from kohort.consumer import Record
from kohort.consumer.record import RecordBatch, Rows
from kohort.protocol import TopicPartition

FIELDS = ("orders", 3, 7, 1_234, b"k", b"v", (), 5, 9)


def _given() -> Record:
    rows = Rows([7], [1_234], [b"k"], [b"v"], None)
    (record,) = RecordBatch(TopicPartition("orders", 3), rows, 5, 9).records()
    return record


def _by_hand() -> Record:
    return Record(*FIELDS)


@pytest.mark.parametrize("make", [_given, _by_hand])
def test_a_record_is_its_fields_and_equals_itself_only(make: Callable[[], Record]) -> None:
    record, again = make(), make()
    assert isinstance(record, Record)
    assert tuple(record) == FIELDS
    assert (record.value, record.epoch, record.topic_partition) == (b"v", 9, TopicPartition("orders", 3))
    assert record == record
    assert record != again
    assert len({record, again}) == 2
    assert repr(record) == repr(_by_hand())


@pytest.mark.parametrize("make", [_given, _by_hand])
@pytest.mark.parametrize("copied", [copy.copy, lambda record: pickle.loads(pickle.dumps(record))])
def test_a_copy_has_the_same_fields(make: Callable[[], Record], copied: Callable[[Record], Record]) -> None:
    record = copied(make())
    assert isinstance(record, Record)
    assert tuple(record) == FIELDS
    assert record._replace(offset=8).offset == 8
