"""A topic that is deleted under a job: what was not read of it is a loss, and the others go on.

Covers: spark/_group.py, spark/_stream.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaAdminClient

from kohort.protocol import TopicPartition
from kohort.spark import DataLossError, Event, OffsetRange, OffsetsLost, _group
from kohort.spark._source_options import read_source_options
from kohort.spark._stream import SourceOffsets
from tests.spark.conftest import Side
from tests.spark.loops import Driver, Named, NewTopic, next_of

pytestmark = pytest.mark.kafka

#: Requests about a topic that is gone would be tried for twice as long.
QUICK = {"metadata_max_age_ms": 1, "request_timeout_ms": 5_000}


def deleted(side: Side, topic: str) -> None:
    with KafkaAdminClient(bootstrap_servers=side.bootstrap) as admin:
        admin.delete_topics([topic])
    await_gone(side, topic)


def await_gone(side: Side, topic: str) -> None:
    while side.client.run(lambda cluster: cluster.metadata([topic])).partitions(topic):
        pass


@pytest.fixture
def two(new_topic: NewTopic, side: Side) -> tuple[str, str]:
    """Two topics with 10 records each."""
    a, b = new_topic("a", partitions=1), new_topic("b", partitions=1)
    for topic in (a, b):
        side.produce(topic, {0: 10})
    return a, b


def test_the_loop_fails_or_goes_on_with_an_event(
    two: tuple[str, str], side: Side, driver: Driver, group: Named
) -> None:
    a, b = two
    options: dict[str, Any] = {"topics": None, "topic_pattern": f"{a}|{b}", "max_offsets": 8, **QUICK}
    strict = driver(group("strict"), **options)
    events: list[Event] = []
    lenient = driver(etl := group("lenient"), **options, fail_on_data_loss=False, on_event=events.append)
    for batches in (strict, lenient):
        next_of(batches).commit()
    deleted(side, b)
    unread = (OffsetRange(b, 0, 4, 10),)
    for _ in range(2):
        with pytest.raises(DataLossError, match="partitions are gone") as caught:
            strict.next_batch()
        assert [span.topic_partition for span in caught.value.lost] == [TopicPartition(b, 0)]
    assert caught.value.lost == unread
    events.clear()
    batch = next_of(lenient)
    assert {span.topic for span in batch.ranges} == {a}
    assert events == [OffsetsLost(etl, unread)]
    batch.commit()
    # told once
    assert lenient.next_batch() is None
    assert len([event for event in events if isinstance(event, OffsetsLost)]) == 1


def test_the_loop_commits_a_batch_without_the_topic_that_was_deleted_while_it_was_written(
    two: tuple[str, str], side: Side, driver: Driver, group: Named
) -> None:
    a, b = two
    batches = driver(etl := group("etl"), topics=None, topic_pattern=f"{a}|{b}", **QUICK)
    batch = next_of(batches)
    deleted(side, b)
    batch.commit()
    assert side.committed(etl, a) == {0: 10}


@pytest.mark.parametrize("committed_late", [False, True])
def test_a_topic_that_is_made_again_and_longer_than_before_is_read_from_its_first_record(
    committed_late: bool,
    new_topic: NewTopic,
    side: Side,
    driver: Driver,
    group: Named,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # with the default age of metadata, a batch that ends is a reason to ask for them
    monkeypatch.setattr(_group, "_SECONDS_BETWEEN_LOOK_UPS", 0.0)
    topic = new_topic("orders", partitions=1)
    side.produce(topic, {0: 10})
    events: list[Event] = []
    strict = driver(group("strict"), topic, max_offsets=4)
    lenient = driver(
        etl := group("etl"), topic, max_offsets=4, fail_on_data_loss=False, on_event=events.append
    )
    next_of(strict).commit()
    batch = next_of(lenient)
    if not committed_late:
        batch.commit()
    deleted(side, topic)
    side.client.run(lambda cluster: cluster.create_topics({topic: 1}))
    side.produce(topic, {0: 30})
    if committed_late:
        batch.commit()
    with pytest.raises(DataLossError, match="partitions are gone"):
        strict.next_batch()
    batch = next_of(lenient)
    assert batch.ranges == (OffsetRange(topic, 0, 0, 4),)
    assert events[-1] == OffsetsLost(etl, (OffsetRange(topic, 0, 4, 10),))
    batch.commit()
    assert next_of(lenient).ranges == (OffsetRange(topic, 0, 4, 8),)
    assert side.committed(etl, topic) == {0: 4}


def test_a_batch_is_not_committed_for_a_topic_that_is_made_again_while_it_is_written(
    two: tuple[str, str], side: Side, driver: Driver, group: Named
) -> None:
    a, b = two
    batch = next_of(driver(etl := group("etl"), a, b))
    deleted(side, b)
    side.client.run(lambda cluster: cluster.create_topics({b: 1}))
    side.produce(b, {0: 30})
    batch.commit()
    # this driver ends here; the next one knows nothing of the former topic
    assert next_of(driver(etl, a, b)).ranges == (OffsetRange(b, 0, 0, 30),)
    assert side.committed(etl, a) == {0: 10}


@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_query_fails_or_leaves_the_partition_out_of_its_checkpoint_and_of_commits(
    strict: str, two: tuple[str, str], side: Side, group: Named, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = two
    given = {
        "kafka.bootstrap.servers": side.bootstrap,
        "kafka.metadata.max.age.ms": "1",
        "kafka.request.timeout.ms": "5000",
        "groupId": (etl := group("etl")),
        "subscribePattern": f"{a}|{b}",
        "failOnDataLoss": strict,
    }
    make: Callable[[], SourceOffsets] = lambda: SourceOffsets(read_source_options(given, stream=True))  # noqa: E731
    offsets = make()
    start = offsets.initial()
    planned = offsets.latest(start, 8, all_of_it=False)
    deleted(side, b)
    # Spark has done the batch
    after = make()
    if strict == "true":
        for source in (offsets, after):
            with pytest.raises(DataLossError, match="partitions are gone"):
                source.latest(planned, None, all_of_it=False)
        with pytest.raises(DataLossError, match="partitions are gone"):
            after.ranges(start, planned)
        return
    place = TopicPartition(a, 0)
    with caplog.at_level(logging.WARNING, logger="kohort.spark"):
        end = offsets.latest(planned, None, all_of_it=False)
    assert end == {place: 10}
    assert f"lost 6 offsets: {b}-0 [4, 10)" in caplog.text
    assert "does not follow" not in caplog.text
    assert side.committed(etl, a) == {0: planned[place]}
    assert offsets.ranges(planned, end) == [OffsetRange(a, 0, planned[place], 10)]
    assert after.ranges(start, planned) == [OffsetRange(a, 0, 0, planned[place])]
