"""A partition whose files are damaged: it alone is not served, and nothing of it is touched."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kohort.protocol import ApiKey, ErrorCode
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, fetch, produce


def damaged(data: Path, name: str) -> Path:
    """Two batches in each of two partitions, then a byte of the first one of partition 1 is flipped."""
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, name, partitions=2)
        for partition in (0, 1):
            for _ in range(2):
                assert produce(wire, name, batch(3), partition=partition).error_code == 0
    log = data / f"{name}-1" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[70] ^= 0x01
    log.write_bytes(content)
    (data / ".kafka_cleanshutdown").unlink()
    for checkpoint in data.glob("recovery-point-*"):
        checkpoint.unlink()
    return log


def test_the_other_partitions_are_served_and_the_damaged_one_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = damaged(tmp_path, "orders")
    content = log.read_bytes()
    with (
        caplog.at_level(logging.ERROR, "kohort.broker"),
        running_broker(data=tmp_path) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        assert produce(wire, "orders", batch(1), partition=0).base_offset == 6
        assert produce(wire, "orders", batch(1), partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert [row.error_code for row in fetch(wire, "orders", 0, 0)] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
        topics = wire.call(ApiKey.METADATA, 8, topics=None).topics
        (orders,) = [topic for topic in topics if topic.name == "orders"]
        shown = {row.partition_index: (row.error_code, row.leader_id) for row in orders.partitions}
        assert shown == {0: (0, 1), 1: (ErrorCode.LEADER_NOT_AVAILABLE, -1)}
    assert log.read_bytes() == content
    (line,) = [record.getMessage() for record in caplog.records]
    assert "orders-1 is not served" in line
    assert "restore the file from a copy" in line


def test_it_is_found_again_at_the_next_start_though_the_stop_was_clean(tmp_path: Path) -> None:
    damaged(tmp_path, "orders")
    for _ in range(2):
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            assert produce(wire, "orders", batch(1), partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_deleting_the_topic_clears_it_away(tmp_path: Path) -> None:
    log = damaged(tmp_path, "orders")
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        wire.call(ApiKey.DELETE_TOPICS, 5, topic_names=["orders"], timeout_ms=5_000)
        assert not log.exists()
        create_topic(wire, "orders", partitions=2)
        assert produce(wire, "orders", batch(1), partition=1).base_offset == 0


def test_a_file_that_changes_while_it_is_served_is_told_and_nobody_else_suffers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.ERROR, "kohort.broker"),
        running_broker(data=tmp_path) as broker,
        Wire(broker.bootstrap) as wire,
    ):
        create_topic(wire, "orders", partitions=2)
        for partition in (0, 1):
            assert produce(wire, "orders", batch(3), partition=partition).error_code == 0
        file = tmp_path / "orders-1" / "00000000000000000000.log"
        file.write_bytes(b"\x07" * file.stat().st_size)
        answers = fetch(wire, "orders", 0, 0)
        assert [row.error_code for row in answers] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    assert {record.getMessage().partition(":")[0] for record in caplog.records} == {"orders-1 cannot be read"}
