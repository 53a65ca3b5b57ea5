"""A log of 1,000 records that ends at any byte, or has any bit of any byte wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import pytest

from kohort.log import LogConfig, PartitionLog
from kohort.log._indexes import OffsetIndex
from kohort.protocol import BATCH_OVERHEAD, build_batch
from kohort.testing.faults import FaultyFileSystem
from tests.log.batches import NOW_MS, marker
from tests.log.disks import batches_of, disk, opened, stored

pytestmark = pytest.mark.slow(4)

CONFIG = LogConfig(segment_bytes=2_700, index_interval_bytes=600)
RECORDS = 1_000
PRODUCERS = (5, 6)

Batches = list[tuple[int, int, bytes]]


class Written(NamedTuple):
    """A log of 1,000 records in some segments: its disk after a kill, its batches, and where each one ends in
    its file.
    """

    fs: FaultyFileSystem
    batches: Batches
    files: list[str]
    ends: dict[str, list[int]]


def records(count: int, **producer: Any) -> bytes:
    """A batch of records with neither key nor value, so that 1,000 of them take few bytes."""
    made = [(None, bytes(number % 3), ()) for number in range(count)]
    return bytes(build_batch(made, timestamp_ms=NOW_MS, **producer))


def thousand(seed: int) -> Written:
    """Two idempotent producers, a plain one, and transactions that are committed or aborted, as drawn."""
    rng = random.Random(seed)
    fs = disk()
    log = opened(fs, CONFIG)
    sequences = dict.fromkeys(PRODUCERS, 0)
    number, in_transaction = 0, False
    while (left := RECORDS - log.log_end_offset) > 0:
        count, draw, epoch = min(rng.randint(1, 48), left), rng.random(), number // 15
        if in_transaction and draw < 0.4:
            log.append(marker(9, committed=rng.random() < 0.5), now_ms=NOW_MS, from_client=False)
            in_transaction = False
        elif draw < 0.2:
            data = records(count, producer_id=9, producer_epoch=0, transactional=True)
            log.append(data, now_ms=NOW_MS, from_client=False, leader_epoch=epoch)
            in_transaction = True
        elif draw < 0.5:
            log.append(records(count), now_ms=NOW_MS)
        else:
            producer = rng.choice(PRODUCERS)
            sequence = sequences[producer]
            data = records(count, producer_id=producer, producer_epoch=0, base_sequence=sequence)
            log.append(data, now_ms=NOW_MS, leader_epoch=epoch)
            sequences[producer] += count
        number += 1
    files = [path for path in fs.paths() if path.endswith(".log")]
    batches: Batches = []
    ends = {}
    for path in files:
        found = batches_of(fs.content(path))
        batches += found
        ends[path] = [0, *accumulate(len(content) for _, _, content in found)]
    assert batches[-1][1] == RECORDS - 1
    return Written(fs.after_kill(), batches, files, ends)


def producer_state(log: PartitionLog) -> dict[int, tuple[int, int, int]]:
    """Epoch, last sequence number and start of the open transaction of each producer."""
    return {
        p.producer_id: (p.epoch, p.batches[-1].last_sequence if p.batches else -1, p.transaction_start)
        for p in log._producers
    }


def index_of(fs: FaultyFileSystem, log: PartitionLog) -> list[tuple[int, int]]:
    base = log._segments.active.base_offset
    index = OffsetIndex(fs.file(log._segments.active.index.file.path), base)
    index.open()
    return [index.entry(number) for number in range(index.count)]


class State(NamedTuple):
    """What a log knows besides its batches."""

    producers: dict[int, tuple[int, int, int]]
    aborted: Sequence[tuple[int, int]]
    last_stable_offset: int
    entries: list[tuple[int, int]]


def state_of(fs: FaultyFileSystem, log: PartitionLog) -> State:
    aborted = [found for base in range(0, RECORDS, 100) for found in aborted_in(log, base)]
    return State(producer_state(log), aborted, log.last_stable_offset, index_of(fs, log))


def aborted_in(log: PartitionLog, offset: int) -> Sequence[tuple[int, int]]:
    return log.read(offset, 1 << 20, committed=True).aborted if offset < log.last_stable_offset else []


def states(written: Written) -> list[State]:
    """The state behind each batch, made by appending batch by batch, without any recovery."""
    fs = disk()
    log = opened(fs, CONFIG)
    found = [state_of(fs, log)]
    for _, _, content in written.batches:
        epoch = int.from_bytes(content[12:16], "big")
        log.append(content, now_ms=NOW_MS, from_client=False, leader_epoch=epoch)
        found.append(state_of(fs, log))
    return found


def test_a_log_of_1000_records_cut_at_every_byte_keeps_exactly_its_whole_batches() -> None:
    cut_at_every_byte(thousand(0))


def cut_at_every_byte(written: Written) -> None:
    expected = states(written)
    fs = written.fs.after_kill()
    batches = len(written.batches)
    for path in reversed(written.files):
        ends = list(written.ends[path])
        before = batches - len(ends) + 1
        base = int(path.rpartition("/")[2][:20])
        for size in range(ends[-1], -1, -1):
            while ends[-1] > size:
                ends.pop()
            whole, kept = before + len(ends) - 1, ends[-1]
            fs.file(path).truncate(size)
            log = opened(fs.after_kill() if size == kept else fs, CONFIG, recovery_point=base)
            assert log.log_end_offset == (written.batches[whole - 1][1] + 1 if whole else 0)
            cuts = [(cut.path, cut.position, cut.bytes_cut) for cut in log.recovery.cuts]
            assert cuts == ([(path, kept, size - kept)] if size > kept else [])
            assert log.recovery.verified_bytes == kept
            assert producer_state(log) == expected[whole].producers
            if size in (kept, kept + 1, kept + BATCH_OVERHEAD):
                assert stored(log) == written.batches[:whole]
                everything = fs.after_kill()
                state = expected[whole] if kept else expected[whole]._replace(entries=[])
                assert state_of(everything, opened(everything, CONFIG)) == state
        batches = before
        fs.remove(path)
    assert batches == 0
