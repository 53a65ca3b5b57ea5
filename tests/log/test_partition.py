"""Appending to a partition and reading it back.

Covers: log/_segment.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log import AppendInfo, CorruptLogError, DataFolderError, LogConfig, PartitionLog
from kohort.log._segment import Segment
from kohort.protocol import (
    ErrorCode,
    KafkaError,
    build_batch,
    iter_batches,
    parse_batch_header,
    verify_batch,
)
from tests.log.batches import (
    NOW_MS,
    TOPIC_ID,
    all_records,
    batch,
    filled,
    marker,
    offsets_of,
    open_log,
    segment_names,
)


def refusal(log: PartitionLog, records: bytes, *, from_client: bool = True) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        log.append(records, now_ms=NOW_MS, from_client=from_client)
    return caught.value.code


# -- making one ----------------------------------------------------------------------------------------------


def test_a_new_partition_has_kafkas_files(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert (log.topic, log.partition, log.topic_id) == ("orders", 0, TOPIC_ID)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.size_bytes) == (0, 0, 0, 0)
    assert (log.last_stable_offset, log.leader_epoch, log.end_offset_for_epoch(0)) == (0, 0, (0, 0))
    assert sorted(os.listdir(log.path)) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


def test_a_folder_that_is_no_partition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataFolderError, match="its name must be a topic, '-' and a number"):
        open_log(tmp_path, name="orders")
    with pytest.raises(DataFolderError, match="pass the topic's id"):
        PartitionLog.open(tmp_path / "orders-0", LogConfig(), now_ms=NOW_MS, clean=True)


# -- append --------------------------------------------------------------------------------------------------


def test_batches_get_rising_offsets_and_the_epoch_and_keep_every_other_byte(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    sent = [batch(3), batch(1, timestamp_ms=-1), batch(2, value=b"x" * 9000)]
    infos = [log.append(records, now_ms=NOW_MS, leader_epoch=4) for records in sent]
    assert infos == [AppendInfo(0, 2, -1, 0), AppendInfo(3, 3, -1, 0), AppendInfo(4, 5, -1, 0)]
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (6, 6, 6)
    stored = all_records(log)
    assert len(stored) == log.size_bytes
    for (position, header), original in zip(iter_batches(stored), sent, strict=True):
        verify_batch(stored, header, position)
        assert header.leader_epoch == 4
        assert stored[position + 16 : position + header.size] == original[16:]
        assert stored[position + 8 : position + 12] == original[8:12]


def test_a_leader_epoch_never_goes_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(), now_ms=NOW_MS, leader_epoch=3)
    log.append(batch(), now_ms=NOW_MS, leader_epoch=1)
    assert [header.leader_epoch for _, header in iter_batches(all_records(log))] == [3, 3]
    log.append(batch(), now_ms=NOW_MS, leader_epoch=5)
    assert log.leader_epoch == 5
    assert log.end_offset_for_epoch(3) == (3, 2)
    assert log.end_offset_for_epoch(5) == (5, 3)
    assert [log.epoch_for_offset(offset) for offset in (0, 1, 2)] == [3, 3, 5]


def test_log_append_time_is_written_with_a_new_checksum(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    assert log.append(batch(2, timestamp_ms=5), now_ms=NOW_MS) == AppendInfo(0, 1, NOW_MS, 0)
    stored = all_records(log)
    header = parse_batch_header(stored)
    verify_batch(stored, header)
    assert (header.log_append_time, header.max_timestamp_ms) == (True, NOW_MS)


def test_a_refused_batch_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 2)
    before = all_records(log)
    damaged = bytearray(batch(2))
    damaged[-1] ^= 1
    assert refusal(log, bytes(damaged)) is ErrorCode.CORRUPT_MESSAGE
    assert refusal(log, batch(1, value=bytes(2_000_000))) is ErrorCode.MESSAGE_TOO_LARGE
    assert (all_records(log), log.log_end_offset) == (before, 2)


def test_a_duplicate_is_answered_as_the_first_time_and_not_stored(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 3)
    first = batch(2, producer_id=9, sequence=0, timestamp_ms=NOW_MS - 5)
    assert log.append(first, now_ms=NOW_MS) == AppendInfo(3, 4, -1, 0)
    log.append(batch(1, producer_id=9, sequence=2), now_ms=NOW_MS)
    assert log.append(first, now_ms=NOW_MS) == AppendInfo(3, 4, NOW_MS - 5, 0, duplicate=True)
    assert log.log_end_offset == 6
    assert refusal(log, batch(1, producer_id=9, sequence=9)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append(batch(1, producer_id=9, producer_epoch=1, sequence=0), now_ms=NOW_MS)
    assert refusal(log, batch(1, producer_id=9, sequence=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.log_end_offset == 7


@pytest.mark.parametrize("clean", [True, False])
def test_duplicates_are_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    config = LogConfig(segment_bytes=200)
    log = open_log(tmp_path, config)
    sent = [batch(1, producer_id=9, sequence=number, timestamp_ms=100) for number in range(8)]
    for records in sent:
        log.append(records, now_ms=NOW_MS)
    if clean:
        log.close()
    log = open_log(tmp_path, config, clean=clean)
    for number in (7, 3, 4, 5, 6):  # a snapshot has the last alone
        assert log.append(sent[number], now_ms=NOW_MS) == AppendInfo(number, number, 100, 0, duplicate=True)
    assert refusal(log, sent[2]) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(batch(1, producer_id=9, sequence=8), now_ms=NOW_MS).base_offset == 8


def test_a_coordinators_batches_are_appended_together(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    info = log.append(batch(2) + batch(3), now_ms=NOW_MS, from_client=False)
    assert info == AppendInfo(0, 4, -1, 0)
    assert offsets_of(all_records(log)) == [(0, 1), (2, 4)]


@pytest.mark.parametrize("how", [{}, {"producer_id": 9}, {"transactional": True, "producer_id": 9}])
@pytest.mark.parametrize(
    "config",
    [
        LogConfig(),
        LogConfig(message_timestamp_type="LogAppendTime"),
        LogConfig(segment_bytes=200, flush_messages=3, index_interval_bytes=0),
        LogConfig(max_message_bytes=70),
        LogConfig(segment_bytes=70),
    ],
)
def test_a_batch_made_here_is_appended_as_any_other_that_no_client_sent(
    tmp_path: Path, config: LogConfig, how: dict[str, Any]
) -> None:
    seen = []
    for name in ("one-0", "two-0"):
        log = open_log(tmp_path, config, name=name)
        said: list[object] = []
        for number, epoch in enumerate((0, 0, 3, 1, 3, 2)):
            made = build_batch([(b"k", b"v" * 10)] * (number + 1), timestamp_ms=NOW_MS + number, **how)
            try:
                if name == "one-0":
                    said.append(log.append(made, now_ms=NOW_MS, leader_epoch=epoch, from_client=False)[0])
                else:
                    said.append(log.append_built(made, now_ms=NOW_MS, leader_epoch=epoch))
            except KafkaError as error:
                said.append(error.code)
        files = {path.name: path.read_bytes() for path in Path(log.path).iterdir()}
        files.pop("partition.metadata")
        seen.append((said, files, log.log_end_offset, log.recovery_point))
    assert seen[0] == seen[1]


def test_an_unreadable_marker_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    torn = bytearray(batch(1, producer_id=3, sequence=-1, transactional=True))
    torn[22] |= 0x20
    from kohort.protocol._batch import _write_crc

    _write_crc(torn, 0)
    assert refusal(log, bytes(torn), from_client=False) is ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 0


# -- rolling -------------------------------------------------------------------------------------------------


def test_a_segment_ends_before_it_would_be_larger_than_segment_bytes(tmp_path: Path) -> None:
    size = len(batch())
    log = filled(open_log(tmp_path, LogConfig(segment_bytes=2 * size)), 1, 1, 1, 1, 1)
    assert [int(name[:20]) for name in segment_names(log)] == [0, 2, 4]
    assert (Path(log.path) / "00000000000000000002.snapshot").exists()
    assert offsets_of(all_records(log)) == [(n, n) for n in range(5)]


def test_a_segment_ends_when_its_first_record_is_segment_ms_old(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    for age in (0, 1000, 1001):
        log.append(batch(timestamp_ms=NOW_MS + age), now_ms=NOW_MS)
    assert [int(name[:20]) for name in segment_names(log)] == [0, 2]


def test_without_timestamps_the_brokers_clock_ends_a_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    for age in (0, 1000, 1001):
        log.append(batch(timestamp_ms=-1), now_ms=NOW_MS + age)
    assert [int(name[:20]) for name in segment_names(log)] == [0, 2]


@pytest.mark.parametrize(("step_ms", "bases"), [(0, [0, 6]), (1, [0, 4, 8])])
def test_a_segment_ends_when_one_of_its_indexes_is_full(
    tmp_path: Path, step_ms: int, bases: list[int]
) -> None:
    """48 bytes hold 6 offset entries, or 4 time entries; the last one is kept for the close."""
    log = open_log(tmp_path, LogConfig(segment_index_bytes=48, index_interval_bytes=0))
    for number in range(9):
        log.append(batch(timestamp_ms=NOW_MS + number * step_ms), now_ms=NOW_MS)
    assert [int(name[:20]) for name in segment_names(log)] == bases


def test_offsets_of_a_segment_fit_its_index(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 1)
    log.log_end_offset = log.high_watermark = 2**31 - 1
    log.append(batch(1), now_ms=NOW_MS)
    log.append(batch(1), now_ms=NOW_MS)
    assert [int(name[:20]) for name in segment_names(log)] == [0, 2**31]


# -- read ----------------------------------------------------------------------------------------------------


def test_reads_begin_at_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 3, 3, 3)
    for offset, first in [(0, 0), (2, 0), (3, 3), (5, 3), (8, 6)]:
        assert offsets_of(log.read(offset, 1 << 20).records)[0][0] == first
    info = log.read(9, 1 << 20)
    assert (info.records, info.high_watermark, info.last_stable_offset, info.log_start_offset) == (
        b"",
        9,
        9,
        0,
    )


def test_who_reads_on_is_not_led_to_the_place_by_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, looked_up = filled(open_log(tmp_path), 3, 3, 3), []
    found = Segment.start_for

    def start_for(segment: Segment, offset: int) -> int:
        looked_up.append(offset)
        return found(segment, offset)

    monkeypatch.setattr(Segment, "start_for", start_for)
    assert offsets_of(log.read(0, 1).records) == [(0, 2)]
    assert offsets_of(log.read(3, 1 << 20).records) == [(3, 5), (6, 8)]
    filled(log, 2)
    assert offsets_of(log.read(9, 1 << 20).records) == [(9, 10)]
    assert looked_up == [0]
    assert offsets_of(log.read(4, 1).records) == [(3, 5)]
    assert offsets_of(log.read(7, 1).records) == [(6, 8)]
    assert looked_up == [0, 4, 7]


@pytest.mark.parametrize("offset", [-1, 10])
def test_offsets_outside_of_the_log_are_out_of_range(tmp_path: Path, offset: int) -> None:
    log = filled(open_log(tmp_path), 9)
    with pytest.raises(KafkaError) as caught:
        log.read(offset, 100)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_reads_hold_whole_batches_up_to_max_bytes_but_at_least_one(tmp_path: Path) -> None:
    size = len(batch())
    log = filled(open_log(tmp_path), 1, 1, 1, 1)
    for max_bytes, count in [(0, 1), (size - 1, 1), (size, 1), (2 * size - 1, 1), (2 * size, 2), (9999, 4)]:
        assert len(offsets_of(log.read(0, max_bytes).records)) == count


def test_a_read_that_need_not_hold_a_batch_reads_none_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    log.append(batch(3), now_ms=NOW_MS)
    size = log.size_bytes
    assert len(offsets_of(log.read(0, size, at_least_one=False).records)) == 1

    def never(*_: object) -> bytes:
        raise AssertionError("the batch was read")

    monkeypatch.setattr(Segment, "read", never)
    info = log.read(0, size - 1, at_least_one=False)
    assert (info.records, info.high_watermark) == (b"", 3)
    with pytest.raises(KafkaError):
        log.read(4, 0, at_least_one=False)


def test_the_high_watermark_is_moved_by_the_owner_alone_and_never_back(tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "orders-0", LogConfig(), now_ms=NOW_MS, clean=True, topic_id=TOPIC_ID)
    log.append(batch(3), now_ms=NOW_MS)
    log.flush()
    assert (log.high_watermark, log.last_stable_offset, log.log_end_offset) == (0, 0, 3)
    assert log.read(0, 1 << 20).records == b""
    assert log.read(0, 1 << 20, to_log_end=True).records != b""
    moved = [log.advance_high_watermark(offset) for offset in (2, 1, 2, 9, 4)]
    assert moved == [True, False, False, True, False]
    assert (log.high_watermark, log.last_stable_offset) == (3, 3)


def test_a_log_is_opened_with_the_high_watermark_that_is_known_of_it(tmp_path: Path) -> None:
    filled(open_log(tmp_path), 3).close()
    for known, expected in ((0, 0), (2, 2), (7, 3)):
        log = PartitionLog.open(
            tmp_path / "orders-0", LogConfig(), now_ms=NOW_MS, clean=True, high_watermark=known
        )
        assert log.high_watermark == expected
        log.close()


def test_readers_stop_at_the_high_watermark(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 2, 2, 2)
    log.high_watermark = 4
    assert offsets_of(log.read(0, 1 << 20).records) == [(0, 1), (2, 3)]
    assert log.read(4, 1 << 20).records == b""
    assert log.read(6, 1 << 20).records == b""
    assert offsets_of(log.read(0, 1 << 20, to_log_end=True).records) == [(0, 1), (2, 3), (4, 5)]


def test_an_open_transaction_whose_beginning_was_deleted_holds_readers_at_the_log_start(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path)
    log.append(batch(2, producer_id=1, sequence=0, transactional=True), now_ms=NOW_MS)
    filled(log, 2)
    log.delete_records(3)
    assert log.last_stable_offset == log.log_start_offset == 3


def test_readers_of_committed_records_stop_at_the_last_stable_offset(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 2)
    log.append(batch(2, producer_id=1, sequence=0, transactional=True), now_ms=NOW_MS)
    filled(log, 2)
    assert (log.last_stable_offset, log.high_watermark) == (2, 6)
    assert offsets_of(log.read(0, 1 << 20, committed=True).records) == [(0, 1)]
    assert log.read(3, 1 << 20, committed=True).records == b""
    assert len(offsets_of(log.read(0, 1 << 20).records)) == 3
    log.append(marker(1, committed=False), now_ms=NOW_MS, from_client=False)
    info = log.read(0, 1 << 20, committed=True)
    assert (log.last_stable_offset, offsets_of(info.records)[-1], info.aborted) == (7, (6, 6), [(1, 2)])
    assert log.read(5, 1 << 20, committed=True).aborted == [(1, 2)]
    assert log.read(0, 1 << 20).aborted == []


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_over_several_segments_are_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    config = LogConfig(segment_bytes=300)
    log = open_log(tmp_path, config)
    for sequence in range(4):
        for producer_id in (1, 2, 3):
            records = batch(producer_id=producer_id, sequence=sequence, transactional=True)
            log.append(records, now_ms=NOW_MS)
    log.append(marker(1, committed=False), now_ms=NOW_MS, from_client=False)
    log.append(marker(2, committed=True), now_ms=NOW_MS, from_client=False)
    if clean:
        log.close()
    log = open_log(tmp_path, config, clean=clean)
    assert len(segment_names(log)) > 3
    assert (log.last_stable_offset, log.log_end_offset) == (2, 14)
    log.append(marker(3, committed=False), now_ms=NOW_MS, from_client=False)
    assert log.last_stable_offset == 15
    assert log.read(0, 1, committed=True).aborted == [(1, 0)]
    assert sorted(log.read(2, 1, committed=True).aborted) == [(1, 0), (3, 2)]
    assert log.read(13, 1, committed=True).aborted == [(3, 2)]


def test_a_segment_that_is_damaged_under_a_reader_is_named_with_the_position(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 1, 1)
    size = len(batch())
    path = Path(log.path) / segment_names(log)[0]
    path.write_bytes(path.read_bytes()[: size + 8] + bytes(4) + path.read_bytes()[size + 12 :])
    for _ in range(2):
        with pytest.raises(
            CorruptLogError, match=r"0\.log: offsets 1 to 1 cannot be read: no batch"
        ) as caught:
            log.read(1, 100)
        assert (caught.value.path, caught.value.position) == (str(path), size)
    assert offsets_of(log.read(0, 1000).records) == [(0, 0)]
    assert log.append(batch(), now_ms=NOW_MS).base_offset == 2
    assert offsets_of(log.read(2, 1000).records) == [(2, 2)]


def test_a_read_tells_where_its_records_lie(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 1, 1)
    info = log.read(1, 100)
    assert (os.path.basename(info.file), info.position) == (segment_names(log)[0], len(batch()))


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3000)), min_size=1, max_size=40),
    st.integers(300, 20_000),
    st.integers(0, 12_000),
    st.data(),
)
def test_every_offset_is_read_back_from_any_layout(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[tuple[int, int]],
    segment_bytes: int,
    max_bytes: int,
    data: st.DataObject,
) -> None:
    config = LogConfig(segment_bytes=max(segment_bytes, 16_000), index_interval_bytes=segment_bytes // 8)
    log = open_log(tmp_path_factory.mktemp("log"), config)
    bounds: list[tuple[int, int]] = []
    for count, length in sizes:
        info = log.append(batch(count, value=b"v" * length), now_ms=NOW_MS)
        bounds.append((info.base_offset, info.last_offset))
    assert offsets_of(all_records(log)) == bounds
    for _ in range(5):
        offset = data.draw(st.integers(0, log.log_end_offset - 1))
        records = log.read(offset, max_bytes).records
        found = offsets_of(records)
        first = next(number for number, (_, last) in enumerate(bounds) if last >= offset)
        assert found == bounds[first : first + len(found)]
        assert len(found) == 1 or len(records) <= max_bytes
    log.close()


# -- flush, close, delete ------------------------------------------------------------------------------------


def test_the_recovery_point_follows_the_flush(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 2)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 2


def test_flush_messages_flushes_by_count(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path, LogConfig(flush_messages=3)), 2)
    assert log.recovery_point == 0
    filled(log, 1)
    assert log.recovery_point == 3


def test_a_closed_log_answers_with_a_storage_error(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 2)
    log.close()
    log.close()
    assert refusal(log, batch()) is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError, match="restart the broker"):
        log.read(0, 1)
