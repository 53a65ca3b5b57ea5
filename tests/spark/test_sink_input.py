"""What a sink is given: rows and topics that it cannot take, and some that only seem so.

Covers: spark/_sink.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaConsumer

from kohort.protocol import KafkaError
from kohort.spark import UnknownTopicError
from kohort.spark._ledger_entry import LedgerError
from kohort.spark._sink import Attempt, TopicWriter
from kohort.spark._sink_options import read_sink_options
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic
from tests.spark.test_transaction import visible

pytestmark = pytest.mark.kafka

Write = Callable[..., None]


@pytest.fixture
def write(side: Side) -> Write:
    """``write(topic, value=[...], ledgerGroup=...)``: a batch of one task, with these columns and options."""

    def write_batch(topic: str, *, key: str | None = None, **given: Any) -> None:
        columns = {name: column for name, column in given.items() if not isinstance(column, str)}
        options = {name: option for name, option in given.items() if isinstance(option, str)}
        connection = {"kafka.bootstrap.servers": side.bootstrap, "kafka.request.timeout.ms": "5000"}
        writer = TopicWriter(read_sink_options(connection | {"topic": topic} | options))
        writer.start()
        writer.commit([writer.write_rows(iter([pa.RecordBatch.from_pydict(columns)]), key, Attempt())])

    return write_batch


@pytest.mark.parametrize("ledger", [True, False])
def test_records_that_are_not_too_large_each_are_not_too_large_together(
    ledger: bool, write: Write, side: Side, new_topic: NewTopic, group: Named
) -> None:
    topic = new_topic("out", 1)
    # a batch that is not full yet, and then a record with which it would be larger than max.message.bytes
    values = ["x" * 400_000, "y" * 900_000] * 3
    write(topic, key="1-f00d", value=values, **({"ledgerGroup": group("ledger")} if ledger else {}))
    assert sorted(map(len, visible(side.bootstrap, topic))) == [400_000] * 3 + [900_000] * 3


def test_a_batch_that_is_larger_than_the_topic_takes_is_not_called_a_record(
    write: Write, side: Side, new_topic: NewTopic
) -> None:
    topic = new_topic("out", 1, max_message_bytes="1000")
    with pytest.raises(KafkaError, match=r"2 records were refused for .*: .*batch.*max\.message\.bytes"):
        write(topic, value=["x" * 600] * 2)
    write(topic, value=["x" * 600] * 2, **{"kafka.batch.size": "1000"})
    assert len(visible(side.bootstrap, topic)) == 2


def test_without_the_ledgers_topic_nothing_is_written(
    write: Write, side: Side, new_topic: NewTopic, group: Named
) -> None:
    topic = new_topic("out", 1)
    with pytest.raises(UnknownTopicError, match="'no-such-ledger' does not exist: create it"):
        write(topic, key="1-f00d", value=["a"], ledgerGroup=group("ledger"), ledgerTopic="no-such-ledger")
    assert visible(side.bootstrap, topic, "read_uncommitted") == []


def test_a_ledger_group_with_members_is_said_to_be_no_ledger(
    write: Write, side: Side, new_topic: NewTopic, group: Named
) -> None:
    topic, ledger = new_topic("out", 1), group("ledger")
    with KafkaConsumer(topic, bootstrap_servers=side.bootstrap, group_id=ledger) as member:
        while not member.assignment():
            member.poll(100)
        with pytest.raises(LedgerError, match=f"group '{ledger}' has members. Give the sink a ledgerGroup"):
            write(topic, key="1-f00d", value=["a"], ledgerGroup=ledger)
    assert visible(side.bootstrap, topic) == []
