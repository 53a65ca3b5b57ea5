"""A log that follows another: it copies the other's batches, and is cut off where the two part.

Covers: log/_partition.py.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kohort.log import LogConfig, PartitionLog
from kohort.log._producers import encode_snapshot
from kohort.protocol import ErrorCode, KafkaError, iter_batches
from tests.log.batches import NOW_MS, batch, filled, marker, open_log

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


def everything(log: PartitionLog) -> bytes:
    data, offset = b"", log.log_start_offset
    while run := log.read(offset, 1 << 20, to_log_end=True).records:
        data += run
        offset = list(iter_batches(run))[-1][1].next_offset
    return data


def copy(leader: PartitionLog, follower: PartitionLog, max_bytes: int = 1 << 20) -> None:
    while follower.log_end_offset < leader.log_end_offset:
        found = leader.read(follower.log_end_offset, max_bytes, to_log_end=True)
        follower.append_copied(found.records, now_ms=NOW_MS)


def reopened(log: PartitionLog, *, clean: bool) -> PartitionLog:
    folder = Path(log.path)
    if clean:
        log.close()
    else:
        log.abandon()
    return open_log(folder.parent, SMALL, clean=clean, name=folder.name)


def test_a_copy_has_the_bytes_the_epochs_and_the_producers_of_its_leader(tmp_path: Path) -> None:
    leader = open_log(tmp_path, SMALL)
    filled(leader, 1, 3)
    leader.begin_epoch(3)
    leader.append(batch(2, producer_id=7, sequence=0), now_ms=NOW_MS, leader_epoch=3)
    leader.append(batch(1, producer_id=8, sequence=0, transactional=True), now_ms=NOW_MS, leader_epoch=3)
    leader.append(batch(4), now_ms=NOW_MS, leader_epoch=5)
    leader.append(marker(8, committed=False), now_ms=NOW_MS, leader_epoch=5, from_client=False)
    follower = open_log(tmp_path, SMALL, name="orders-1")
    copy(leader, follower)
    assert everything(follower) == everything(leader)
    assert [follower.end_offset_for_epoch(n) for n in range(7)] == [
        leader.end_offset_for_epoch(n) for n in range(7)
    ]
    assert encode_snapshot(follower.producers) == encode_snapshot(leader.producers)
    follower.advance_high_watermark(follower.log_end_offset)
    assert (
        follower.read(0, 1 << 20, committed=True).aborted == leader.read(0, 1 << 20, committed=True).aborted
    )


def test_a_log_is_cut_between_batches_in_any_segment(tmp_path: Path) -> None:
    for cut in (0, 1, 5, 6, 11):
        log = filled(open_log(tmp_path, SMALL, name=f"orders-{cut}"), *[1] * 12)
        before = everything(log)
        sizes = [header.size for _, header in iter_batches(before)]
        log = log.replace_truncated(cut, now_ms=NOW_MS)
        assert (log.log_end_offset, log.high_watermark) == (cut, cut)
        assert everything(log) == before[: sum(sizes[:cut])]
        filled(log, 2)
        assert log.log_end_offset == cut + 2
        log = reopened(log, clean=False)
        assert log.log_end_offset == cut + 2


def test_epochs_behind_a_cut_are_forgotten(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path), 3)
    log.append(batch(2), now_ms=NOW_MS, leader_epoch=4)
    log.append(batch(2), now_ms=NOW_MS, leader_epoch=6)
    log = log.replace_truncated(4, now_ms=NOW_MS)
    # the batch that holds the offset goes whole
    assert log.log_end_offset == 3
    assert log.end_offset_for_epoch(6) == (-1, -1)


def test_a_log_that_begins_anew_goes_on_where_its_leader_begins(tmp_path: Path) -> None:
    log = filled(open_log(tmp_path, SMALL), *[1] * 12)
    log.append(batch(2, producer_id=7, sequence=0), now_ms=NOW_MS, leader_epoch=4)
    log = log.replace_truncated(40, now_ms=NOW_MS, restart=True)
    assert (log.log_start_offset, log.log_end_offset, len(log.producers)) == (40, 40, 0)
    leader = open_log(tmp_path, SMALL, name="orders-1").replace_truncated(40, now_ms=NOW_MS, restart=True)
    leader.append(batch(2), now_ms=NOW_MS, leader_epoch=3)
    copy(leader, log)
    assert everything(log) == everything(leader)
    assert log.epoch_for_offset(40) == 3


def test_an_epoch_in_which_nothing_was_written_gives_way_to_what_the_leader_has(tmp_path: Path) -> None:
    leader = filled(open_log(tmp_path), 4)
    follower = open_log(tmp_path, name="orders-1")
    follower.append_copied(leader.read(0, 1 << 20).records, now_ms=NOW_MS)
    follower.begin_epoch(5)
    leader.append(batch(1), now_ms=NOW_MS, leader_epoch=2)
    copy(leader, follower)
    assert [follower.end_offset_for_epoch(n) for n in (0, 2)] == [(0, 4), (2, 5)]
    assert follower.leader_epoch == 2


def test_a_batch_that_is_damaged_or_out_of_place_is_not_copied(tmp_path: Path) -> None:
    leader = filled(open_log(tmp_path), 1, 1, 1)
    records = bytearray(everything(leader))
    follower = open_log(tmp_path, name="orders-1")
    records[-1] ^= 1
    with pytest.raises(KafkaError) as caught:
        follower.append_copied(bytes(records), now_ms=NOW_MS)
    assert (caught.value.code, follower.log_end_offset) == (ErrorCode.CORRUPT_MESSAGE, 2)
    with pytest.raises(KafkaError) as caught:
        follower.append_copied(everything(leader), now_ms=NOW_MS)
    assert (caught.value.code, follower.log_end_offset) == (ErrorCode.CORRUPT_MESSAGE, 2)


@pytest.mark.parametrize("seed", range(8))
def test_a_follower_becomes_equal_to_its_leader_whatever_was_cut_off(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    leader = open_log(tmp_path, SMALL)
    follower = open_log(tmp_path, SMALL, name="orders-1")
    epoch = 0
    open_transactions: set[int] = set()
    for _ in range(60):
        step = rng.random()
        if step < 0.5:
            epoch += rng.random() < 0.15
            producer = rng.choice((7, 8, 9))
            if producer in open_transactions and rng.random() < 0.5:
                ends = marker(producer, committed=rng.random() < 0.5)
                leader.append(ends, now_ms=NOW_MS, leader_epoch=epoch, from_client=False)
                open_transactions.discard(producer)
            elif rng.random() < 0.5:
                known = leader.producers.get(producer)
                sequence = 0 if known is None or not known.batches else known.batches[-1].last_sequence + 1
                records = batch(
                    rng.randint(1, 3), producer_id=producer, sequence=sequence, transactional=True
                )
                leader.append(records, now_ms=NOW_MS, leader_epoch=epoch)
                open_transactions.add(producer)
            else:
                leader.append(batch(rng.randint(1, 3)), now_ms=NOW_MS, leader_epoch=epoch)
        elif step < 0.75:
            copy(leader, follower, rng.choice((1, 300, 1 << 20)))
        elif step < 0.85:
            # it led for a while, and nobody has what it took
            if follower.log_end_offset == leader.log_end_offset:
                end = follower.log_end_offset
                epoch += 1
                follower.begin_epoch(epoch)
                for _ in range(rng.randint(0, 4)):
                    follower.append(batch(2), now_ms=NOW_MS, leader_epoch=epoch)
                epoch += 1
                follower = follower.replace_truncated(end, now_ms=NOW_MS)
        elif step < 0.95:
            follower = follower.replace_truncated(rng.randint(0, follower.log_end_offset), now_ms=NOW_MS)
        else:
            follower = reopened(follower, clean=rng.random() < 0.5)
    copy(leader, follower)
    follower = reopened(follower, clean=True)
    assert everything(follower) == everything(leader)
    assert encode_snapshot(follower.producers) == encode_snapshot(leader.producers)
    for log in (leader, follower):
        log.advance_high_watermark(log.log_end_offset)
    assert [follower.epoch_for_offset(n) for n in range(leader.log_end_offset)] == [
        leader.epoch_for_offset(n) for n in range(leader.log_end_offset)
    ]
    if leader.log_end_offset:
        reads = [log.read(0, 1 << 20, committed=True).aborted for log in (leader, follower)]
        assert reads[0] == reads[1]
