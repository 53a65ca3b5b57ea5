"""The compacted half of a partition's log: what of it can be compacted, and the beginning of a compaction."""

from __future__ import annotations

from collections.abc import Callable

from .cleaner._filter import LastBatch, Rules
from .cleaner._plan import Cleanable, SegmentInfo, find_cleanable, first_dirty_offset
from .cleaner._swap import Source
from .cleaner._cleaning import Cleaning
from ._readable import ReadableLog
from ._segment import Segment

_NEVER_MS = 2**63 - 1

#: Kafka's default for log.cleaner.dedupe.buffer.size.
DEDUPE_BUFFER_BYTES = 128 << 20


class CleanableLog(ReadableLog):
    """What compaction needs of a log. ``cleaner_offset`` is where the last one ended, 0 if none did: the
    ``cleaner-offset-checkpoint`` of the data folder keeps it.
    """

    cleaner_offset: int = 0

    def cleanable(self, now_ms: int) -> Cleanable:
        """What a compaction would do now, if the log were one that is compacted. Raises OSError and
        CorruptLogError.
        """
        return self._cleanable(self._infos(), now_ms)

    def begin_cleaning(
        self,
        now_ms: int,
        *,
        memory_bytes: int = DEDUPE_BUFFER_BYTES,
        breathe: Callable[[], None] = lambda: None,
    ) -> Cleaning:
        """A compaction whose stages are to be run now, and ``end_cleaning`` at the end; one at a time.

        ``memory_bytes`` bounds what is kept of the keys; ``breathe`` is called every millisecond or so of the
        long stages. Raises KafkaError KAFKA_STORAGE_ERROR, OSError and CorruptLogError.
        """
        self._require_online()
        infos = self._infos()
        cleanable = self._cleanable(infos, now_ms)
        segments = self._segments.all
        source = Source(
            fs=self._fs,
            folder=self.path,
            config=self.config,
            segments=self._segments,
            infos=infos,
            aborted=[entry for segment in segments for entry in segment.txn_index.entries],
            unsynced=[
                segment.file.path
                for segment, info in zip(segments, infos, strict=True)
                if self.recovery_point < info.end_offset <= cleanable.end_offset
            ],
            online=self._is_online,
            breathe=breathe,
        )
        producers = {
            producer.producer_id: LastBatch(
                producer.batches[-1].last_offset if producer.batches else -1, producer.epoch
            )
            for producer in self._producers
        }
        rules = Rules(now_ms, self.config.delete_retention_ms, producers)
        return Cleaning(source, cleanable, rules, memory_bytes)

    def end_cleaning(self, cleaning: Cleaning) -> bool:
        """Take in what became of a compaction; one that was not done is abandoned. Whether it was done."""
        if cleaning.done:
            self.cleaner_offset = cleaning.report.end_offset
        elif not cleaning.abandon():
            self.offline = True
        return cleaning.done

    def roll_helps_cleaning(self, min_bytes: int) -> bool:
        """Whether, with the active segment rolled, ``min_bytes`` and more than min.cleanable.dirty.ratio of
        the log would be dirty.
        """
        start = first_dirty_offset(self.cleaner_offset, self.log_start_offset, self.log_end_offset)
        dirty = sum(segment.size for segment in self._segments.since(start))
        return (
            self._segments.active.size > 0
            and dirty >= min_bytes
            and dirty > self.config.min_cleanable_dirty_ratio * self.size_bytes
        )

    def _is_online(self) -> bool:
        return not self.offline

    def _cleanable(self, infos: list[SegmentInfo], now_ms: int) -> Cleanable:
        start = first_dirty_offset(self.cleaner_offset, self.log_start_offset, self.log_end_offset)
        return find_cleanable(
            infos, self.config, first_dirty=start, last_stable_offset=self.last_stable_offset, now_ms=now_ms
        )

    def _infos(self) -> list[SegmentInfo]:
        segments = self._segments.all
        ends = [*(segment.base_offset for segment in segments[1:]), self.log_end_offset]
        # the first time is read from the file: only where it matters
        lagging = self.config.max_compaction_lag_ms < _NEVER_MS
        return [_info(segment, end, lagging=lagging) for segment, end in zip(segments, ends, strict=True)]


def _info(segment: Segment, end_offset: int, *, lagging: bool) -> SegmentInfo:
    return SegmentInfo(
        segment.base_offset,
        end_offset,
        segment.size,
        segment.index.count * segment.index.ENTRY.size,
        segment.time_index.count * segment.time_index.ENTRY.size,
        segment.first_timestamp_ms if lagging and segment.size else -1,
        segment.max_timestamp[0],
    )
