"""Logs on the disk that fails on command."""

from __future__ import annotations

from kohort.log import LogConfig, PartitionLog
from kohort.protocol import iter_batches
from kohort.testing.faults import FaultyFileSystem
from tests.log.batches import NOW_MS, TOPIC_ID, OnlyReplica

FOLDER = "/data/orders-0"
FIRST = f"{FOLDER}/{0:020d}.log"


def disk(*, page_bytes: int = 4096, capacity_bytes: int | None = None) -> FaultyFileSystem:
    """An empty disk with a data folder."""
    fs = FaultyFileSystem(page_bytes=page_bytes, capacity_bytes=capacity_bytes)
    fs.make_dirs("/data")
    fs.sync_dir("/")
    return fs


def opened(
    fs: FaultyFileSystem,
    config: LogConfig | None = None,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
) -> PartitionLog:
    return OnlyReplica.open(
        FOLDER,
        config or LogConfig(),
        now_ms=NOW_MS,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        topic_id=TOPIC_ID,
        fs=fs,
    )


def batches_of(data: bytes) -> list[tuple[int, int, bytes]]:
    """First and last offset of each batch, and its bytes."""
    return [
        (header.base_offset, header.last_offset, data[position : position + header.size])
        for position, header in iter_batches(data)
    ]


def stored(log: PartitionLog) -> list[tuple[int, int, bytes]]:
    """Every batch that a reader gets."""
    found: list[tuple[int, int, bytes]] = []
    offset = log.log_start_offset
    while run := log.read(offset, 1 << 20).records:
        found += batches_of(run)
        offset = found[-1][1] + 1
    return found
