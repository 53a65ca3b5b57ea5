"""What open transactions keep from a group, as the timeline shows it."""

from __future__ import annotations

import asyncio

import pytest

from kohort.admin import HeldBack
from kohort.admin.groups import tables
from kohort.producer import Producer
from kohort.protocol import TopicPartition
from tests.admin.conftest import Groups
from tests.admin.groups.test_commands import Name, NewTopic
from tests.admin.test_tables import printed


@pytest.mark.kafka
async def test_timeline_shows_what_an_open_transaction_holds_back(
    groups: Groups, new_topic: NewTopic, group: Name, bootstrap: str
) -> None:
    topic, name = new_topic("orders", partitions=2), group("billing")
    async with Producer(bootstrap_servers=bootstrap, transactional_id=topic, linger_ms=0) as producer:
        async with producer.transaction():
            await producer.send(topic, b"0", partition=0)
            await producer.send_offsets({TopicPartition(topic, 0): 0}, name)
        producer.begin_transaction()
        for _ in range(3):
            await producer.send_and_wait(topic, b"1", partition=0)
        await producer.send_offsets({TopicPartition(topic, 0): 2}, name)
        told = await asyncio.to_thread(groups, "timeline", name, "--json")
        shown = await asyncio.to_thread(groups, "timeline", name)

    rows = told.document["now"]["held_back"]
    assert [(row["partition"], row["stable_offset"], row["records"]) for row in rows] == [
        (0, 2, 3),
        (0, None, None),
    ]
    assert all(row["transactional_ids"] == [topic] and row["open_ms"] >= 0 for row in rows)
    assert [topic, "0", "records", "from", "2", "on", "3", topic] in [row[:8] for row in shown.rows()]
    assert [topic, "0", "the", "committed", "offset", "-", topic] in [row[:7] for row in shown.rows()]


def test_what_no_coordinator_will_end_is_shown_as_such() -> None:
    (table,) = tables.held_back([HeldBack("orders", 0, 7, 3, (), None)])
    line = " ".join(printed(table).splitlines()[1].split())
    assert line == "orders 0 records from 7 on 3 no coordinator: see `kohort transactions abort` unknown"
    assert tables.held_back([]) == []
