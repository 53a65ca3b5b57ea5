"""Record batches, markers and logs for the tests of the log."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, TypeVar

from kohort.log import AppendInfo, LogConfig, PartitionLog
from kohort.log._files import OS_FILES, FileSystem
from kohort.protocol import build_batch, iter_batches

NOW_MS = 1_800_000_000_000
TOPIC_ID = uuid.UUID(int=0x1234_5678)


def batch(
    count: int = 1,
    *,
    timestamp_ms: int = NOW_MS,
    value: bytes = b"value",
    producer_id: int = -1,
    producer_epoch: int | None = None,
    sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """One uncompressed batch of ``count`` records; a producer id alone means epoch 0."""
    epoch = producer_epoch if producer_epoch is not None else -1 if producer_id < 0 else 0
    return bytes(
        build_batch(
            [(b"key-%d" % number, value, ()) for number in range(count)],
            timestamp_ms=timestamp_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


def filled(log: PartitionLog, *counts: int) -> PartitionLog:
    """The log with a batch of each of these numbers of records more."""
    for count in counts:
        log.append(batch(count), now_ms=NOW_MS)
    return log


def marker(producer_id: int, *, committed: bool, producer_epoch: int = 0) -> bytes:
    """The control batch that ends a producer's transaction."""
    return bytes(
        build_batch(
            [(b"\x00\x00\x00" + bytes([committed]), b"\x00\x00\x00\x00\x00\x05", ())],
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=True,
            control=True,
        )
    )


class OnlyReplica(PartitionLog):
    """A log as its partition drives it where there is one replica: all that is appended is committed."""

    @classmethod
    def open(cls, *args: Any, **options: Any) -> OnlyReplica:
        log = super().open(*args, **options)
        assert isinstance(log, OnlyReplica)
        return committed(log)

    def append(self, *args: Any, **options: Any) -> AppendInfo:
        info = super().append(*args, **options)
        committed(self)
        return info


Log = TypeVar("Log", bound=PartitionLog)


def committed(log: Log) -> Log:
    """The log, all that is in it committed."""
    log.advance_high_watermark(log.log_end_offset)
    return log


def open_log(
    folder: Path,
    config: LogConfig | None = None,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    now_ms: int = NOW_MS,
    name: str = "orders-0",
    fs: FileSystem = OS_FILES,
    keep_damage: bool = False,
) -> PartitionLog:
    return OnlyReplica.open(
        folder / name,
        config or LogConfig(),
        now_ms=now_ms,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        topic_id=TOPIC_ID,
        fs=fs,
        keep_damage=keep_damage,
    )


def all_records(log: PartitionLog) -> bytes:
    """Every byte that a reader gets from the log start on."""
    data, offset = b"", log.log_start_offset
    while run := log.read(offset, 1 << 20).records:
        data += run
        offset = offsets_of(run)[-1][1] + 1
    return data


def offsets_of(records: bytes) -> list[tuple[int, int]]:
    """First and last offset of each batch."""
    return [(header.base_offset, header.last_offset) for _, header in iter_batches(records)]


def segment_names(log: PartitionLog) -> list[str]:
    return sorted(path.name for path in Path(log.path).glob("*.log"))
