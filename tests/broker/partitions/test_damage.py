"""Damaged files: a batch that cannot be read is answered as such and all else is served; a partition that
cannot be opened is not served, alone, and nothing of it is touched.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kohort.protocol import ApiKey, ErrorCode, iter_batches
from kohort.testing import running_broker
from tests.broker.wire import Wire, batch, create_topic, fetch, offset_at, produce

FIRST = "00000000000000000000.log"


def written(data: Path, name: str, batches: int = 2, **configs: str) -> Path:
    """So many batches of three records in each of two partitions; the folder of the second."""
    with running_broker(data=data) as broker, Wire(broker.bootstrap) as wire:
        create_topic(wire, name, partitions=2, **configs)
        for partition in (0, 1):
            for _ in range(batches):
                assert produce(wire, name, batch(3), partition=partition).error_code == 0
    return data / f"{name}-1"


def killed(data: Path) -> None:
    """As after a stop that was not clean: all that was written is below the recovery points."""
    (data / ".kafka_cleanshutdown").unlink(missing_ok=True)


def flip(path: Path, at: int) -> bytes:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x01
    path.write_bytes(content)
    return bytes(content)


def unusable(data: Path, name: str) -> Path:
    """Partition 1 does not say which topic's it is."""
    log = written(data, name) / FIRST
    (log.parent / "partition.metadata").write_text("version: 0\ntopic_id: nonsense\n")
    return log


def read(wire: Wire, name: str, offset: int) -> tuple[int, list[int]]:
    """Error and base offsets of the batches that a Fetch from partition 1 gives."""
    row = fetch(wire, name, offset, offset)[1]
    return row.error_code, [header.base_offset for _, header in iter_batches(bytes(row.records or b""))]


@pytest.mark.parametrize("at", [70, 8, 16, 23])
@pytest.mark.parametrize("is_killed", [True, False])
def test_what_is_before_and_behind_a_damaged_batch_is_served_and_appends_go_on(
    tmp_path: Path, at: int, is_killed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    folder = written(tmp_path, "orders", batches=5)
    size = (folder / FIRST).stat().st_size // 5
    content = flip(folder / FIRST, 2 * size + at)
    if is_killed:
        killed(tmp_path)
    elif at in (70, 23):
        return  # after a clean stop nothing is read: the client meets a wrong checksum
    for start in range(2):
        with (
            caplog.at_level(logging.ERROR, "kohort.broker"),
            running_broker(data=tmp_path) as broker,
            Wire(broker.bootstrap) as wire,
        ):
            assert produce(wire, "orders", batch(1), partition=1).base_offset == 15 + start
            assert read(wire, "orders", 0) == (0, [0, 3])
            for offset in (6, 8):
                assert read(wire, "orders", offset) == (ErrorCode.CORRUPT_MESSAGE, [])
            assert read(wire, "orders", 9) == (0, [9, 12, *range(15, 16 + start)])
            assert offset_at(wire, "orders", -2).offset == 0
    assert (folder / FIRST).read_bytes().startswith(content)
    assert any("orders-1" in record.getMessage() for record in caplog.records)


def test_damage_at_the_end_of_an_older_segment_ends_there(tmp_path: Path) -> None:
    folder = written(tmp_path, "orders", batches=4, segment_bytes="1048576", segment_ms="9999999999")
    size = (folder / FIRST).stat().st_size // 4
    flip(folder / FIRST, 3 * size + 70)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert produce(wire, "orders", batch(1), partition=1).base_offset == 12
    killed(tmp_path)
    with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
        assert read(wire, "orders", 0) == (0, [0, 3, 6])
        assert read(wire, "orders", 10) == (ErrorCode.CORRUPT_MESSAGE, [])
        assert read(wire, "orders", 12) == (0, [12])


def test_flushed_records_that_are_gone_are_an_error_with_their_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = written(tmp_path, "orders")
    content = (folder / FIRST).read_bytes()
    (folder / FIRST).write_bytes(content[: len(content) // 2 + 7])
    killed(tmp_path)
    with caplog.at_level(logging.ERROR, "kohort.broker"), running_broker(data=tmp_path):
        pass
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("orders-1 ends at offset 3: 3 offsets behind it were on the disk and are gone")


def test_the_other_partitions_are_served_and_the_one_that_cannot_be_opened_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = unusable(tmp_path, "orders")
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
    assert "partition.metadata" in line


def test_it_is_found_again_at_the_next_start_though_the_stop_was_clean(tmp_path: Path) -> None:
    unusable(tmp_path, "orders")
    for _ in range(2):
        with running_broker(data=tmp_path) as broker, Wire(broker.bootstrap) as wire:
            assert produce(wire, "orders", batch(1), partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_deleting_the_topic_clears_it_away(tmp_path: Path) -> None:
    log = unusable(tmp_path, "orders")
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
        assert [row.error_code for row in answers] == [0, ErrorCode.CORRUPT_MESSAGE]
        assert produce(wire, "orders", batch(1), partition=1).base_offset == 3
    assert {record.getMessage().partition(":")[0] for record in caplog.records} == {"orders-1 cannot be read"}
