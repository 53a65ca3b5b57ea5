"""Putting a log's own offsets, epoch and time into batches."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol import BatchHeader, parse_batch_header, stamp_batch


def stamp(
    records: bytes | bytearray,
    headers: Sequence[BatchHeader],
    base_offset: int,
    leader_epoch: int,
    log_append_time_ms: int | None,
    newest_ms: int | None = None,
) -> tuple[bytearray, list[BatchHeader]]:
    """A copy of ``records``, whose batches follow each other from ``base_offset`` on, and its headers."""
    data = bytearray(records)
    stamped: list[BatchHeader] = []
    position, offset = 0, base_offset
    for header in headers:
        stamp_batch(
            data,
            position,
            base_offset=offset,
            leader_epoch=leader_epoch,
            log_append_time_ms=log_append_time_ms,
            newest_ms=newest_ms,
        )
        stamped.append(parse_batch_header(data, position))
        position += header.size
        offset = stamped[-1].next_offset
    return data, stamped
