"""A log that is cut is what it would be if it were read again, and what stays is not read."""

from __future__ import annotations

import errno
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kohort.log import LogConfig, PartitionLog, _partition, at_once, is_full
from kohort.log._files import OsFile
from kohort.log._producers import encode_snapshot
from kohort.protocol import KafkaError
from kohort.testing.faults import SimulatedCrash
from tests.log.batches import NOW_MS, batch, filled, marker, offsets_of, open_log
from tests.log.disks import disk, opened
from tests.log.test_replica import everything

SMALL = LogConfig(segment_bytes=900, index_interval_bytes=150)


def state(log: PartitionLog) -> dict[str, Any]:
    log.advance_high_watermark(log.log_end_offset)
    epochs = [log.epoch_for_offset(offset) for offset in range(log.log_end_offset)]
    producers = sorted(log.producers, key=lambda each: each.producer_id)
    return {
        "end": log.log_end_offset,
        "records": everything(log),
        "segments": [(each.base_offset, each.size, each.max_timestamp) for each in log._segments.all],
        "first times": [each.first_timestamp_ms for each in log._segments.all],
        "aborted": [each.txn_index.entries for each in log._segments.all],
        "producers": encode_snapshot(producers),
        "open": log.producers.first_open_offset,
        "epochs": epochs,
        "times": [at_once(log.find_timestamp(NOW_MS + ms)) for ms in range(0, 60, 3)],
        "newest": at_once(log.find_newest()),
        "recovery point": log.recovery_point,
    }


def draw(log: PartitionLog, rng: random.Random, count: int) -> None:
    epoch = log.leader_epoch
    for _ in range(count):
        epoch += rng.random() < 0.1
        producer = rng.choice((7, 8, 9))
        time_ms = NOW_MS + rng.randint(0, 50)
        known = log.producers.get(producer)
        in_transaction = known is not None and known.transaction_start >= 0
        sequence = 0 if known is None or not known.batches else known.batches[-1].last_sequence + 1
        if in_transaction and rng.random() < 0.4:
            ends = marker(producer, committed=rng.random() < 0.5)
            log.append(ends, now_ms=NOW_MS, leader_epoch=epoch, from_client=False)
        elif rng.random() < 0.7:
            transactional = producer == 9 or in_transaction
            records = batch(
                rng.randint(1, 3),
                producer_id=producer,
                sequence=sequence,
                transactional=transactional,
                timestamp_ms=time_ms,
            )
            log.append(records, now_ms=NOW_MS, leader_epoch=epoch)
        else:
            log.append(batch(rng.randint(1, 3), timestamp_ms=time_ms), now_ms=NOW_MS, leader_epoch=epoch)


@pytest.mark.parametrize("seed", range(12))
def test_a_cut_log_is_what_it_would_be_if_it_were_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    log = open_log(tmp_path, SMALL)
    quick = 0
    for number in range(8):
        draw(log, rng, rng.randint(3, 30))
        if rng.random() < 0.5:
            log.flush()
        offset = rng.randint(max(log.log_end_offset - rng.choice((3, 20)), 0), log.log_end_offset)
        aside = tmp_path / str(number)
        shutil.copytree(tmp_path / "orders-0", aside / "orders-0")
        other = open_log(aside, SMALL, clean=False, recovery_point=log.recovery_point)
        quick += log._plan_cut(offset) is not None
        log = log.replace_truncated(offset, now_ms=NOW_MS)
        with monkeypatch.context() as patch:
            patch.setattr(_partition, "plan_cut", lambda *_: None)
            other = other.replace_truncated(offset, now_ms=NOW_MS)
        assert state(log) == state(other)
        # and what is on the disk is that, after a stop and after a crash
        for clean in (True, False):
            found = tmp_path / f"{number}-{clean}"
            if clean:
                log.close()
            shutil.copytree(tmp_path / "orders-0", found / "orders-0")
            again = open_log(found, SMALL, clean=clean, recovery_point=log.recovery_point)
            assert state(again)["records"] == state(other)["records"]
            assert state(again)["producers"] == state(other)["producers"]
            if clean:
                assert not again.recovery.rebuilt_indexes
                log = open_log(tmp_path, SMALL)
    assert quick >= 2


def test_what_stays_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path, LogConfig())
    for sequence in range(3_000):
        log.append(
            batch(1, producer_id=sequence % 5, sequence=sequence // 5, value=bytes(1_000)), now_ms=NOW_MS
        )
    read, whole = [0], OsFile.read

    def counted(file: OsFile, position: int, size: int) -> bytes:
        read[0] += size
        return whole(file, position, size)

    monkeypatch.setattr(OsFile, "read", counted)
    size = log.size_bytes
    cut = log.replace_truncated(2_990, now_ms=NOW_MS)
    assert (cut.log_end_offset, cut.recovery.verified_bytes) == (2_990, 0)
    assert size > 3_000_000
    assert read[0] < 1_500_000, "a stretch before the cut, for what the producers wrote last"
    read[0] = 0
    cut = cut.replace_truncated(2_990, now_ms=NOW_MS)
    assert read[0] < 100_000, "nothing goes"


def test_a_producer_whose_batches_all_go_is_forgotten_and_a_cut_below_the_log_start_is_one(
    tmp_path: Path,
) -> None:
    log = filled(open_log(tmp_path, SMALL), *[1] * 12)
    log.append(batch(2, producer_id=7, sequence=0), now_ms=NOW_MS)
    log = log.replace_truncated(12, now_ms=NOW_MS)
    assert (log.log_end_offset, len(log.producers)) == (12, 0)
    log.advance_high_watermark(12)
    log.delete_records(8)
    log = log.replace_truncated(5, now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset) == (8, 8)


def test_damage_that_no_length_shows_is_found_before_anything_is_cut(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), *[1] * 12)
    path = Path(log._segments.active.file.path)
    data = bytearray(path.read_bytes())
    size = len(data) // 12
    data[9 * size + 16] = 9  # no such format of batches
    path.write_bytes(data)
    cut = log.replace_truncated(11, now_ms=NOW_MS)
    assert (cut.log_end_offset, cut.first_damaged_offset) == (11, 9)


def test_a_wrong_entry_of_the_offset_index_leads_no_cut_astray(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path, LogConfig(index_interval_bytes=150)), *[1] * 12)
    index = log._segments.active.index
    place, (_, position) = index.count - 1, index.entry(index.count - 1)
    index.file.write(place * index.ENTRY.size, index.ENTRY.pack(10, position - 1))
    cut = log.replace_truncated(11, now_ms=NOW_MS)
    assert (cut.log_end_offset, cut.is_damaged, len(offsets_of(everything(cut)))) == (
        11,
        False,
        11,
    )
    assert cut._segments.active.max_timestamp[0] == NOW_MS


def test_a_segment_is_cut_when_those_behind_it_are_gone_whenever_the_machine_stops() -> None:
    stops = both = 0
    while True:
        fs = disk(page_bytes=64)
        log = filled(opened(fs, SMALL), *[1] * 18)
        log.flush()
        first, second = (each.file.path for each in log._segments.all)
        files = [path for path in fs.paths() if path.startswith(first.removesuffix("log"))]
        whole = [fs.content(path) for path in files]
        fs.crash_at(stops + 1)
        with suppress(SimulatedCrash):
            log.replace_truncated(8, now_ms=NOW_MS)
            break
        stops += 1
        for seed in range(20):
            left = fs.after_crash(seed)
            if left.exists(second):
                both += 1
                assert [left.content(path) for path in files] == whole
    assert stops > 5
    assert both > 20


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("quick", [True, False])
def test_a_cut_that_a_full_disk_interrupts_goes_on_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch, quick: bool, restart: bool
) -> None:
    if not quick:
        monkeypatch.setattr(_partition, "plan_cut", lambda *_: None)
    interrupted = 0
    for number in range(1, 100):
        fs = disk()
        log: PartitionLog = opened(fs, SMALL)
        for epoch in range(18):
            log.append(batch(1), now_ms=NOW_MS, leader_epoch=epoch)
        log.flush()
        log.advance_high_watermark(18)
        fs.fail_at(number, errno.ENOSPC, sticky=True)
        try:
            log.replace_truncated(8, now_ms=NOW_MS, restart=restart)
        except KafkaError as error:
            refused = error
        else:
            break
        assert is_full(refused)
        fs.heal()
        if log.offline:
            interrupted += 1
            # what a checkpoint would say now is true of what is left, too
            assert (log.recovery_point, log.high_watermark) == (8, 8)
            log = log.reopen(now_ms=NOW_MS)
        log = log.replace_truncated(8, now_ms=NOW_MS, restart=restart)
        assert (log.log_start_offset, log.log_end_offset) == (8 if restart else 0, 8)
        assert (log.high_watermark, log.recovery_point) == (8, 8)
        assert [log.epoch_for_offset(each) for each in range(8)] == ([-1] * 8 if restart else list(range(8)))
        log.append(batch(1), now_ms=NOW_MS, leader_epoch=30)
        log.advance_high_watermark(9)
        read = log.read(log.log_start_offset, 1 << 20).records
        assert offsets_of(read) == [(each, each) for each in range(8 * restart, 9)]
    assert interrupted
