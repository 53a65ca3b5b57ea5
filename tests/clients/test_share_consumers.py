"""Members of share groups (KIP-932): confluent-kafka's ShareConsumer, and Apache Kafka's own tools."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer

from tests.clients.java import (
    CONFIG_COMMAND,
    SHARE_CONSOLE,
    SHARE_GROUP_COMMAND,
    VERIFIABLE_SHARE,
    ToolServer,
    table,
)
from tests.group_configs import set_group_configs

pytestmark = [pytest.mark.clients, pytest.mark.kafka, pytest.mark.slow(10)]

#: A new group's partitions come with the second heartbeat, whose interval is 5 s.
_JOIN_S = 30.0
_ACCEPT, _RELEASE, _REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


@contextmanager
def member(bootstrap: str, group: str, *topics: str, explicit: bool = False) -> Iterator[ShareConsumer]:
    """A member of a share group, which accepts what it is given unless ``explicit``."""
    mode = "explicit" if explicit else "implicit"
    consumer = ShareConsumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": mode}
    )
    try:
        consumer.subscribe(list(topics))
        yield consumer
    finally:
        consumer.close()


def poll_records(consumer: ShareConsumer, timeout_s: float = 1.0) -> list[Message]:
    """Records of one poll; an error among them fails the test."""
    records = list(consumer.poll(timeout_s))
    assert not [record.error() for record in records if record.error() is not None]
    return records


def read_all(
    consumer: ShareConsumer, count: int, acknowledge: Callable[[Message], AcknowledgeType] | None = None
) -> list[Message]:
    """Poll until ``count`` records were given; each is acknowledged as ``acknowledge`` says."""
    found: list[Message] = []
    until = time.monotonic() + _JOIN_S
    while len(found) < count and time.monotonic() < until:
        for record in poll_records(consumer):
            found.append(record)
            if acknowledge is not None:
                consumer.acknowledge(record, acknowledge(record))
        if acknowledge is not None:
            assert set(consumer.commit_sync(20.0).values()) <= {None}
    assert len(found) >= count
    return found


def values_of(records: list[Message]) -> list[int]:
    return [int(record.value()) for record in records]


def lag_of(run_tool: ToolServer, group: str, topic: str) -> dict[str, str]:
    """Start offset and lag of each partition, as ``kafka-share-groups`` shows them."""
    rows = table(run_tool(SHARE_GROUP_COMMAND, "--describe", "--group", group))
    return {row["PARTITION"]: row["LAG"] for row in rows if row["TOPIC"] == topic}


def test_two_members_share_a_topic_and_get_each_record_once(
    bootstrap: str, queue: str, filled_topic: Callable[..., str], run_tool: ToolServer
) -> None:
    name = filled_topic(300, partitions=3)
    with member(bootstrap, queue, name) as one, member(bootstrap, queue, name) as other:
        seen: Counter[int] = Counter()
        until = time.monotonic() + _JOIN_S
        while len(seen) < 300 and time.monotonic() < until:
            for consumer in (one, other):
                seen.update(values_of(poll_records(consumer, 0.2)))
        for consumer in (one, other):
            assert set(consumer.commit_sync(20.0).values()) <= {None}
    assert seen == Counter(range(300))
    assert lag_of(run_tool, queue, name) == {"0": "0", "1": "0", "2": "0"}


def test_what_is_released_comes_again_and_counts_and_what_is_rejected_does_not(
    bootstrap: str, queue: str, filled_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    name = filled_topic(9)
    of = (_ACCEPT, _RELEASE, _REJECT)
    with member(bootstrap, queue, name, explicit=True) as consumer:
        first = read_all(consumer, 9, lambda record: of[int(record.value()) % 3])
        assert [record.delivery_count() for record in first] == [1] * 9
        again = read_all(consumer, 3, lambda _: _ACCEPT)
        assert [(int(record.value()), record.delivery_count()) for record in again] == [
            (1, 2),
            (4, 2),
            (7, 2),
        ]
        produce(name, [100])
        assert values_of(read_all(consumer, 1, lambda _: _ACCEPT)) == [100]


def test_a_record_ends_with_its_last_delivery(
    bootstrap: str, queue: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    set_group_configs(bootstrap, queue, share_delivery_count_limit="2")
    name = new_topic("failing", partitions=1)
    produce(name, [1])
    with member(bootstrap, queue, name, explicit=True) as consumer:
        counts = [record.delivery_count() for record in read_all(consumer, 2, lambda _: _RELEASE)]
        assert counts == [1, 2]
        produce(name, [2])
        assert values_of(read_all(consumer, 1, lambda _: _ACCEPT)) == [2]


def test_what_a_closed_member_had_is_given_to_the_next(
    bootstrap: str, queue: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    name = new_topic("handed-on", partitions=1)
    produce(name, range(5))
    with member(bootstrap, queue, name, explicit=True) as first:
        found: list[Message] = []
        until = time.monotonic() + _JOIN_S
        while not found and time.monotonic() < until:
            found = poll_records(first)
        assert values_of(found) == [0, 1, 2, 3, 4]
        first.acknowledge(found[0], _ACCEPT)
    with member(bootstrap, queue, name, explicit=True) as second:
        assert values_of(read_all(second, 4, lambda _: _ACCEPT)) == [1, 2, 3, 4]


def test_aborted_records_are_not_given_to_a_group_of_read_committed(
    bootstrap: str, queue: str, new_topic: Callable[..., str], topic: Callable[[str], str]
) -> None:
    set_group_configs(bootstrap, queue, share_isolation_level="read_committed")
    name = new_topic("isolated", partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic("id")})
    producer.init_transactions(30)
    for number, committed in enumerate((True, False, True)):
        producer.begin_transaction()
        for value in range(3):
            producer.produce(name, str(number * 10 + value))
        producer.flush()
        if committed:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    with member(bootstrap, queue, name, explicit=True) as consumer:
        assert values_of(read_all(consumer, 6, lambda _: _ACCEPT)) == [0, 1, 2, 20, 21, 22]


def test_share_groups_command(
    bootstrap: str, queue: str, filled_topic: Callable[..., str], run_tool: ToolServer
) -> None:
    name = filled_topic(10, partitions=2)
    with member(bootstrap, queue, name) as consumer:
        read_all(consumer, 10)
        consumer.commit_sync(20.0)
        assert queue in run_tool(SHARE_GROUP_COMMAND, "--list").split()
        state = run_tool(SHARE_GROUP_COMMAND, "--describe", "--group", queue, "--state")
        assert re.search(rf"{queue}\s+\S+\s+\(?\S+\)?.*Stable\s+1\b", state), state
        members = run_tool(SHARE_GROUP_COMMAND, "--describe", "--group", queue, "--members")
        assert f"{name}:0,1" in members, members
        refused = run_tool.run(SHARE_GROUP_COMMAND, "--delete", "--group", queue)
        assert f"Share group '{queue}' is not EMPTY." in refused.out
    run_tool(
        SHARE_GROUP_COMMAND,
        "--reset-offsets",
        "--to-earliest",
        "--execute",
        "--group",
        queue,
        "--topic",
        name,
    )
    assert lag_of(run_tool, queue, name) == {"0": "5", "1": "5"}
    with member(bootstrap, queue, name) as consumer:
        assert sorted(values_of(read_all(consumer, 10))) == list(range(10))
    run_tool(SHARE_GROUP_COMMAND, "--delete-offsets", "--group", queue, "--topic", name)
    assert lag_of(run_tool, queue, name) == {}
    assert f"'{queue}'" in run_tool(SHARE_GROUP_COMMAND, "--delete", "--group", queue)
    assert queue not in run_tool(SHARE_GROUP_COMMAND, "--list").split()


def test_console_share_consumer(queue: str, filled_topic: Callable[..., str], run_tool: ToolServer) -> None:
    name = filled_topic(10)
    printed = run_tool(
        SHARE_CONSOLE, "--topic", name, "--group", queue, "--max-messages", "10", "--timeout-ms", "30000"
    )
    assert [line for line in printed.splitlines() if line.isdigit()] == [str(number) for number in range(10)]


def test_config_command_sets_configs_of_a_share_group(queue: str, run_tool: ToolServer) -> None:
    entity = ("--entity-type", "groups", "--entity-name", queue)
    run_tool(CONFIG_COMMAND, "--alter", *entity, "--add-config", "share.record.lock.duration.ms=20000")
    described = run_tool(CONFIG_COMMAND, "--describe", *entity)
    assert "share.record.lock.duration.ms=20000" in described
    assert "share.auto.offset.reset=earliest" in described


def test_verifiable_share_consumer(
    queue: str, filled_topic: Callable[..., str], run_tool: ToolServer
) -> None:
    name = filled_topic(50)
    printed = run_tool(
        VERIFIABLE_SHARE,
        "--topic",
        name,
        "--group-id",
        queue,
        "--max-messages",
        "50",
        "--acknowledgement-mode",
        "sync",
        "--offset-reset-strategy",
        "earliest",
    )
    assert '"name":"offsets_acknowledged"' in printed
    assert (
        sum(int(count) for count in re.findall(r'"name":"offsets_acknowledged".*?"count":(\d+)', printed))
        == 50
    )
