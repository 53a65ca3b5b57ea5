"""Fetch: versions, limits, waiting, epochs, and what is refused."""

from __future__ import annotations

import threading
import time
from typing import Any
from uuid import UUID, uuid4

import pytest

from kohort.broker.apis import fetch as handler
from kohort.protocol import ApiKey, ErrorCode, iter_batches
from kohort.testing import RunningBroker
from tests.broker.metadata.topic_requests import LATEST
from tests.broker.wire import (
    Wire,
    batch,
    commit_fields,
    create_topic,
    fetch,
    fetch_fields,
    offset_at,
    part,
    produce,
)
from tests.waiting import wait_until


def batches(records: bytes) -> int:
    return len(list(iter_batches(records)))


@pytest.mark.parametrize("version", range(4, 13))
def test_records_from_an_offset_on(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name, 2)
    for _ in range(3):
        produce(wire, name, batch(2))
    answer = wire.call(ApiKey.FETCH, version, **fetch_fields(name, 2, 0, version=version))
    first, second = answer.responses[0].partitions
    assert (first.error_code, first.high_watermark, first.last_stable_offset) == (0, 6, 6)
    assert batches(first.records) == 2
    assert (second.high_watermark, second.records) == (0, b"")


def by_id(wire: Wire, version: int, topic_id: UUID | None, offset: int = 0) -> Any:
    wanted = part(
        ApiKey.FETCH,
        version,
        "FetchTopic",
        "FetchPartition",
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
    )
    fields = fetch_fields("", version=version)
    fields["topics"] = [part(ApiKey.FETCH, version, "FetchTopic", topic_id=topic_id, partitions=[wanted])]
    return wire.call(ApiKey.FETCH, version, **fields).responses[0]


@pytest.mark.parametrize("version", range(13, 19))
def test_topics_by_id(wire: Wire, name: str, version: int) -> None:
    topic_id = create_topic(wire, name).topic_id
    produce(wire, name, batch())
    found = by_id(wire, version, topic_id)
    assert found.topic_id == topic_id
    assert batches(found.partitions[0].records) == 1
    assert by_id(wire, version, uuid4()).partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert by_id(wire, version, None).partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_partition_gives_up_to_its_limit_in_whole_batches(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    size = len(batch())
    for _ in range(4):
        produce(wire, name, batch())
    for limit, expected in ((1, 1), (size, 1), (2 * size - 1, 1), (2 * size, 2), (3 * size + 5, 3)):
        (found,) = fetch(wire, name, 0, partition_max_bytes=limit)
        assert batches(found.records) == expected


def test_an_answer_gives_up_to_its_limit_but_at_least_one_batch(wire: Wire, name: str) -> None:
    create_topic(wire, name, 3)
    size = len(batch())
    for partition in (1, 2):
        for _ in range(2):
            produce(wire, name, batch(), partition=partition)
    for limit, expected in (
        (1, (0, 1, 0)),
        (2 * size, (0, 2, 0)),
        (3 * size, (0, 2, 1)),
        (99 * size, (0, 2, 2)),
    ):
        found = fetch(wire, name, 0, 0, 0, max_bytes=limit)
        assert tuple(batches(one.records) for one in found) == expected


def timed(wire: Wire, name: str, *offsets: int, **options: Any) -> tuple[float, list[Any]]:
    began = time.monotonic()
    found = fetch(wire, name, *offsets, **options)
    return time.monotonic() - began, found


def test_a_partition_that_is_named_again_is_answered_once(wire: Wire, name: str) -> None:
    create_topic(wire, name, 2)
    produce(wire, name, batch(2))
    fields = fetch_fields(name, 0, 0)
    (topic,) = fields["topics"]
    fields["topics"] = [topic._replace(partitions=[*topic.partitions] * 20_000)]
    fields["topics"] *= 2
    (again,) = wire.call(ApiKey.FETCH, 12, **fields).responses
    assert [one.partition_index for one in again.partitions] == [0, 1]
    assert batches(again.partitions[0].records) == 1


def test_nothing_to_give_is_answered_when_the_wait_is_over(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    took, (found,) = timed(wire, name, 0, max_wait_ms=200)
    assert took >= 0.19
    assert (found.error_code, found.records) == (0, b"")


@pytest.mark.parametrize("options", [{"max_wait_ms": 0}, {"max_wait_ms": 9_000, "min_bytes": 0}])
def test_nothing_to_wait_for_is_answered_at_once(wire: Wire, name: str, options: dict[str, int]) -> None:
    create_topic(wire, name)
    took, _ = timed(wire, name, 0, **options)
    assert took < 5


def test_an_append_ends_the_wait(broker: RunningBroker, wire: Wire, name: str) -> None:
    create_topic(wire, name, 2)

    def append() -> None:
        time.sleep(0.1)
        with Wire(broker.bootstrap) as other:
            produce(other, name, batch(), partition=1)

    thread = threading.Thread(target=append)
    thread.start()
    took, found = timed(wire, name, 0, 0, max_wait_ms=9_000)
    thread.join()
    assert took < 5
    assert [batches(one.records) for one in found] == [0, 1]


def test_the_wait_goes_on_until_there_is_enough(broker: RunningBroker, wire: Wire, name: str) -> None:
    create_topic(wire, name)
    size = len(batch())

    def append() -> None:
        with Wire(broker.bootstrap) as other:
            for _ in range(3):
                time.sleep(0.05)
                produce(other, name, batch())

    thread = threading.Thread(target=append)
    thread.start()
    _, (found,) = timed(wire, name, 0, max_wait_ms=9_000, min_bytes=3 * size)
    thread.join()
    assert batches(found.records) == 3


def test_a_wait_ends_when_the_topic_is_deleted(broker: RunningBroker, wire: Wire, name: str) -> None:
    create_topic(wire, name)
    number = wire.send(ApiKey.FETCH, 12, **fetch_fields(name, 0, max_wait_ms=60_000))
    with Wire(broker.bootstrap) as other:
        other.call(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout_ms=1_000)
    answer = wire.receive(ApiKey.FETCH, 12, number)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("offset", [-1, 4, 99])
def test_an_offset_outside_the_log_is_answered_at_once(wire: Wire, name: str, offset: int) -> None:
    create_topic(wire, name)
    produce(wire, name, batch(3))
    took, (found,) = timed(wire, name, offset, max_wait_ms=9_000)
    assert took < 5
    assert (found.error_code, found.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_the_end_of_the_log_is_no_error(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    produce(wire, name, batch(3))
    (found,) = fetch(wire, name, 3)
    assert (found.error_code, found.records) == (0, b"")


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_without_transactions_both_levels_read_the_same(wire: Wire, name: str, isolation_level: int) -> None:
    create_topic(wire, name)
    produce(wire, name, batch(3))
    (found,) = fetch(wire, name, 0, isolation_level=isolation_level)
    assert batches(found.records) == 1
    assert found.aborted_transactions == ([] if isolation_level else None)


def test_leader_epochs_are_compared(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    produce(wire, name, batch())
    assert fetch(wire, name, 0, epoch=0)[0].error_code == 0
    assert fetch(wire, name, 0, epoch=7)[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_reader_whose_last_epoch_we_know_reads_on(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    produce(wire, name, batch())
    (found,) = fetch(wire, name, 0, last_epoch=0)
    assert batches(found.records) == 1
    assert found.diverging_epoch is None


def test_the_offsets_topic_can_be_read_and_wakes_its_readers(
    broker: RunningBroker, wire: Wire, name: str
) -> None:
    from kohort.offsets_topic import partition_for

    index = partition_for(name, 50)
    wanted = part(
        ApiKey.FETCH,
        12,
        "FetchTopic",
        "FetchPartition",
        partition=index,
        # groups of other tests may be there
        fetch_offset=offset_at(wire, "__consumer_offsets", LATEST, partition=index).offset,
        partition_max_bytes=1 << 20,
    )
    fields = fetch_fields("", max_wait_ms=9_000)
    fields["topics"] = [part(ApiKey.FETCH, 12, "FetchTopic", topic="__consumer_offsets", partitions=[wanted])]
    number = wire.send(ApiKey.FETCH, 12, **fields)
    with Wire(broker.bootstrap) as other:
        create_topic(other, name)
        other.call(ApiKey.OFFSET_COMMIT, 5, **commit_fields(name, name, 5))
    answer = wire.receive(ApiKey.FETCH, 12, number)
    assert name.encode() in answer.responses[0].partitions[0].records


@pytest.fixture
def seen(name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that are read for requests about the topic."""
    found: list[int] = []
    whole = handler._read_partition

    def noted(fetch: Any, place: Any, *args: Any, **options: Any) -> Any:
        if place.topic.topic == name:
            found.append(place.wanted.partition)
        return whole(fetch, place, *args, **options)

    monkeypatch.setattr(handler, "_read_partition", noted)
    return found


def test_where_any_batch_is_enough_it_is_read_once(
    broker: RunningBroker, wire: Wire, name: str, seen: list[int]
) -> None:
    create_topic(wire, name, 2)
    number = wire.send(ApiKey.FETCH, 12, **fetch_fields(name, 0, 0, max_wait_ms=9_000))
    with Wire(broker.bootstrap) as other:
        wait_until(lambda: len(seen) == 2)
        assert produce(other, name, batch(), partition=1).error_code == 0
    rows = wire.receive(ApiKey.FETCH, 12, number).responses[0].partitions
    assert [batches(row.records) for row in rows] == [0, 1]
    assert seen == [0, 1] * 2


def test_of_a_waiting_fetch_only_what_has_grown_is_looked_at_again(
    broker: RunningBroker, wire: Wire, name: str, seen: list[int]
) -> None:
    create_topic(wire, name, 20)
    every = list(range(20))
    records = batch(1)
    wanted = fetch_fields(name, *[0] * 20, max_wait_ms=9_000, min_bytes=4 * len(records))
    number = wire.send(ApiKey.FETCH, 12, **wanted)
    with Wire(broker.bootstrap) as other:
        deadline = time.monotonic() + 10
        while len(seen) < 20:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        for partition in (3, 3, 7, 3):
            assert produce(other, name, records, partition=partition).error_code == 0
    rows = wire.receive(ApiKey.FETCH, 12, number).responses[0].partitions
    assert [len(row.records or b"") // len(records) for row in rows if row.records] == [3, 1]
    assert seen == [*every, 3, 3, 7, 3, *every]


def test_a_waiting_fetch_comes_back_when_its_topic_is_deleted(
    broker: RunningBroker, wire: Wire, name: str
) -> None:
    create_topic(wire, name, 2)
    number = wire.send(ApiKey.FETCH, 12, **fetch_fields(name, 0, 0, max_wait_ms=9_000, min_bytes=1_000))
    begun = time.monotonic()
    with Wire(broker.bootstrap) as other:
        assert fetch(other, name, 0)[0].error_code == 0
        other.call(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout_ms=1_000)
    rows = wire.receive(ApiKey.FETCH, 12, number).responses[0].partitions
    assert {row.error_code for row in rows} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert time.monotonic() - begun < 8
