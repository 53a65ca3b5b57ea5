"""Retention and DeleteRecords: whole segments, the active one too once it is too old."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kohort.log import UP_TO_HIGH_WATERMARK, LogConfig, PartitionLog
from kohort.protocol import ErrorCode, KafkaError
from tests.log.batches import NOW_MS, all_records, batch, offsets_of, open_log, segment_names

SIZE = len(batch())
MINUTE_MS = 60_000


def five_segments(folder: Path, **settings: object) -> PartitionLog:
    """One batch of one record a segment, a minute apart; the last at NOW_MS."""
    config = LogConfig(segment_bytes=SIZE, retention_ms=-1)
    for name, value in settings.items():
        setattr(config, name, value)
    log = open_log(folder, config)
    for number in range(5):
        log.append(batch(timestamp_ms=NOW_MS - (4 - number) * MINUTE_MS), now_ms=NOW_MS)
    assert len(segment_names(log)) == 5
    return log


def bases(log: PartitionLog) -> list[int]:
    return [int(name[:20]) for name in segment_names(log)]


def test_unlimited_retention_removes_nothing(tmp_path: Path) -> None:
    log = five_segments(tmp_path)
    assert log.apply_retention(NOW_MS + 10**12) == 0
    assert log.log_start_offset == 0


def test_segments_whose_newest_record_is_older_than_retention_ms_go(tmp_path: Path) -> None:
    log = five_segments(tmp_path, retention_ms=2 * MINUTE_MS)
    assert log.apply_retention(NOW_MS) == 2
    assert (bases(log), log.log_start_offset) == ([2, 3, 4], 2)
    assert log.apply_retention(NOW_MS + 2 * MINUTE_MS) == 2
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([4], 4, 5)
    assert offsets_of(all_records(log)) == [(4, 4)]


def test_a_quiet_log_keeps_nothing_that_is_older_than_retention_ms(tmp_path: Path) -> None:
    log = five_segments(tmp_path, retention_ms=2 * MINUTE_MS)
    assert log.apply_retention(NOW_MS + 2 * MINUTE_MS + 1) == 5
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([5], 5, 5)
    assert log.read(5, 1000).records == b""
    assert log.apply_retention(NOW_MS + 10**12) == 0, "an empty segment stays"
    assert log.append(batch(timestamp_ms=NOW_MS), now_ms=NOW_MS).base_offset == 5
    log.close()
    log = open_log(tmp_path, log.config, log_start_offset=5)
    assert (log.log_start_offset, log.log_end_offset) == (5, 6)


def test_what_readers_have_not_seen_is_not_removed_by_age(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(retention_ms=1000))
    log.append(batch(timestamp_ms=NOW_MS), now_ms=NOW_MS)
    log.high_watermark = 0
    assert log.apply_retention(NOW_MS + 10**9) == 0, "readers have not seen it"
    assert offsets_of(all_records(log)) == []
    log.high_watermark = 1
    assert offsets_of(all_records(log)) == [(0, 0)]


def test_a_quiet_segment_ends_after_segment_ms(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=MINUTE_MS, retention_ms=-1))
    log.append(batch(timestamp_ms=NOW_MS + 5), now_ms=NOW_MS + 5)
    log.apply_retention(NOW_MS + 5 + MINUTE_MS)
    assert bases(log) == [0]
    log.apply_retention(NOW_MS + 6 + MINUTE_MS)
    assert bases(log) == [0, 1]
    log.apply_retention(NOW_MS + 10**9)
    assert bases(log) == [0, 1], "an empty one does not"
    assert offsets_of(all_records(log)) == [(0, 0)]


def test_old_timestamps_do_not_end_a_segment_that_is_new(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=MINUTE_MS, retention_ms=-1))
    log.append(batch(timestamp_ms=1), now_ms=NOW_MS)
    log.apply_retention(NOW_MS + MINUTE_MS)
    assert bases(log) == [0]
    log.apply_retention(NOW_MS + MINUTE_MS + 1)
    assert bases(log) == [0, 1]


def test_a_quiet_compacted_segment_ends_in_time_for_max_compaction_lag_ms(tmp_path: Path) -> None:
    config = LogConfig(cleanup_policy="compact", max_compaction_lag_ms=MINUTE_MS)
    log = open_log(tmp_path, config)
    log.append(batch(timestamp_ms=NOW_MS), now_ms=NOW_MS)
    log.apply_retention(NOW_MS + MINUTE_MS + 1)
    assert bases(log) == [0, 1]
    assert log.cleanable(NOW_MS + MINUTE_MS + 1).forced


def snapshots(log: PartitionLog) -> list[int]:
    return sorted(int(path.name[:20]) for path in Path(log.path).glob("*.snapshot"))


def test_producer_snapshots_go_with_the_segments_that_began_there(tmp_path: Path) -> None:
    log = five_segments(tmp_path, retention_ms=2 * MINUTE_MS)
    assert snapshots(log) == [1, 2, 3, 4]
    log.apply_retention(NOW_MS)
    assert (bases(log), snapshots(log)) == ([2, 3, 4], [2, 3, 4])
    log.apply_retention(NOW_MS + 10**9)
    assert (bases(log), snapshots(log)) == ([5], [5])


def test_a_start_removes_snapshots_that_no_recovery_begins_with(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(4):
        log.append(batch(producer_id=7, sequence=log.log_end_offset), now_ms=NOW_MS)
        log.close()
        log = open_log(tmp_path)
    assert snapshots(log) == [4]
    log.close()
    Path(log.path, "00000000000000000002.snapshot").write_bytes(b"left behind")
    log = open_log(tmp_path, clean=False)
    assert snapshots(log) == [4]
    with pytest.raises(KafkaError):
        log.append(batch(producer_id=7, sequence=9), now_ms=NOW_MS)


def test_segments_go_while_the_rest_has_retention_bytes(tmp_path: Path) -> None:
    log = five_segments(tmp_path, retention_bytes=2 * SIZE + 1)
    assert log.apply_retention(NOW_MS) == 2
    assert bases(log) == [2, 3, 4]
    log.config.retention_bytes = 0
    log.apply_retention(NOW_MS)
    assert bases(log) == [5]


def test_a_compacted_log_loses_nothing_by_age_or_size(tmp_path: Path) -> None:
    log = five_segments(tmp_path, retention_ms=0, retention_bytes=0, cleanup_policy="compact")
    assert log.apply_retention(NOW_MS) == 0
    log.config.cleanup_policy = "compact,delete"
    assert log.apply_retention(NOW_MS) == 5


def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = five_segments(tmp_path, retention_ms=0)
    log.high_watermark = 2
    assert log.apply_retention(NOW_MS + 1) == 2
    assert log.log_start_offset == 2


def test_records_without_a_timestamp_count_from_their_segments_making(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=SIZE, retention_ms=1000))
    for _ in range(3):
        log.append(batch(timestamp_ms=-1), now_ms=NOW_MS)
    assert log.apply_retention(NOW_MS + 1000) == 0
    assert log.apply_retention(NOW_MS + 1001) == 3


def test_files_are_renamed_now_and_removed_after_the_delay(tmp_path: Path) -> None:
    log = five_segments(tmp_path, retention_ms=3 * MINUTE_MS, file_delete_delay_ms=MINUTE_MS)
    log.apply_retention(NOW_MS)
    waiting = sorted(name for name in os.listdir(log.path) if name.endswith(".deleted"))
    assert waiting == [f"00000000000000000000{kind}.deleted" for kind in (".index", ".log", ".timeindex")]
    log.config.retention_ms = -1
    log.apply_retention(NOW_MS + MINUTE_MS - 1)
    assert len(list(Path(log.path).glob("*.deleted"))) == 3
    log.apply_retention(NOW_MS + MINUTE_MS)
    assert not list(Path(log.path).glob("*.deleted"))


def test_a_close_removes_what_waits(tmp_path: Path) -> None:
    log = five_segments(tmp_path, retention_ms=0)
    log.apply_retention(NOW_MS + 1)
    log.close()
    assert not list(Path(log.path).glob("*.deleted"))


def test_delete_records_moves_the_log_start(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(5), now_ms=NOW_MS)
    assert log.delete_records(3) == 3
    assert log.delete_records(1) == 3
    with pytest.raises(KafkaError) as caught:
        log.read(2, 100)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert offsets_of(log.read(3, 100).records) == [(0, 4)]  # a batch is never cut
    assert log.delete_records(UP_TO_HIGH_WATERMARK) == 5
    assert log.append(batch(), now_ms=NOW_MS).log_start_offset == 5


@pytest.mark.parametrize("offset", [6, -2])
def test_records_beyond_the_high_watermark_cannot_be_deleted(tmp_path: Path, offset: int) -> None:
    log = open_log(tmp_path)
    log.append(batch(5), now_ms=NOW_MS)
    with pytest.raises(KafkaError) as caught:
        log.delete_records(offset)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_delete_records_removes_segments_that_lie_below(tmp_path: Path) -> None:
    log = five_segments(tmp_path, cleanup_policy="compact")
    log.delete_records(3)
    assert bases(log) == [3, 4]
    log.delete_records(UP_TO_HIGH_WATERMARK)
    assert bases(log) == [4]
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    assert log.read(5, 100).records == b""
    assert log.end_offset_for_epoch(0) == (0, 5)


def test_the_log_start_comes_back_from_the_checkpoint(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(5), now_ms=NOW_MS)
    log.delete_records(3)
    log.close()
    assert open_log(tmp_path, log_start_offset=3).log_start_offset == 3


def test_a_log_whose_start_lies_behind_its_end_begins_anew_there(tmp_path: Path) -> None:
    """Deleted records whose bytes a crash took: their offsets are not given again."""
    log = open_log(tmp_path)
    log.append(batch(5), now_ms=NOW_MS)
    log.close()
    log = open_log(tmp_path, clean=False, log_start_offset=9)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (9, 9, 9)
    assert bases(log) == [9]
    gone = {tmp_path / "orders-0" / f"{0:020d}.{kind}.deleted" for kind in ("log", "index", "timeindex")}
    assert {Path(path) for path in log.recovery.removed_files} >= gone
    assert log.append(batch(), now_ms=NOW_MS).base_offset == 9
    log.close()
    assert open_log(tmp_path, log_start_offset=9).log_end_offset == 10
