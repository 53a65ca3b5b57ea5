"""The store of the offsets topic: batches in, batches out, what is damaged told in its place."""

from __future__ import annotations

import json
import os
import tarfile
import uuid
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import CorruptLogError, DataFolder, LogConfig, PartitionLog
from kohort.offsets_topic import (
    ConsumerGroupRecord,
    GroupStored,
    OffsetCommitted,
    OffsetsStore,
    StoredBatch,
    decode,
)
from kohort.protocol import BatchHeader, ErrorCode, KafkaError, build_batch

NOW_MS = 1_800_000_000_000
DATA = Path(__file__).resolve().parent.parent / "data" / "kafka-data-folder"
TOPIC_ID = uuid.UUID(int=5)


def header(batch: StoredBatch) -> BatchHeader:
    assert batch.header is not None, batch.damage
    return batch.header


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
    first, second = store.load(1)
    head = header(first)
    assert (first.base_offset, head.producer_id, head.transactional, head.control) == (0, -1, False, False)
    assert (head.base_sequence, head.producer_epoch) == (-1, -1)
    assert first.records == [(0, NOW_MS, b"k0", b"v0"), (1, NOW_MS, b"k1", None)]
    assert (second.base_offset, header(second).record_count) == (2, 1)
    assert second.records == [(2, NOW_MS + 5, b"k2", b"")]
    assert list(store.load(0)) == []
    store.flush(1)
    assert logs[1].recovery_point == 3


def test_transactions_and_their_markers_are_told(tmp_path: Path) -> None:
    store, logs = open_store(tmp_path, 0)
    producer: dict[str, Any] = {"producer_id": 9, "producer_epoch": 2}
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
    assert (header(first).producer_id, header(first).transactional, header(first).control) == (9, True, False)
    assert first.header is not None
    assert (first.header.base_sequence, first.header.producer_epoch) == (0, 2)
    assert second.base_offset == 1
    assert (end.records, header(end).producer_id) == ([(2, NOW_MS, key, value)], 9)
    assert (header(end).transactional, header(end).control) == (True, True)
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        store.append(0, [(b"k", b"v")], NOW_MS, producer_id=9, producer_epoch=1)


@pytest.mark.row("5.7/order")
def test_a_load_goes_on_beyond_the_high_watermark(tmp_path: Path) -> None:
    store, logs = open_store(tmp_path, 0)
    store.append(0, [(b"k", b"v")], NOW_MS)
    assert logs[0].high_watermark == 0
    assert [batch.base_offset for batch in store.load(0)] == [0]


def test_a_load_begins_at_the_log_start(tmp_path: Path) -> None:
    store, logs = open_store(tmp_path, 0)
    for _ in range(3):
        store.append(0, [(b"k", b"v")], NOW_MS)
    logs[0].advance_high_watermark(2)
    logs[0].advance_high_watermark(3)
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
    store = OffsetsStore(logs, lambda: 50)
    assert store.partition_count == 50
    logs[3] = open_log(tmp_path, 3)
    assert store.append(3, [(b"k", b"v")], NOW_MS) == 0


def test_a_record_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    store = OffsetsStore({0: open_log(tmp_path, segment_bytes=500)})
    with pytest.raises(KafkaError, match="RECORD_LIST_TOO_LARGE"):
        store.append(0, [(b"k", bytes(600))], NOW_MS)
    assert list(store.load(0)) == []


@pytest.mark.row("5.7/bad-batch")
@pytest.mark.parametrize("position", [3, 9, 16, 25, 61, 70])
def test_a_damaged_batch_is_told_with_file_and_position_and_the_rest_is_loaded(
    tmp_path: Path, position: int
) -> None:
    store, logs = open_store(tmp_path, 0)
    for number in range(4):
        store.append(0, [(b"key", b"value %d" % number)], NOW_MS)
    size = logs[0].size_bytes // 4
    path = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    flip(path, size + position)
    loaded = list(store.load(0))
    assert [batch.records for batch in loaded if not batch.damage] == [
        [(offset, NOW_MS, b"key", b"value %d" % offset)] for offset in (0, 2, 3)
    ]
    (damaged,) = [batch for batch in loaded if batch.damage]
    assert damaged.damage.startswith(f"{path}, position {size}: ")
    assert (damaged.records, damaged.header, list(damaged.load_commits({}, {}))) == ([], None, [])
    assert [(batch.base_offset, batch.file, batch.position) for batch in loaded] == [
        (number, str(path), number * size) for number in range(4)
    ]


@pytest.mark.row("5.7/bad-batch")
def test_of_a_segment_whose_rest_is_no_batch_the_next_segment_is_loaded(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    store = OffsetsStore({0: log})
    for number in range(6):
        store.append(0, [(b"key", b"value %d" % number)], NOW_MS)
    first, *others = sorted((tmp_path / "__consumer_offsets-0").glob("*.log"))
    assert others
    first.write_bytes(b"\xff" * first.stat().st_size)
    loaded = list(store.load(0))
    assert loaded[0].damage
    assert [row[0] for batch in loaded for row in batch.records] == list(range(int(others[0].stem), 6))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def test_the_log_is_told_the_time() -> None:
    class Told:
        def append_built(self, _batch: bytearray, **how: Any) -> int:
            told.append(how)
            return 7

    told: list[dict[str, Any]] = []
    store = OffsetsStore({0: cast("Any", Told())})
    assert store.append(0, [(b"k", b"v")], NOW_MS) == 7
    assert told == [{"now_ms": NOW_MS}]
    assert repr(store) == "OffsetsStore(1 of 1 partitions open)"


@pytest.mark.row("4/offsets.load.buffer.size")
def test_a_load_reads_as_much_at_a_time_as_it_is_told_and_more_for_a_larger_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    sizes: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(log, name)

        def read(self, offset: int, max_bytes: int, *, to_log_end: bool) -> Any:
            run = log.read(offset, max_bytes, to_log_end=to_log_end)
            sizes.append(len(run.records))
            return run

    store = OffsetsStore({0: Counting()}, load_bytes=1_000)
    for size in (100, 5_000, 100, 100):
        store.append(0, [(b"k", bytes(size))], NOW_MS)
    assert len(list(store.load(0))) == 4
    assert [size > 1_000 for size in sizes] == [False, True, False, False]
    assert sizes[-1] == 0, "the end"


def test_records_that_do_not_fill_their_batch_are_told(tmp_path: Path) -> None:
    from kohort.protocol._batch import _write_crc

    store, logs = open_store(tmp_path, 0)
    store.append(0, [(b"key", b"value")], NOW_MS)
    data = bytearray(build_batch([(b"key", b"value", ())], timestamp_ms=NOW_MS))
    data[61] += 2
    _write_crc(data, 0)
    logs[0].append(bytes(data), now_ms=NOW_MS, from_client=False)
    whole, damaged = store.load(0)
    assert (whole.base_offset, damaged.base_offset) == (0, 1)
    for read in (lambda: damaged.records, lambda: list(damaged.load_commits({}, {}))):
        with pytest.raises(CorruptLogError, match=r"0\.log: record.* cannot be read") as caught:
            read()
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
        for topic, partition in folder.partitions()
        if topic == "__consumer_offsets"
    }
    store = OffsetsStore(logs)
    newest: dict[bytes, tuple[int, bytes | None]] = {}
    parts = control = 0
    for partition in range(store.partition_count):
        for batch in store.load(partition):
            control += header(batch).control
            for offset, _, key, value in batch.records:
                if header(batch).control or header(batch).transactional:
                    continue
                assert key is not None
                newest[key] = (offset, value)
                parts += isinstance(decode(key, value), ConsumerGroupRecord)
    assert (control, parts > 0) == (2, True)
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


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_ends_the_transaction_of_its_producer_in_the_log(tmp_path: Path, committed: bool) -> None:
    store, logs = open_store(tmp_path, 0)
    store.append(0, [(b"k", b"v")], NOW_MS, producer_id=7, producer_epoch=2)
    logs[0].advance_high_watermark(1)
    assert logs[0].last_stable_offset == 0
    assert store.append(0, [], NOW_MS, producer_id=7, producer_epoch=2, marker=(committed, 5)) == 1
    logs[0].advance_high_watermark(2)
    assert logs[0].last_stable_offset == 2
    marker = list(store.load(0))[-1]
    assert (header(marker).control, header(marker).transactional, header(marker).producer_id) == (
        True,
        True,
        7,
    )
    assert [row[2:] for row in marker.records] == [(bytes([0, 0, 0, committed]), b"\0\0\0\0\0\5")]
