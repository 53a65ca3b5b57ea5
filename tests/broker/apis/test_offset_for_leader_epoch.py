"""OffsetForLeaderEpoch, on a log that two reigns have written."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, part, produce

NOTHING = (-1, -1)


def end_of(
    wire: Wire, topic: str, epoch: int, *, current: int = -1, partition: int = 0, version: int = 4
) -> tuple[int, int, int]:
    """Error, epoch and end offset."""
    wanted = part(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        version,
        "OffsetForLeaderTopic",
        "OffsetForLeaderPartition",
        partition=partition,
        current_leader_epoch=current,
        leader_epoch=epoch,
    )
    asked = part(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, version, "OffsetForLeaderTopic", topic=topic, partitions=[wanted]
    )
    answer = wire.call(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, replica_id=-1, topics=[asked])
    (found,) = answer.topics[0].partitions
    return found.error_code, found.leader_epoch, found.end_offset


def test_where_epochs_end_over_a_restart(tmp_path: Path) -> None:
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        produce(wire, "orders", batch(2))
        assert end_of(wire, "orders", 0) == (0, 0, 2)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert end_of(wire, "orders", 1) == (0, 1, 2)
        produce(wire, "orders", batch(3))
        assert end_of(wire, "orders", 0) == (0, 0, 2)
        assert end_of(wire, "orders", 1, current=1) == (0, 1, 5)
        assert end_of(wire, "orders", 7) == (0, *NOTHING)
        assert end_of(wire, "orders", 0, current=0) == (ErrorCode.FENCED_LEADER_EPOCH, *NOTHING)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version(wire: Wire, name: str, version: int) -> None:
    create_topic(wire, name)
    assert end_of(wire, name, 0, version=version) == (0, 0, 0)


def test_what_is_not_there(wire: Wire, name: str) -> None:
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, *NOTHING)
    assert end_of(wire, name, 0) == unknown
    create_topic(wire, name)
    assert end_of(wire, name, 0, partition=3) == unknown
    assert end_of(wire, name, 0, current=5) == (ErrorCode.UNKNOWN_LEADER_EPOCH, *NOTHING)
