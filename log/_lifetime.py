"""When a segment ends, and when it goes."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol import BatchHeader
from ._config import LogConfig
from ._segment import MAX_RELATIVE_OFFSET, Segment
from ._timeindex import NO_TIMESTAMP


def roll_is_due(active: Segment, config: LogConfig, headers: Sequence[BatchHeader], now_ms: int) -> bool:
    """Whether batches go into a new segment: the active one is full, too old, or has no index entry left.

    Age counts from the first batch's timestamp to the newest one here; without timestamps, by the clock. What
    has to be compacted within ``max.compaction.lag.ms`` waits no longer for this.
    """
    if not active.size:
        return False
    if len(headers) == 1:
        newest, size = headers[0].max_timestamp_ms, headers[0].size
    else:
        newest = max(header.max_timestamp_ms for header in headers)
        size = sum(header.size for header in headers)
    first = active.first_timestamp_ms
    age = newest - first if first >= 0 else now_ms - active.created_ms
    return (
        active.size + size > config.segment_bytes
        or age > _longest_ms(config)
        or active.index.is_full(config.segment_index_bytes)
        or active.time_index.is_full(config.segment_index_bytes)
        or headers[-1].last_offset - active.base_offset > MAX_RELATIVE_OFFSET
    )


def quiet_roll_is_due(active: Segment, config: LogConfig, now_ms: int) -> bool:
    """Whether a segment to which nothing more comes is too old by the clock: else it would never be compacted
    or removed. Its age counts from its first batch's timestamp, unless that lies outside of the time for
    which the segment was open.
    """
    if not active.size:
        return False
    first = active.first_timestamp_ms
    begun_ms = first if active.created_ms <= first <= now_ms else active.created_ms
    return now_ms - begun_ms > _longest_ms(config)


def _longest_ms(config: LogConfig) -> int:
    return min(config.segment_ms, config.max_compaction_lag_ms) if config.compacts else config.segment_ms


def expired_segments(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """How many of the first segments are to go, which may be all of them.

    All their records are older than ``retention.ms``, or the log without them still has ``retention.bytes``,
    or they lie below the log start and are not written to any more. What lies above the high watermark stays,
    and so does an empty active segment.
    """
    excess = sum(segment.size for segment in segments) - config.retention_bytes
    ends = [*(segment.base_offset for segment in segments[1:]), log_end_offset]
    count = 0
    for segment, end in zip(segments, ends, strict=True):
        active = segment is segments[-1]
        if end > high_watermark or (active and not segment.size):
            break
        below_start = end <= log_start_offset and not active
        by_size = config.deletes and config.retention_bytes >= 0 and excess >= segment.size
        if not (below_start or by_size or (config.deletes and _is_old(segment, config, now_ms))):
            break
        excess -= segment.size
        count += 1
    return count


def _is_old(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    newest = segment.max_timestamp[0]
    if newest == NO_TIMESTAMP:
        newest = segment.created_ms
    return config.retention_ms >= 0 and now_ms - newest > config.retention_ms
