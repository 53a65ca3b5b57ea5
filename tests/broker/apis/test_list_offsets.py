"""ListOffsets: the ends, times, the special places and their versions."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, batch, create_topic, offset_at, part, produce

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
TIMES = (1_700_000_000_000, 1_700_000_005_000, 1_700_000_002_000)


@pytest.fixture
def filled(wire: Wire, name: str) -> str:
    """A topic with two records at each of TIMES."""
    create_topic(wire, name)
    for time in TIMES:
        produce(wire, name, batch(2, timestamp_ms=time))
    return name


@pytest.mark.parametrize("version", range(1, 12))
def test_both_ends(wire: Wire, filled: str, version: int) -> None:
    for timestamp, offset in ((LATEST, 6), (EARLIEST, 0)):
        found = offset_at(wire, filled, timestamp, version=version)
        assert (found.error_code, found.offset, found.timestamp) == (0, offset, -1)
        if version >= 4:
            assert found.leader_epoch == 0


@pytest.mark.parametrize(
    ("timestamp", "offset", "time"),
    [(0, 0, TIMES[0]), (TIMES[0], 0, TIMES[0]), (TIMES[0] + 1, 2, TIMES[1]), (TIMES[1] + 1, -1, -1)],
)
def test_the_first_record_that_is_not_older(
    wire: Wire, filled: str, timestamp: int, offset: int, time: int
) -> None:
    found = offset_at(wire, filled, timestamp)
    assert (found.error_code, found.offset, found.timestamp) == (0, offset, time)


def test_the_newest_record(wire: Wire, filled: str) -> None:
    found = offset_at(wire, filled, MAX_TIMESTAMP)
    assert (found.offset, found.timestamp) == (2, TIMES[1])


def test_there_is_no_newest_record_in_an_empty_log(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    found = offset_at(wire, name, MAX_TIMESTAMP)
    assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "since", "offset"),
    [(MAX_TIMESTAMP, 7, 2), (EARLIEST_LOCAL, 8, 0), (LATEST_TIERED, 9, -1), (EARLIEST_PENDING, 11, -1)],
)
@pytest.mark.parametrize("version", range(1, 12))
def test_special_places_by_version(
    wire: Wire, filled: str, timestamp: int, since: int, offset: int, version: int
) -> None:
    found = offset_at(wire, filled, timestamp, version=version)
    expected = (0, offset) if version >= since else (ErrorCode.UNSUPPORTED_VERSION, -1)
    assert (found.error_code, found.offset) == expected


def test_other_negative_times_are_unknown(wire: Wire, filled: str) -> None:
    assert offset_at(wire, filled, -7, version=11).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_leader_epochs_are_compared(wire: Wire, filled: str) -> None:
    assert offset_at(wire, filled, LATEST, epoch=0).error_code == 0
    assert offset_at(wire, filled, LATEST, epoch=3).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_unknown_partitions(wire: Wire, filled: str) -> None:
    found = offset_at(wire, filled, LATEST, partition=1)
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_asked_for_twice_is_refused(wire: Wire, filled: str) -> None:
    asked = part(
        ApiKey.LIST_OFFSETS,
        5,
        "ListOffsetsTopic",
        name=filled,
        partitions=[
            part(
                ApiKey.LIST_OFFSETS,
                5,
                "ListOffsetsTopic",
                "ListOffsetsPartition",
                partition_index=0,
                timestamp=timestamp,
            )
            for timestamp in (LATEST, EARLIEST)
        ],
    )
    answer = wire.call(ApiKey.LIST_OFFSETS, 5, replica_id=-1, isolation_level=0, topics=[asked])
    assert [one.error_code for one in answer.topics[0].partitions] == [ErrorCode.INVALID_REQUEST]


def test_a_topic_named_twice_is_answered_once_and_looked_for_nowhere(wire: Wire, filled: str) -> None:
    def asked(*partitions: int) -> Any:
        rows = [
            part(
                ApiKey.LIST_OFFSETS,
                5,
                "ListOffsetsTopic",
                "ListOffsetsPartition",
                partition_index=index,
                timestamp=TIMES[0],
            )
            for index in partitions
        ]
        return part(ApiKey.LIST_OFFSETS, 5, "ListOffsetsTopic", name=filled, partitions=rows)

    body = wire.call(
        ApiKey.LIST_OFFSETS, 5, replica_id=-1, isolation_level=0, topics=[asked(0), asked(0, 7), asked(0)]
    )
    rows = [(row.partition_index, row.error_code) for topic in body.topics for row in topic.partitions]
    assert rows == [(0, ErrorCode.INVALID_REQUEST), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
