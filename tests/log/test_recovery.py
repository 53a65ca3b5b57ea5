"""Opening after an unclean stop: exactly the whole valid batches survive, and nothing else.

Covers: log/_scan.py, log/_segments.py.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kohort.log import CorruptLogError, Cut, LogConfig, PartitionLog
from kohort.protocol import iter_batches
from tests.log.batches import (
    NOW_MS,
    OnlyReplica,
    all_records,
    batch,
    marker,
    offsets_of,
    open_log,
    segment_names,
)

FIRST = "00000000000000000000"


def written(folder: Path, config: LogConfig | None = None) -> tuple[PartitionLog, bytes]:
    """A small log of varied batches, and its bytes; not closed."""
    log = open_log(folder, config)
    sequence = 0
    for number in range(6):
        count, value = 1 + number % 3, bytes([number]) * (number * 3)
        log.append(batch(count, value=value, producer_id=5, sequence=sequence), now_ms=NOW_MS)
        sequence += count
        if number % 2:
            log.append(batch(1, timestamp_ms=NOW_MS + number), now_ms=NOW_MS)
    return log, all_records(log)


def reopened(folder: Path, config: LogConfig | None = None, *, recovery_point: int = 0) -> PartitionLog:
    return open_log(folder, config, clean=False, recovery_point=recovery_point)


def damaged_copy(source: Path, target: Path, name: str, content: bytes) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    (target / "orders-0" / name).write_bytes(content)


def whole_batches(data: bytes, size: int) -> int:
    """How many bytes of the first ``size`` are whole batches."""
    return max(end for end in batch_ends(data) if end <= size)


def batch_ends(data: bytes) -> list[int]:
    return [0, *(position + header.size for position, header in iter_batches(data))]


def test_a_log_cut_at_any_byte_keeps_its_whole_batches(tmp_path: Path) -> None:
    log, data = written(tmp_path / "a")
    log.close()
    source, copy = tmp_path / "a", tmp_path / "b"
    shutil.copytree(source, copy)
    path = copy / "orders-0" / f"{FIRST}.log"
    for size in range(len(data), -1, -1):
        os.truncate(path, size)
        again = reopened(copy)
        kept = whole_batches(data, size)
        assert again.size_bytes == kept
        assert all_records(again) == data[:kept]
        cut = [Cut(str(path), kept, size - kept, again.recovery.cuts[0].reason)] if size > kept else []
        assert again.recovery.cuts == cut
        again._segments.close()


@pytest.mark.parametrize("noise", ["zeros", "random", "ones"])
def test_a_log_garbled_from_any_byte_on_keeps_its_whole_batches(tmp_path: Path, noise: str) -> None:
    log, data = written(tmp_path)
    log.close()
    path = tmp_path / "orders-0" / f"{FIRST}.log"
    rng = random.Random(noise)
    for start in range(0, len(data), 3):
        tail = {
            "zeros": bytes(len(data) - start),
            "ones": b"\xff" * (len(data) - start),
            "random": rng.randbytes(len(data) - start),
        }[noise]
        path.write_bytes(data[:start] + tail)
        intact = next((n for n in range(start, len(data)) if data[n] != tail[n - start]), len(data))
        again = reopened(tmp_path)
        assert all_records(again) == data[: whole_batches(data, intact)]
        assert len(again.recovery.cuts) == (intact < len(data))
        again._segments.close()


def test_any_flipped_byte_of_the_last_batch_costs_that_batch_alone(tmp_path: Path) -> None:
    log, data = written(tmp_path)
    log.close()
    last = batch_ends(data)[-2]
    path = tmp_path / "orders-0" / f"{FIRST}.log"
    for position in range(last, len(data)):
        if 12 <= position - last < 16:
            continue  # the leader epoch is not covered by the checksum
        flipped = bytearray(data)
        flipped[position] ^= 0x80
        path.write_bytes(flipped)
        again = reopened(tmp_path)
        kept = again.size_bytes
        if position - last < 8:
            assert kept in (last, len(data))  # a base offset further on is a gap, as compaction leaves
        else:
            assert kept == last
        assert all_records(again)[:last] == data[:last]
        again._segments.close()


def test_any_flipped_byte_before_whole_batches_is_an_error_and_cuts_nothing(tmp_path: Path) -> None:
    log, data = written(tmp_path)
    log.close()
    path = tmp_path / "orders-0" / f"{FIRST}.log"
    ends = batch_ends(data)
    start, end = ends[3], ends[4]
    for position in range(start + 8, end):
        if 12 <= position - start < 16:
            continue
        flipped = bytearray(data)
        flipped[position] ^= 0x10
        path.write_bytes(flipped)
        with pytest.raises(
            CorruptLogError, match=r"whole batches follow from byte .* restore the file"
        ) as caught:
            reopened(tmp_path)
        assert (caught.value.path, caught.value.position) == (str(path), start)
        assert path.read_bytes() == flipped


def test_batches_behind_a_large_gap_of_damage_are_found(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for size in (10, 900_000, 900_000, 900_000, 10):
        log.append(batch(value=b"\x02" * size), now_ms=NOW_MS)
    data = all_records(log)
    ends = batch_ends(data)
    path = tmp_path / "orders-0" / f"{FIRST}.log"
    path.write_bytes(data[: ends[1]] + bytes(ends[4] - ends[1]) + data[ends[4] :])
    with pytest.raises(CorruptLogError, match=f"whole batches follow from byte {ends[4]} on"):
        reopened(tmp_path)
    path.write_bytes(data[: ends[1]] + bytes(len(data) - ends[1]))
    assert reopened(tmp_path).log_end_offset == 1


def test_damage_before_a_segment_with_batches_is_an_error(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=400)
    log, _ = written(tmp_path, config)
    names = segment_names(log)
    path = tmp_path / "orders-0" / names[-2]
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(CorruptLogError, match=f"{names[-1]} follows"):
        reopened(tmp_path, config)


def test_an_empty_segment_behind_a_torn_one_goes(tmp_path: Path) -> None:
    log, data = written(tmp_path)
    end = log.log_end_offset
    folder = tmp_path / "orders-0"
    (folder / f"{end:020d}.log").touch()
    os.truncate(folder / f"{FIRST}.log", len(data) - 1)
    again = reopened(tmp_path)
    assert segment_names(again) == [f"{FIRST}.log"]
    assert again.append(batch(), now_ms=NOW_MS).base_offset == end - 1


def test_what_lies_below_the_recovery_point_is_trusted(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=400)
    log, data = written(tmp_path, config)
    names = segment_names(log)
    log.close()
    again = reopened(tmp_path, config, recovery_point=int(names[-1][:20]))
    assert all_records(again) == data
    assert again.recovery.verified_bytes == (tmp_path / "orders-0" / names[-1]).stat().st_size
    assert [Path(path).name for path in again.recovery.rebuilt_indexes] == [names[-1][:20] + ".index"]
    assert again.recovery_point == int(names[-1][:20])


def test_indexes_made_anew_are_those_that_were_written(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=900, index_interval_bytes=100)
    log, _ = written(tmp_path, config)
    log.append(batch(1, producer_id=1, sequence=0, transactional=True), now_ms=NOW_MS)
    log.append(marker(1, committed=False), now_ms=NOW_MS, from_client=False)
    log.close()
    folder = tmp_path / "orders-0"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert any(len(content) >= 16 for name, content in before.items() if name.endswith(".index"))
    for path in [*folder.glob("*index"), *folder.glob("*.snapshot")]:
        path.unlink()
    (folder / "leader-epoch-checkpoint").unlink()
    reopened(tmp_path, config).close()
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    rolled = {name for name in before if name.endswith(".snapshot") and name not in after}
    assert after == {name: content for name, content in before.items() if name not in rolled}


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "odd size", "foreign"])
def test_a_clean_start_makes_a_missing_or_foreign_index_anew(
    tmp_path: Path, suffix: str, damage: str
) -> None:
    config = LogConfig(index_interval_bytes=100)
    log, data = written(tmp_path, config)
    log.close()
    path = tmp_path / "orders-0" / f"{FIRST}{suffix}"
    good = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(good + b"\x01" if damage == "odd size" else b"\x7f" * 24)
    again = open_log(tmp_path, config)
    assert path.read_bytes() == good
    assert again.recovery.rebuilt_indexes == [str(tmp_path / "orders-0" / f"{FIRST}.index")]
    assert all_records(again) == data


def test_preallocated_indexes_of_a_killed_kafka_are_taken_at_any_start(tmp_path: Path) -> None:
    config = LogConfig(index_interval_bytes=100)
    log, data = written(tmp_path, config)
    log.close()
    folder = tmp_path / "orders-0"
    sizes = {}
    for path in folder.glob("*index"):
        sizes[path] = path.stat().st_size
        os.truncate(path, 960_000)
    again = open_log(tmp_path, config)
    assert again.recovery.rebuilt_indexes == []
    assert all_records(again) == data
    again = reopened(tmp_path, config)
    assert {path: path.stat().st_size for path in sizes} == sizes


def test_a_torn_log_is_mended_even_when_the_stop_is_said_to_be_clean(tmp_path: Path) -> None:
    log, data = written(tmp_path)
    log.close()
    os.truncate(tmp_path / "orders-0" / f"{FIRST}.log", len(data) - 3)
    again = open_log(tmp_path, clean=True)
    assert len(again.recovery.cuts) == 1
    assert all_records(again) == data[: whole_batches(data, len(data) - 3)]


@pytest.mark.parametrize("damage", [lambda good: good[:-3], lambda good: good[:18] + b"\1" + good[19:]])
def test_a_damaged_transaction_index_is_made_anew(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    log = open_log(tmp_path)
    log.append(batch(1, producer_id=1, sequence=0, transactional=True), now_ms=NOW_MS)
    log.append(marker(1, committed=False), now_ms=NOW_MS, from_client=False)
    log.close()
    path = tmp_path / "orders-0" / f"{FIRST}.txnindex"
    good = path.read_bytes()
    path.write_bytes(damage(good))
    assert open_log(tmp_path).read(0, 1000, committed=True).aborted == [(1, 0)]
    assert path.read_bytes() == good


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_snapshot_is_replaced_by_reading_the_log(tmp_path: Path, clean: bool) -> None:
    log, _ = written(tmp_path)
    log.close()
    (snapshot,) = (tmp_path / "orders-0").glob("*.snapshot")
    good = snapshot.read_bytes()
    snapshot.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    open_log(tmp_path, clean=clean).close()
    assert snapshot.read_bytes() == good


def test_what_a_cut_took_is_forgotten_by_producers_and_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(1, producer_id=1, sequence=0), now_ms=NOW_MS)
    second = batch(1, producer_id=1, sequence=1)
    log.append(second, now_ms=NOW_MS, leader_epoch=3)
    log.append(batch(1), now_ms=NOW_MS, leader_epoch=4)
    log.close()
    os.truncate(tmp_path / "orders-0" / f"{FIRST}.log", log.size_bytes // 2)
    again = reopened(tmp_path)
    assert (again.log_end_offset, again.leader_epoch) == (1, 3)
    assert not list((tmp_path / "orders-0").glob("*3.snapshot"))
    assert again.append(second, now_ms=NOW_MS).duplicate is False


def test_a_snapshot_behind_what_has_to_be_read_goes(tmp_path: Path) -> None:
    """Pages reach a disk in any order: a segment may have lost its last batch, and the next one none."""
    first, lost = batch(1), batch(1, producer_id=1, sequence=0, transactional=True)
    config = LogConfig(segment_bytes=len(first) + len(lost))
    log = open_log(tmp_path, config)
    for data in (first, lost, batch(1)):
        log.append(data, now_ms=NOW_MS)
    assert log.last_stable_offset == 1
    os.truncate(tmp_path / "orders-0" / f"{FIRST}.log", len(first))
    again = open_log(tmp_path, config, clean=False, keep_damage=True)
    assert again.producers.first_open_offset is None
    # the next start begins with what was flushed by then
    again = open_log(tmp_path, config, clean=False, keep_damage=True, recovery_point=3)
    assert (again.log_end_offset, again.producers.first_open_offset) == (3, None)


def test_records_missing_between_two_segments_are_damage_that_a_follower_cuts(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=len(batch(1)) * 2)
    log = open_log(tmp_path, config)
    for _ in range(3):
        log.append(batch(1), now_ms=NOW_MS)
    os.truncate(tmp_path / "orders-0" / f"{FIRST}.log", len(batch(1)))
    again = open_log(tmp_path, config, clean=False, keep_damage=True)
    assert (again.log_end_offset, again.first_damaged_offset) == (3, 1)
    cut = again.replace_truncated(1, now_ms=NOW_MS)
    assert (cut.log_end_offset, cut.first_damaged_offset) == (1, None)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["whole", "zeros", "another epoch"]), min_size=3, max_size=6))
@example(["zeros", "another epoch", "another epoch"])
def test_a_log_that_is_cut_where_it_is_damaged_keeps_no_damage(
    tmp_path_factory: pytest.TempPathFactory, fates: list[str]
) -> None:
    """Pages that a power loss took lie before others that it left, and before an epoch file without them."""
    folder = tmp_path_factory.mktemp("log")
    log = open_log(folder)
    for _ in fates:
        log.append(batch(1), now_ms=NOW_MS, leader_epoch=3)
    path = folder / "orders-0" / f"{FIRST}.log"
    content = bytearray(path.read_bytes())
    size = len(content) // len(fates)
    for number, fate in enumerate(fates):
        if fate == "zeros":
            content[number * size : (number + 1) * size] = bytes(size)
        elif fate == "another epoch":
            content[number * size + 12 : number * size + 16] = (number % 2).to_bytes(4, "big")
    log._segments.close()
    path.write_bytes(content)
    log = open_log(folder, clean=False, keep_damage=True)
    if (damaged := log.first_damaged_offset) is not None:
        log = log.replace_truncated(damaged, now_ms=NOW_MS)
    assert log.first_damaged_offset is None
    end = log.log_end_offset
    assert end <= next((number for number, fate in enumerate(fates) if fate == "zeros"), len(fates))
    log.append(batch(1), now_ms=NOW_MS, leader_epoch=4)
    log.advance_high_watermark(end + 1)
    assert [first for first, _ in offsets_of(all_records(log))] == [*range(end + 1)]


@settings(max_examples=40)
@given(st.data())
def test_kills_at_any_byte_of_a_rolled_log_lose_only_what_was_not_whole(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    config = LogConfig(segment_bytes=data.draw(st.integers(300, 2000)), index_interval_bytes=100)
    log = open_log(folder, config)
    expected: list[tuple[int, int]] = []
    for _ in range(data.draw(st.integers(1, 3))):
        for count in data.draw(st.lists(st.integers(1, 4), max_size=10)):
            info = log.append(batch(count, value=b"v" * 30), now_ms=NOW_MS)
            expected.append((info.base_offset, info.last_offset))
        path = Path(log.path) / segment_names(log)[-1]
        size = data.draw(st.integers(0, path.stat().st_size))
        content = path.read_bytes()
        log._segments.close()
        path.write_bytes(content[:size] + data.draw(st.binary(max_size=40)))
        lost = len(offsets_of(content)) - len(batch_ends(content[: whole_batches(content, size)])) + 1
        expected = expected[: len(expected) - lost]
        log = reopened(folder, config)
        assert offsets_of(all_records(log)) == expected
    log._segments.close()


@pytest.mark.parametrize("offset", [1, 2**31, 2**63 - 1, -1])
def test_a_clean_start_with_a_damaged_base_offset_and_no_index_is_an_error_or_a_cut(
    tmp_path: Path, offset: int
) -> None:
    """Base offsets are outside of the checksum, and the indexes hold what lies near the segment's own."""
    config = LogConfig(index_interval_bytes=0)
    log, data = written(tmp_path, config)
    log.close()
    path = Path(log.path)
    at = batch_ends(data)[-2]
    for index in path.glob("*.index"):
        index.unlink()
    file = path / segment_names(log)[-1]
    content = bytearray(file.read_bytes())
    assert content == data, "one segment"
    content[at : at + 8] = offset.to_bytes(8, "big", signed=True)
    file.write_bytes(content)
    mended = OnlyReplica.open(str(path), config, now_ms=NOW_MS, clean=True)
    assert mended.size_bytes == at
    mended.close()


@pytest.mark.parametrize("clean", [False, True])
def test_flushed_records_that_are_gone_are_counted(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path)
    for _ in range(5):
        log.append(batch(2), now_ms=NOW_MS)
    log.close()
    os.truncate(Path(log.path) / "00000000000000000000.log", 3 * len(batch(2)))
    log = open_log(tmp_path, clean=clean, recovery_point=10)
    assert (log.log_end_offset, log.recovery.lost_offsets) == (6, 4)


def test_a_partition_that_was_never_written_has_lost_nothing(tmp_path: Path) -> None:
    assert open_log(tmp_path, clean=False, recovery_point=10).recovery.lost_offsets == 0
