"""When a segment ends, and when it goes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

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
    longest = min(config.segment_ms, config.max_compaction_lag_ms) if config.compacts else config.segment_ms
    if len(headers) == 1:
        newest, size = headers[0].max_timestamp_ms, headers[0].size
    else:
        newest = max(header.max_timestamp_ms for header in headers)
        size = sum(header.size for header in headers)
    first = active.first_timestamp_ms
    age = newest - first if first >= 0 else now_ms - active.created_ms
    return (
        active.size + size > config.segment_bytes
        or age > longest
        or active.index.is_full(config.segment_index_bytes)
        or active.time_index.is_full(config.segment_index_bytes)
        or headers[-1].last_offset - active.base_offset > MAX_RELATIVE_OFFSET
    )


def expired_segments(
    segments: Sequence[Segment], config: LogConfig, *, log_start_offset: int, high_watermark: int, now_ms: int
) -> int:
    """How many of the first segments are to go.

    They lie below the log start, or all their records are older than ``retention.ms``, or the log without
    them still has ``retention.bytes``. The active segment stays, and so does what lies above the high
    watermark.
    """
    excess = sum(segment.size for segment in segments) - config.retention_bytes
    count = 0
    for segment, following in pairwise(segments):
        if following.base_offset > high_watermark:
            break
        below_start = following.base_offset <= log_start_offset
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
