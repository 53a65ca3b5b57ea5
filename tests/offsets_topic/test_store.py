"""The store of the offsets topic: batches in, batches out, nothing skipped."""

from __future__ import annotations

import json
import os
import tarfile
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import DataFolder, LogConfig, PartitionLog
from kohort.offsets_topic import (
    GroupStored,
    OffsetCommitted,
    OffsetsStore,
    StoredBatch,
    UnknownRecord,
    decode,
)
from kohort.protocol import CorruptBatchError, ErrorCode, KafkaError, build_batch

NOW_MS = 1_800_000_000_000
DATA = Path(__file__).resolve().parent.parent / "data" / "kafka-data-folder"
TOPIC_ID = uuid.UUID(int=5)


def open_log(
    folder: Path, partition: int = 0, *, clean: bool = True, segment_bytes: int = 1 << 20
) -> PartitionLog:
    config = LogConfig(cleanup_policy="compact", segment_bytes=segment_bytes)
    path = folder / f"__consumer_offsets-{partition}"
    return PartitionLog.open(path, config, now_ms=NOW_MS, clean=clean, topic_id=TOPIC_ID)


def open_store(folder: Path, *partitions: int) -> tuple[OffsetsStore, dict[int, PartitionLog]]:
    logs = {partition: open_log(folder, partition) for partition in partitions}
    return OffsetsStore(logs), logs


def test_an_append_is_one_batch_of_its_records(tmp_path: Path) -> None:
    store, logs = open_store(tmp_path, 0, 1)
    assert store.partition_count == 2
    assert store.append(1, [(b"k0", b"v0"), (b"k1", None)], NOW_MS) == 0
    assert store.append(1, [(b"k2", b"")], NOW_MS + 5) == 2
    assert list(store.load(1)) == [
        StoredBatch(0, [(0, NOW_MS, b"k0", b"v0"), (1, NOW_MS, b"k1", None)], -1, False, False),
        StoredBatch(2, [(2, NOW_MS + 5, b"k2", b"")], -1, False, False),
    ]
    assert list(store.load(0)) == []
    store.flush(1)
    assert logs[1].recovery_point == 3


def test_a_batch_unpacks_in_the_order_of_its_fields(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path, 0)
    store.append(0, [(b"k", b"v")], NOW_MS)
    for base_offset, records, producer_id, transactional, control in store.load(0):
        assert (base_offset, records, producer_id, transactional, control) == (
            0,
            [(0, NOW_MS, b"k", b"v")],
            -1,
            False,
            False,
        )


def test_transactions_and_their_markers_are_told(tmp_path: Path) -> None:
    store, logs = open_store(tmp_path, 0)
    producer: dict[str, Any] = {"producer_id": 9, "producer_epoch": 2, "transactional": True}
    assert store.append(0, [(b"k", b"v")], NOW_MS, **producer) == 0
    assert store.append(0, [(b"k", b"w")], NOW_MS, **producer) == 1
    key, value = b"\x00\x00\x00\x01", bytes(6)
    marker = build_batch(
        [(key, value, ())],
        timestamp_ms=NOW_MS,
        producer_id=9,
        producer_epoch=2,
        transactional=True,
        control=True,
    )
    logs[0].append(bytes(marker), now_ms=NOW_MS, from_client=False)
    first, second, end = store.load(0)
    assert (first.producer_id, first.transactional, first.control) == (9, True, False)
    assert second.base_offset == 1
    assert end == StoredBatch(2, [(2, NOW_MS, key, value)], 9, True, True)
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        store.append(0, [(b"k", b"v")], NOW_MS, producer_id=9, producer_epoch=1, transactional=True)


def test_a_load_goes_on_beyond_the_high_watermark(tmp_path: Path) -> None:
    store, logs = open_store(tmp_path, 0)
    store.append(0, [(b"k", b"v")], NOW_MS)
    logs[0].high_watermark = 0
    assert [batch.base_offset for batch in store.load(0)] == [0]


def test_a_load_begins_at_the_log_start(tmp_path: Path) -> None:
    store, logs = open_store(tmp_path, 0)
    for _ in range(3):
        store.append(0, [(b"k", b"v")], NOW_MS)
    logs[0].delete_records(2)
    assert [batch.base_offset for batch in store.load(0)] == [2]


def test_a_partition_that_is_not_open_is_an_error_not_an_empty_load(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path, 0)
    for call in (lambda: list(store.load(7)), lambda: store.append(7, [(b"k", b"v")], NOW_MS)):
        with pytest.raises(KafkaError) as caught:
            call()
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_may_be_opened_later(tmp_path: Path) -> None:
    logs: dict[int, PartitionLog] = {}
    store = OffsetsStore(logs, 50)
    assert store.partition_count == 50
    logs[3] = open_log(tmp_path, 3)
    assert store.append(3, [(b"k", b"v")], NOW_MS) == 0


def test_a_record_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    store = OffsetsStore({0: open_log(tmp_path, segment_bytes=500)})
    with pytest.raises(KafkaError, match="RECORD_LIST_TOO_LARGE"):
        store.append(0, [(b"k", bytes(600))], NOW_MS)
    assert list(store.load(0)) == []


@pytest.mark.parametrize("position", [3, 25, 61, 70])
def test_a_corrupt_batch_is_an_error_with_file_and_position(tmp_path: Path, position: int) -> None:
    store, logs = open_store(tmp_path, 0)
    for _ in range(3):
        store.append(0, [(b"key", b"value")], NOW_MS)
    size = logs[0].size_bytes // 3
    path = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[size + position] ^= 0xFF
    path.write_bytes(data)
    loaded: list[StoredBatch] = []
    with pytest.raises(CorruptBatchError, match=r"0\.log") as caught:
        loaded.extend(store.load(0))
    assert caught.value.position == size


def test_records_that_do_not_fill_their_batch_are_an_error(tmp_path: Path) -> None:
    from kohort.protocol._batch import _write_crc

    store, logs = open_store(tmp_path, 0)
    store.append(0, [(b"key", b"value")], NOW_MS)
    data = bytearray(build_batch([(b"key", b"value", ())], timestamp_ms=NOW_MS))
    data[61] += 2
    _write_crc(data, 0)
    logs[0].append(bytes(data), now_ms=NOW_MS, from_client=False)
    with pytest.raises(CorruptBatchError, match=r"the batch at offset 1: records cannot be read") as caught:
        list(store.load(0))
    assert caught.value.position == logs[0].size_bytes // 2


KEY = st.binary(min_size=0, max_size=300)
VALUE = st.none() | st.binary(max_size=300)


@settings(max_examples=30)
@given(st.lists(st.lists(st.tuples(KEY, VALUE), min_size=1, max_size=80), max_size=6), st.booleans())
def test_what_was_appended_is_loaded_after_a_restart(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[bytes, bytes | None]]], clean: bool
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = open_log(folder, segment_bytes=60_000)
    store = OffsetsStore({0: log})
    bases = [store.append(0, records, NOW_MS) for records in batches]
    if clean:
        log.close()
    loaded = list(OffsetsStore({0: open_log(folder, clean=clean)}).load(0))
    assert [batch.base_offset for batch in loaded] == bases
    assert [[(key, value) for _, _, key, value in batch.records] for batch in loaded] == batches
    offsets = [offset for batch in loaded for offset, _, _, _ in batch.records]
    assert offsets == list(range(len(offsets)))


def test_the_offsets_of_apache_kafka_are_loaded(tmp_path: Path) -> None:
    """The last value of each key is what Kafka answered for these groups, but for the pending transaction."""
    with tarfile.open(DATA / "data.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = DataFolder.open(tmp_path)
    logs = {
        partition: folder.open_log(topic, partition, LogConfig(), now_ms=NOW_MS)
        for topic, partition, _ in folder.partitions()
        if topic == "__consumer_offsets"
    }
    store = OffsetsStore(logs)
    newest: dict[bytes, tuple[int, bytes | None]] = {}
    unknown = control = 0
    for partition in range(store.partition_count):
        for batch in store.load(partition):
            control += batch.control
            for offset, _, key, value in batch.records:
                if batch.control or batch.transactional:
                    continue
                assert key is not None
                newest[key] = (offset, value)
                unknown += isinstance(decode(key, value), UnknownRecord)
    assert (control, unknown > 0) == (2, True)
    records = [decode(key, value) for key, (_, value) in newest.items()]
    expected = json.loads((DATA / "expected.json").read_text())
    names = {record.group for record in records if isinstance(record, GroupStored)}
    assert names >= {"stable-a", "static-a", "connect-a", "empty-a"}
    found = {
        (record.topic, record.partition): record.offset
        for record in records
        if isinstance(record, OffsetCommitted) and record.group == "stable-a"
    }
    offsets = expected["groups"]["stable-a"]["offsets"]
    assert {(topic, partition): offset for topic, partition, offset, *_ in offsets} == found
    folder.close(clean=False)
    assert os.path.exists(tmp_path / "meta.properties")
