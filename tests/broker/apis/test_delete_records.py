"""DeleteRecords: the start moves, and stays there over a crash."""

from __future__ import annotations

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, batch, create_topic, fetch, offset_at, part, produce

EARLIEST = -2


def ask(wire: Wire, topic: str, offset: int, *, partition: int = 0, version: int = 2) -> tuple[int, int]:
    """Error and low watermark."""
    wanted = part(
        ApiKey.DELETE_RECORDS,
        version,
        "DeleteRecordsTopic",
        "DeleteRecordsPartition",
        partition_index=partition,
        offset=offset,
    )
    asked = part(ApiKey.DELETE_RECORDS, version, "DeleteRecordsTopic", name=topic, partitions=[wanted])
    answer = wire.call(ApiKey.DELETE_RECORDS, version, topics=[asked], timeout_ms=1_000)
    (found,) = answer.topics[0].partitions
    return found.error_code, found.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_records_below_an_offset(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name)
    for _ in range(3):
        produce(wire, name, batch(2))
    assert ask(wire, name, 3, version=version) == (0, 3)
    assert offset_at(wire, name, EARLIEST).offset == 3
    assert fetch(wire, name, 2)[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch(wire, name, 3)[0].log_start_offset == 3


def test_minus_one_is_everything(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    assert ask(wire, name, -1) == (0, 0)
    produce(wire, name, batch(4))
    assert ask(wire, name, -1) == (0, 4)
    assert fetch(wire, name, 4)[0].records == b""


def test_an_offset_below_the_start_changes_nothing(wire: Wire, name: str) -> None:
    create_topic(wire, name)
    produce(wire, name, batch(4))
    ask(wire, name, 3)
    assert ask(wire, name, 1) == (0, 3)


@pytest.mark.parametrize("offset", [-2, 5, 2**62])
def test_offsets_out_of_range(wire: Wire, name: str, offset: int) -> None:
    create_topic(wire, name)
    assert ask(wire, name, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    produce(wire, name, batch(4))
    assert ask(wire, name, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_what_is_refused(wire: Wire, name: str) -> None:
    assert ask(wire, name, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert ask(wire, "__consumer_offsets", 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    create_topic(wire, name, cleanup_policy="compact")
    assert ask(wire, name, 0) == (ErrorCode.POLICY_VIOLATION, -1)
    assert ask(wire, name, 0, partition=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
