"""The plan of a compaction: the part of a log that can be compacted, whether it is due, which segments
become one.

Apart from ``segment_infos``, functions take plain numbers and return plain numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.named_tuples import NamedTuple
from .._config import LogConfig
from .._segment import MAX_RELATIVE_OFFSET, Segment

_NEVER_MS = 2**63 - 1


class SegmentInfo(NamedTuple):
    """A segment as the planner sees it: offsets ``base_offset`` .. ``end_offset`` - 1, sizes in bytes, times
    in milliseconds (-1: no batch has one).
    """

    base_offset: int
    end_offset: int
    size: int
    index_bytes: int
    time_index_bytes: int
    first_timestamp_ms: int
    max_timestamp_ms: int


class Cleanable(NamedTuple):
    """The dirty part: offsets ``first_dirty_offset`` .. ``end_offset`` - 1, to be read for newer records of
    keys.

    ``clean_bytes`` lie before them. ``forced``: the oldest dirty record has waited for max.compaction.lag.ms.
    """

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    forced: bool

    @property
    def ratio(self) -> float:
        """Share of dirty bytes in everything that a compaction would read, from 0 to 1."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, min_ratio: float) -> bool:
        """Return whether there is so much to clean, or something that must be cleaned now."""
        return self.dirty_bytes > 0 and (self.forced or self.ratio > min_ratio)


def segment_infos(segments: Sequence[Segment], log_end_offset: int, config: LogConfig) -> list[SegmentInfo]:
    """The segments as the planner sees them. Raises OSError and CorruptLogError."""
    ends = [*(segment.base_offset for segment in segments[1:]), log_end_offset]
    # the first timestamp is read from the file, so only where it matters
    lagging = config.max_compaction_lag_ms < _NEVER_MS
    return [
        SegmentInfo(
            segment.base_offset,
            end_offset,
            segment.size,
            segment.index.count * segment.index.ENTRY.size,
            segment.time_index.count * segment.time_index.ENTRY.size,
            segment.first_timestamp_ms if lagging and segment.size else -1,
            segment.max_timestamp[0],
        )
        for segment, end_offset in zip(segments, ends, strict=True)
    ]


def find_cleanable(
    segments: Sequence[SegmentInfo],
    config: LogConfig,
    *,
    first_dirty: int,
    last_stable_offset: int,
    now_ms: int,
) -> Cleanable:
    """Return the part of ``segments``, the last of which is active, that may be compacted.

    Only whole segments: not the active one, none that reaches above the last stable offset (and so above the
    high watermark or into an open transaction), none from the first on with a record younger than
    min.compaction.lag.ms.
    """
    end = segments[0].base_offset
    for segment in segments[:-1]:
        young = segment.max_timestamp_ms > now_ms - config.min_compaction_lag_ms
        dirty = segment.end_offset > first_dirty
        if segment.end_offset > last_stable_offset or (dirty and young and config.min_compaction_lag_ms > 0):
            break
        end = segment.end_offset
    clean = [s for s in segments[:-1] if s.end_offset <= min(first_dirty, end)]
    dirties = [s for s in segments[:-1] if first_dirty < s.end_offset <= end]
    return Cleanable(
        first_dirty,
        max(end, first_dirty),
        sum(segment.size for segment in clean),
        sum(segment.size for segment in dirties),
        any(_has_waited(segment, config, now_ms) for segment in dirties),
    )


def _has_waited(segment: SegmentInfo, config: LogConfig, now_ms: int) -> bool:
    lag_ms = max(config.max_compaction_lag_ms, config.min_compaction_lag_ms)
    return 0 < segment.first_timestamp_ms < now_ms - lag_ms


def may_join(new: SegmentInfo, following: SegmentInfo, config: LogConfig) -> bool:
    """Return whether a segment that is being written, ``new``, can take in all of its ``following`` source
    too.

    Together they must be no larger than segment.bytes, their indexes no larger than segment.index.bytes, and
    their offsets within reach of an index entry. Apache Kafka adds the sources' sizes before compaction;
    counting what is left of them joins more segments.
    """
    return (
        new.size + following.size <= config.segment_bytes
        and new.index_bytes + following.index_bytes <= config.segment_index_bytes
        and new.time_index_bytes + following.time_index_bytes <= config.segment_index_bytes
        and following.end_offset - 1 - new.base_offset <= MAX_RELATIVE_OFFSET
    )
