"""Any bit of any byte of a segment is wrong: the batch is cut or the partition refused, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kohort.log import CorruptLogError, LogConfig, PartitionLog
from kohort.protocol import BATCH_OVERHEAD, CorruptBatchError, KafkaError, iter_batches, verify_batch
from kohort.testing.faults import FaultyFileSystem
from tests.log.batches import NOW_MS, batch
from tests.log.disks import FOLDER, batches_of, disk, opened, stored

CONFIG = LogConfig(segment_bytes=420, index_interval_bytes=100)
EPOCH = slice(12, 16)


class Place(NamedTuple):
    """A byte: its file and position, and of its batch the number, the position, and the byte's within it."""

    path: str
    position: int
    number: int
    start: int
    within: int


def written(config: LogConfig = CONFIG) -> FaultyFileSystem:
    """Eleven batches in a few segments, of the leader epochs 0, 2 and 4."""
    fs = disk()
    log = opened(fs, config)
    for number in range(11):
        count = 1 + number % 3
        log.append(
            batch(count, producer_id=7, sequence=log.log_end_offset),
            now_ms=NOW_MS,
            leader_epoch=number // 4 * 2,
        )
    assert 2 < len(log._segments.all) < 11
    return fs.after_kill()


def places(fs: FaultyFileSystem) -> Iterator[Place]:
    number = 0
    for path in fs.paths():
        if path.endswith(".log"):
            start = 0
            for _, _, content in batches_of(fs.content(path)):
                for within in range(len(content)):
                    yield Place(path, start + within, number, start, within)
                number += 1
                start += len(content)


def opened_or_refused(fs: FaultyFileSystem) -> tuple[PartitionLog | None, CorruptLogError | None]:
    try:
        return opened(fs, CONFIG), None
    except CorruptLogError as error:
        return None, error


def test_a_flipped_bit_costs_the_last_batch_or_is_refused_by_name() -> None:
    """In the fields that the checksum leaves out too: base offset and leader epoch."""
    fs = written()
    batches = stored(opened(fs.after_kill(), CONFIG))
    last = len(batches) - 1
    newest = int.from_bytes(batches[last][2][EPOCH], "big")
    passed = 0
    for place in places(fs):
        for bit in range(8) if place.within < BATCH_OVERHEAD else (place.within % 8,):
            damaged = fs.after_kill()
            damaged.flip(place.path, place.position, bit)
            content = damaged.content(place.path)
            epoch = int.from_bytes(content[place.start + 12 : place.start + 16], "big")
            log, error = opened_or_refused(damaged)
            if log is None:
                assert error is not None
                assert place.number < last
                assert (error.path, error.position) == (place.path, place.start)
                assert damaged.content(place.path) == content
                continue
            if 12 <= place.within < 16 and epoch == newest + 1:
                # an epoch that the checkpoint may not know yet; the records are those that were written
                assert [found[2][16:] for found in stored(log)] == [found[2][16:] for found in batches]
                passed += 1
                continue
            assert place.number == last
            assert stored(log) == batches[:-1]
            (cut,) = log.recovery.cuts
            assert (cut.path, cut.position, cut.bytes_cut) == (
                place.path,
                place.start,
                len(content) - place.start,
            )
    assert passed == 1


def test_a_flipped_bit_that_a_clean_stop_hides_is_never_a_crash_and_never_passes_for_a_record() -> None:
    """Nothing is verified then: a reader gets an error, or bytes that do not match their checksum; but base
    offset and leader epoch have none.
    """
    fs = written()
    log = opened(fs)
    batches = stored(log)
    log.close()
    for place in places(fs):
        damaged = fs.after_kill()
        damaged.flip(place.path, place.position, place.position % 8)
        try:
            delivered = read_all(damaged)
        except (CorruptBatchError, KafkaError):
            continue
        for records in delivered:
            if place.within >= 16:
                assert records in [found[2] for found in batches], place
            else:
                assert records[16:] in [found[2][16:] for found in batches], place


def read_all(fs: FaultyFileSystem) -> list[bytes]:
    """What a client that checks checksums takes in: the bytes of each batch."""
    log = opened(fs, CONFIG, clean=True)
    found: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset and (run := log.read(offset, 1 << 20).records):
        for position, header in iter_batches(run):
            try:
                verify_batch(run, header, position)
            except CorruptBatchError:
                return found
            found.append(run[position : position + header.size])
            if header.next_offset <= offset:
                return found
            offset = header.next_offset
    return found


@pytest.mark.parametrize("cleanup_policy", ["delete", "compact"])
@pytest.mark.parametrize("ahead", [1, 7, 1 << 20])
def test_a_last_batch_that_alone_leaves_offsets_out_is_cut(cleanup_policy: str, ahead: int) -> None:
    fs = disk()
    config = LogConfig(cleanup_policy=cleanup_policy)
    log = opened(fs, config)
    for _ in range(3):
        log.append(batch(), now_ms=NOW_MS)
    path = f"{FOLDER}/{0:020d}.log"
    content = bytearray(fs.content(path))
    size = len(content) // 3
    content[2 * size : 2 * size + 8] = (2 + ahead).to_bytes(8, "big")
    fs.put(path, bytes(content))
    again = opened(fs, config)
    assert (again.log_end_offset, len(again.recovery.cuts)) == (2, 1)


@pytest.mark.parametrize(("flushed", "end", "cuts"), [(0, 0, 1), (5, 5, 0)])
def test_a_lone_batch_that_leaves_offsets_out_is_cut_from_a_compacted_log_unless_it_was_flushed(
    flushed: int, end: int, cuts: int
) -> None:
    fs = disk()
    config = LogConfig(cleanup_policy="compact")
    opened(fs, config).append(batch(), now_ms=NOW_MS)
    path = f"{FOLDER}/{0:020d}.log"
    fs.put(path, (4).to_bytes(8, "big") + fs.content(path)[8:])
    again = opened(fs, config, recovery_point=flushed)
    assert (again.log_end_offset, len(again.recovery.cuts)) == (end, cuts)


def test_a_lone_batch_that_compaction_left_before_an_empty_segment_stays() -> None:
    fs = disk()
    config = LogConfig(cleanup_policy="compact")
    opened(fs, config).append(batch(), now_ms=NOW_MS)
    path = f"{FOLDER}/{0:020d}.log"
    fs.put(path, (4).to_bytes(8, "big") + fs.content(path)[8:])
    fs.put(f"{FOLDER}/{9:020d}.log", b"")
    again = opened(fs, config)
    assert (again.log_end_offset, again.recovery.cuts) == (9, [])


def test_offsets_that_compaction_left_out_are_no_damage() -> None:
    fs = written()
    config = LogConfig(segment_bytes=420, cleanup_policy="compact")
    paths = [path for path in fs.paths() if path.endswith(".log")]
    before = [found for path in paths for found in batches_of(fs.content(path))]
    for path in paths[:-1]:
        (*_, kept, _) = batches_of(fs.content(path))
        fs.put(path, kept[2])
    log = opened(fs, config)
    assert log.recovery.cuts == []
    assert log.log_end_offset == before[-1][1] + 1
    assert set(stored(log)) < set(before)


def test_records_missing_between_two_files_are_an_error_that_names_their_place() -> None:
    fs = written()
    paths = [path for path in fs.paths() if path.endswith(".log")]
    content = fs.content(paths[0])
    *kept, lost = batches_of(content)
    size = sum(len(found[2]) for found in kept)
    fs.put(paths[0], content[:size])
    with pytest.raises(CorruptLogError, match=f"offsets {lost[0]} to {lost[1]} are missing") as caught:
        opened(fs, CONFIG)
    assert (caught.value.path, caught.value.position) == (paths[0], size)


def test_an_empty_file_behind_offsets_that_are_lost_goes() -> None:
    """Its name was written before the batches that it was made to follow."""
    fs = disk()
    log = opened(fs)
    for _ in range(3):
        log.append(batch(), now_ms=NOW_MS)
    path = f"{FOLDER}/{0:020d}.log"
    fs.put(path, fs.content(path)[: log.size_bytes * 2 // 3])
    fs.put(f"{FOLDER}/{3:020d}.log", b"")
    again = opened(fs)
    assert again.append(batch(), now_ms=NOW_MS).base_offset == 2
    assert [name for name in fs.list(FOLDER) if name.endswith(".log")] == [f"{0:020d}.log"]


@pytest.mark.parametrize("content", [b"", b"0\n1\nx 0\n", b"1\n0\n", b"\xff" * 9, b"0\n2\n4 0\n2 9\n", None])
def test_leader_epochs_that_cannot_be_read_are_taken_from_the_batches(content: bytes | None) -> None:
    fs = written()
    path = f"{FOLDER}/leader-epoch-checkpoint"
    good = fs.content(path)
    if content is None:
        fs.remove(path)
    else:
        fs.put(path, content)
    assert opened(fs, CONFIG).leader_epoch == 4
    assert fs.content(path) == good
