"""Partitions that are newer than what a member first saw of their topics."""

from __future__ import annotations

import uuid

from kohort.client import ClusterMetadata, PartitionMetadata, TopicMetadata
from kohort.consumer.reading.first_seen import FirstSeen
from kohort.protocol import ErrorCode, TopicPartition

OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)


def _known(count: int, topic_id: uuid.UUID | None = OLD) -> ClusterMetadata:
    rows = {number: PartitionMetadata(number, 0, 0, (0,)) for number in range(count)}
    return ClusterMetadata(topics={"orders": TopicMetadata("orders", topic_id, rows)})


def _refused(code: ErrorCode) -> ClusterMetadata:
    return ClusterMetadata(errors={"orders": code})


def _newer(seen: FirstSeen, topic_id: uuid.UUID | None = OLD) -> list[int]:
    return [number for number in range(4) if seen.is_newer(TopicPartition("orders", number), topic_id)]


def test_partitions_that_are_added_are_newer() -> None:
    seen = FirstSeen()
    assert _newer(seen) == [], "nothing was seen yet"
    seen.look_at({"orders"}, _known(2))
    seen.look_at({"orders"}, _known(4))
    assert _newer(seen) == [2, 3]


def test_a_topic_that_was_not_there_is_newer() -> None:
    seen = FirstSeen()
    seen.look_at({"orders"}, _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    seen.look_at({"orders"}, _known(2))
    assert _newer(seen) == [0, 1, 2, 3]


def test_a_topic_that_was_made_anew_is_newer_whether_it_was_missed_or_not() -> None:
    missed, not_missed = FirstSeen(), FirstSeen()
    for seen in (missed, not_missed):
        seen.look_at({"orders"}, _known(4))
        assert _newer(seen) == []
        assert _newer(seen, NEW) == [0, 1, 2, 3]
    missed.look_at({"orders"}, _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    missed.look_at({"orders"}, _known(4, NEW))
    assert _newer(missed, NEW) == [0, 1, 2, 3]
    assert _newer(not_missed, None) == [], "brokers before Kafka 2.8 have no ids"


def test_a_topic_that_a_broker_did_not_know_for_a_while_is_not_newer() -> None:
    seen = FirstSeen()
    seen.look_at({"orders"}, _known(2))
    seen.look_at({"orders"}, _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    seen.look_at({"orders"}, _known(3))
    assert _newer(seen) == [2, 3]


def test_a_topic_without_an_id_is_newer_once_it_was_missed_and_not_because_it_gets_an_id() -> None:
    seen = FirstSeen()
    seen.look_at({"orders"}, _known(4, None))
    seen.look_at({"orders"}, _known(4, NEW))
    assert _newer(seen, NEW) == [], "brokers with ids came in a rolling upgrade"
    seen.look_at({"orders"}, _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert _newer(seen, None) == [0, 1, 2, 3]


def test_a_topic_that_may_not_be_read_yet_may_be_older() -> None:
    seen = FirstSeen()
    seen.look_at({"orders"}, _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    seen.look_at({"orders"}, _known(2))
    assert _newer(seen) == [2, 3]


def test_a_topic_that_is_subscribed_to_again_is_seen_anew() -> None:
    seen = FirstSeen()
    seen.look_at({"orders"}, _known(1))
    seen.look_at({"payments"}, _known(1))
    seen.look_at({"orders"}, _known(3))
    assert _newer(seen) == [3]
