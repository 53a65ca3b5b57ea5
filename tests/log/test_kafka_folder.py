"""A data folder that Apache Kafka 4.3.1 wrote: read exactly, and written the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kohort.log import DataFolder, LogConfig, PartitionLog, RecoveryReport, at_once
from kohort.protocol import TopicPartition, iter_batches, parse_batch_header, verify_batch
from tests.log.batches import NOW_MS, all_records, batch, committed, offsets_of
from tests.log.conftest import DATA

EXPECTED: dict[str, Any] = json.loads((DATA / "expected.json").read_text())


def open_all(folder: DataFolder) -> dict[TopicPartition, PartitionLog]:
    return {
        TopicPartition(topic, partition): committed(
            folder.open_log(topic, partition, LogConfig(), now_ms=NOW_MS)
        )
        for topic, partition in folder.partitions()
    }


def close_all(folder: DataFolder, logs: dict[TopicPartition, PartitionLog]) -> None:
    for log in logs.values():
        log.close()
    folder.write_checkpoints(logs.values())
    folder.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in folder.glob("*/*")
        if not path.name.endswith(".deleted")
    }


@pytest.mark.parametrize("clean", [True, False])
def test_log_starts_and_high_watermarks_are_those_that_kafka_answered(
    kafka_folder: Path, clean: bool
) -> None:
    if clean:
        (kafka_folder / ".kafka_cleanshutdown").touch()
    folder = DataFolder.open(kafka_folder)
    assert folder.clean_start is clean
    logs = open_all(folder)
    found = {
        topic: {
            str(n): [log.log_start_offset, log.high_watermark] for (t, n), log in logs.items() if t == topic
        }
        for topic in EXPECTED["records"]
    }
    assert found == EXPECTED["records"]
    assert len(logs) == 21
    close_all(folder, logs)


def test_every_batch_is_read_back_as_it_lies_in_the_files(kafka_folder: Path) -> None:
    folder = DataFolder.open(kafka_folder)
    for log in open_all(folder).values():
        files = sorted(Path(log.path).glob("*.log"))
        records = all_records(log)
        assert records == b"".join(path.read_bytes() for path in files)
        for position, header in iter_batches(records):
            verify_batch(records, header, position)
    folder.close(clean=False)


def test_what_an_unclean_start_makes_anew_is_what_kafka_had_written(kafka_folder: Path) -> None:
    """Indexes, time indexes and transaction indexes, and at the close the producer snapshots."""
    before = contents(kafka_folder)
    folder = DataFolder.open(kafka_folder)
    logs = open_all(folder)
    assert all(log.recovery.verified_bytes == log.size_bytes for log in logs.values())
    assert not any(log.recovery.cuts for log in logs.values())
    close_all(folder, logs)
    assert contents(kafka_folder) == before


def test_a_clean_start_mends_nothing(kafka_folder: Path) -> None:
    folder = DataFolder.open(kafka_folder)
    close_all(folder, open_all(folder))
    folder = DataFolder.open(kafka_folder)
    assert folder.clean_start
    logs = open_all(folder)
    assert {tp: log.recovery for tp, log in logs.items()} == dict.fromkeys(logs, RecoveryReport())
    folder.close(clean=False)


def test_segments_that_waited_for_removal_are_gone(kafka_folder: Path) -> None:
    folder = DataFolder.open(kafka_folder)
    log = open_all(folder)[TopicPartition("__consumer_offsets", 1)]
    assert not list(kafka_folder.glob("*/*.deleted"))
    assert sorted(Path(name).name for name in log.recovery.removed_files) == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
    ]
    folder.close(clean=False)


def test_reads_of_compacted_offsets_go_on_at_the_next_batch_that_is_left(kafka_folder: Path) -> None:
    folder = DataFolder.open(kafka_folder)
    log = open_all(folder)[TopicPartition("__consumer_offsets", 1)]
    kept = offsets_of(log.read(0, 1 << 20).records)
    assert len(kept) == 2
    assert offsets_of(log.read(kept[0][1] + 1, 1).records) == [kept[1]]
    assert offsets_of(log.read(1506, 1).records) == [(1506, 1513)]
    folder.close(clean=False)


def test_the_aborted_transaction_is_told_to_readers_of_committed_records(kafka_folder: Path) -> None:
    folder = DataFolder.open(kafka_folder)
    log = open_all(folder)[TopicPartition("clicks-a", 2)]
    assert log.last_stable_offset == 54
    assert log.read(0, 1 << 20, committed=True).aborted == [(1, 52)]
    assert log.read(53, 1 << 20, committed=True).aborted == [(1, 52)]
    assert log.read(0, 1 << 20).aborted == []
    # the first batch ends before the transaction began
    assert log.read(0, 1, committed=True).aborted == []
    folder.close(clean=False)


def test_times_and_epochs_are_found(kafka_folder: Path) -> None:
    folder = DataFolder.open(kafka_folder)
    log = open_all(folder)[TopicPartition("clicks-a", 2)]
    assert at_once(log.find_newest()) == (53, 0x01A1FA6C9E28)
    assert at_once(log.find_timestamp(0x01A1FA6C78FE)) == (0, 0x01A1FA6C78FE, 0)
    committed = parse_batch_header(log.read(50, 1).records)
    assert at_once(log.find_timestamp(0x01A1FA6C78FE + 2)) == (50, committed.base_timestamp_ms, 0)
    assert at_once(log.find_timestamp(0x01A1FA6C9E29)) is None
    assert log.end_offset_for_epoch(0) == (0, 54)
    assert str(log.topic_id) == "c2c8fbc4-1d72-4072-8545-f5459c82300c"
    folder.close(clean=False)


def test_the_log_goes_on_where_kafka_stopped(kafka_folder: Path) -> None:
    folder = DataFolder.open(kafka_folder)
    logs = open_all(folder)
    log = logs[TopicPartition("orders-a", 3)]
    assert log.append(batch(2), now_ms=NOW_MS).base_offset == 50
    close_all(folder, logs)
    folder = DataFolder.open(kafka_folder)
    log = open_all(folder)[TopicPartition("orders-a", 3)]
    assert log.log_end_offset == 52
    assert offsets_of(log.read(50, 1).records) == [(50, 51)]
    folder.close(clean=False)
