"""What ``benchmarks.log`` measures of kohort's code alone, each in a process of its own.

``python -m benchmarks._log_alone load RECORDS | look_up GIB COUNT | read ROUNDS``: prints one JSON object.
"""

from __future__ import annotations

import gc
import json
import os
import random
import statistics
import struct
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kohort.consumer.reading import arrow
from kohort.consumer.reading.fetched_records import ChunkReader
from kohort.coordinator.engine.loader import Loader
from kohort.coordinator.groups.shards import group_shard
from kohort.coordinator.settings import GroupSettings
from kohort.log import LogConfig, PartitionLog, at_once, check_batch
from kohort.offsets_topic import OffsetCommitted, OffsetsStore, encode
from kohort.protocol import TopicPartition, build_batch

from ._brokers import cache_folder

NOW_MS = 1_800_000_000_000
BATCH_RECORDS = 2_048
PARTITIONS = 10
#: Of the records that are read, those of a batch, and by how many bytes they are longer or shorter than 100.
READ_RECORDS, READ_BATCH_RECORDS, SPREAD = 20_000, 500, 80
#: Of the log that is looked into: a batch lies at each such step, and the rest of it is a hole in the file.
STEP_BYTES = 256 << 10
SEGMENT_BYTES = 1 << 30


def open_log(folder: Path, name: str, config: LogConfig) -> PartitionLog:
    return PartitionLog.open(folder / name, config, now_ms=NOW_MS, clean=True, topic_id=uuid.UUID(int=7))


def load(count: int) -> dict[str, float]:
    """Offsets of groups with 10 partitions each, as the coordinator loads them; one key is written once."""
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        log = open_log(Path(folder), "__consumer_offsets-0", LogConfig(cleanup_policy="compact"))
        store = OffsetsStore({0: log})
        pairs: list[tuple[bytes, bytes | None]] = []
        for number in range(count):
            group, partition = divmod(number, PARTITIONS)
            name = f"group-{group:06d}"
            pairs.append(encode(OffsetCommitted(name, "orders", partition, number, -1, "", NOW_MS + group)))
            if len(pairs) == BATCH_RECORDS or number == count - 1:
                store.append(0, pairs, NOW_MS)
                pairs = []
        gc.collect()
        gc.disable()  # as a broker loads
        before = resident_bytes()
        shard = group_shard(GroupSettings(), lambda: "")
        loader = Loader(shard, 0, lambda note: sys.exit(str(note)))
        begin = time.perf_counter()
        for _ in loader.run(store.load(0)):
            pass
        took_s = time.perf_counter() - begin
        used = resident_bytes() - before
        groups = len(shard.state.group_ids())
        assert (loader.records, groups) == (count, -(-count // PARTITIONS)), (loader.records, groups)
        return {"load": count / took_s, "bytes": used / count}


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def look_up(gib: float, count: int) -> dict[str, float]:
    """The median time to find the batch of a random offset, in a log of that size and in one of a tenth."""
    return {"large": _look_up(gib, count), "small": _look_up(gib / 10, count)}


def _look_up(gib: float, count: int) -> float:
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        end = sparse_log(Path(folder) / "t-0", int(gib * (1 << 30)))
        log = open_log(Path(folder), "t-0", LogConfig(segment_bytes=SEGMENT_BYTES))
        assert log.log_end_offset == end, (log.log_end_offset, end)
        find: Callable[[int], object] = log._segments._find_batch  # a read would measure the disk too
        dice = random.Random(3)
        offsets = [dice.randrange(end) for _ in range(count)]
        times = []
        for offset in offsets:
            begin = time.perf_counter()
            found = find(offset)
            times.append(time.perf_counter() - begin)
            assert found is not None
        log.close()
        return statistics.median(times) * 1_000


def sparse_log(folder: Path, size: int) -> int:
    """A log of ``size`` bytes with little on the disk, and its indexes; the offset behind its end."""
    folder.mkdir()
    offset = 0
    for _ in range(max(size // SEGMENT_BYTES, 1)):
        stem = folder / f"{offset:020d}"
        base, index = offset, bytearray()
        with stem.with_suffix(".log").open("wb") as file:
            for position in range(0, min(size, SEGMENT_BYTES) // STEP_BYTES * STEP_BYTES, STEP_BYTES):
                header = build_batch([(None, b"", ())] * 10, timestamp_ms=NOW_MS + offset, base_offset=offset)
                struct.pack_into(">i", header, 8, STEP_BYTES - 12)
                os.pwrite(file.fileno(), header[:61], position)
                offset += 10
                if position:
                    index += struct.pack(">ii", offset - 1 - base, position)
            file.truncate(position + STEP_BYTES)
        stem.with_suffix(".index").write_bytes(index)
        stem.with_suffix(".timeindex").write_bytes(
            struct.pack(">qi", NOW_MS + offset - 10, offset - 1 - base)
        )
    # no producers: a start need not read the log for them
    (folder / f"{offset:020d}.snapshot").write_bytes(bytes.fromhex("0001 48674bc7 00000000"))
    return offset


def read(rounds: int) -> dict[str, float]:
    """Processor time in µs for each record of a run of batches: to check it as a broker does, to read it as a
    consumer does, and into Arrow.
    """
    figures = {}
    for sizes, spread in (("equal", 0), ("varied", SPREAD)):
        batches = [_batch(base, spread) for base in range(0, READ_RECORDS, READ_BATCH_RECORDS)]
        fetched = b"".join(batches)
        for name, work in {
            "check": partial(_check, batches),
            "read": partial(_read, fetched),
            "arrow": partial(_read_arrow, fetched),
        }.items():
            best = float("inf")
            for _ in range(rounds):
                begin = time.thread_time()
                count = work()
                best = min(best, time.thread_time() - begin)
                assert count == READ_RECORDS, (name, count)
            figures[f"{name}_{sizes}"] = best / READ_RECORDS * 1_000_000
    return figures


def _batch(base: int, spread: int) -> bytes:
    dice = random.Random(base)
    rows = [
        (b"key-%06d" % number, bytes(100 + dice.randint(-spread, spread)), ())
        for number in range(READ_BATCH_RECORDS)
    ]
    return bytes(build_batch(rows, timestamp_ms=NOW_MS, base_offset=base))


def _check(batches: list[bytes]) -> int:
    config, count = LogConfig(), 0
    for batch in batches:
        # a producer's batch starts at 0
        count += at_once(check_batch(bytes(8) + batch[8:], config, now_ms=NOW_MS)).header.record_count
    return count


def _read(fetched: bytes) -> int:
    reader = ChunkReader(TopicPartition("orders", 0), fetched, 0)
    return sum(map(len, iter(reader.read_batch, None)))


def _read_arrow(fetched: bytes) -> int:
    return sum(batch.num_rows for batch in arrow.decode(fetched, topic="orders", partition=0))


def main() -> None:
    what, *numbers = sys.argv[1:]
    works = {
        "load": lambda: load(int(numbers[0])),
        "look_up": lambda: look_up(float(numbers[0]), int(numbers[1])),
        "read": lambda: read(int(numbers[0])),
    }
    json.dump(works[what](), sys.stdout)


if __name__ == "__main__":
    main()
