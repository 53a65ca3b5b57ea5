"""The segments of a partition in offset order, the last one active: when to roll them, and when to remove
them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from ..protocol import BatchHeader
from ..protocol.named_tuples import NamedTuple
from ._config import LogConfig
from ._errors import CorruptLogError
from ._files import FileRange, FileSystem, sync_names
from ._indexes import NO_TIMESTAMP
from ._scan import Damage, damaged_range
from ._segment import MAX_RELATIVE_OFFSET, Segment, Step


class BatchRun(NamedTuple):
    """Whole batches, the offset after the last one, and their file and position."""

    records: bytes
    end_offset: int
    file: str
    position: int
    range: FileRange | None = None


#: No batch at all.
EMPTY_RUN = BatchRun(b"", 0, "", 0)


class Segments:
    """The segments of a log, never empty. Methods raise OSError when the disk fails, and CorruptLogError."""

    __slots__ = ("_bases", "_fs", "_path", "_to_delete", "all", "gone", "replacing")

    def __init__(self, fs: FileSystem, path: str, segments: Sequence[Segment]) -> None:
        self._fs = fs
        self._path = path
        self.all = list(segments)
        self._bases = [segment.base_offset for segment in segments]
        #: A compaction is swapping its files in: nothing is removed meanwhile.
        self.replacing = False
        #: Base offsets of removed segments, whose producer snapshots are no longer needed.
        self.gone: list[int] = []
        # files that were renamed for removal, and when that is due
        self._to_delete: list[tuple[int, str]] = []

    def __repr__(self) -> str:
        return f"Segments({self._bases})"

    def __len__(self) -> int:
        return len(self.all)

    @property
    def first(self) -> Segment:
        """The oldest segment."""
        return self.all[0]

    @property
    def active(self) -> Segment:
        """The segment to which batches are appended."""
        return self.all[-1]

    @property
    def size_bytes(self) -> int:
        """Bytes of all log files."""
        return sum(segment.size for segment in self.all)

    def add(self, segment: Segment) -> None:
        """Make ``segment`` the active one."""
        self.active.close()
        self.all.append(segment)
        self._bases.append(segment.base_offset)

    def since(self, offset: int) -> list[Segment]:
        """The segment that holds ``offset`` and those after it."""
        return self.all[max(bisect_right(self._bases, offset) - 1, 0) :]

    def count_below(self, offset: int) -> int:
        """Return how many segments end at or before ``offset``, without the active one."""
        return bisect_right(self._bases, offset, lo=1) - 1

    def read(
        self,
        offset: int,
        limit: int,
        log_end: int,
        max_bytes: int,
        *,
        at_least_one: bool,
        range_bytes: int | None = None,
    ) -> BatchRun:
        """Read a run of whole batches of one segment from ``offset`` on, all below ``limit``, up to known
        damage.

        A run of ``range_bytes`` or more is a range of the file, if possible. Raises CorruptLogError if there
        is damage at ``offset``.
        """
        self.since(offset)[0].require_intact(offset)
        found = self._find_batch(offset)
        if found is None or found[1].base_offset >= limit:
            return EMPTY_RUN
        segment, first = found
        following = bisect_right(self._bases, segment.base_offset)
        bound = self._bases[following] if following < len(self._bases) else log_end
        end = segment.size
        if limit < bound:
            bound = limit
            step = segment.seek(limit)
            end = step.position if step is not None else end
        damage = segment.damage_from(first.position)
        if damage is not None and damage.position < end:
            end, bound = damage.position, damage.first_offset
        stop, next_base = segment.run_end(first, end, max_bytes)
        if stop - first.position > max_bytes and not at_least_one:
            return EMPTY_RUN
        found_range = None
        if range_bytes is not None and stop - first.position >= range_bytes:
            found_range = segment.range(first.position, stop)
        records = segment.read(first.position, stop) if found_range is None else b""
        end_offset = bound if next_base is None else next_base
        if not segment.damage:
            segment.note_read(end_offset, stop)
        return BatchRun(records, end_offset, segment.file.path, first.position, found_range)

    def learn(self, error: CorruptLogError, log_end: int) -> bool:
        """Add damage that a walk has met; return False if there is nothing new to add. Raises OSError."""
        number = next((n for n, one in enumerate(self.all) if one.file.path == error.path), None)
        if number is None:
            return False
        segment = self.all[number]
        if any(damage.position <= error.position < damage.resume for damage in segment.damage):
            return False
        end = self._bases[number + 1] if number + 1 < len(self._bases) else log_end
        due, at = segment.base_offset, 0
        try:
            for step in segment.steps(segment.start_before(error.position)):
                at = step.position + step.size
                # the checksum does not cover base offsets: ignore one that is out of range
                if due <= step.last_offset < end:
                    due = step.last_offset + 1
        except CorruptLogError as met:
            at = met.position
        if at != error.position or at >= segment.size:
            return False  # the walk can pass these bytes: they are not the damage
        found = damaged_range(segment, Damage(error.position, error.reason), due, end)
        segment.damage = sorted([*segment.damage, found])
        return True

    def aborted_transactions(self, offset: int, end_offset: int) -> list[tuple[int, int]]:
        """Producer id and first offset of the aborted transactions that overlap offset .. end offset - 1."""
        found = []
        for segment in self.since(offset):
            for entry in segment.txn_index.entries:
                if entry.last_offset >= offset and entry.first_offset < end_offset:
                    found.append((entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= end_offset:
                    return found
        return found

    def remove_first(self, count: int, due_ms: int) -> None:
        """Take the first segments from the log; their files are renamed now and removed by ``purge``.

        Does nothing while a compaction is ``replacing`` some; the next retention check removes them.
        """
        assert count < len(self.all), "the active segment stays"
        if self.replacing:
            return
        for _ in range(count):
            self._remove_first(due_ms)
        if count:
            sync_names(self._fs, self._path)

    def _remove_first(self, due_ms: int) -> None:
        segment = self.first
        try:
            renamed = segment.mark_deleted()
        except OSError:
            if not self._fs.exists(segment.file.path):
                # its records are gone; what is left of it is removed at the next start
                self._forget_first()
            raise
        self._to_delete += [(due_ms, path) for path in renamed]
        self._forget_first()

    def _forget_first(self) -> None:
        self.gone.append(self._bases[0])
        del self.all[0], self._bases[0]

    def cut(self, offset: int) -> None:
        """Remove the batches that end at or after ``offset``, and damage that reaches beyond it, the last
        segment first; the next opening rebuilds the indexes.
        """
        for segment in reversed(self.all[1:]):
            if segment.base_offset < offset:
                break
            segment.mark_deleted()
        else:
            segment = self.first
        step = segment.seek(offset)
        # damage in front of the first such batch would stay in front of what is appended next
        damaged = [d.position for d in segment.damage if d.first_offset >= offset or d.next_offset > offset]
        if positions := damaged if step is None else [*damaged, step.position]:
            segment.truncate(min(positions))
            segment.close()

    def holds(self, segments: Sequence[Segment]) -> bool:
        """Return whether these adjacent segments are still part of the log."""
        first = bisect_left(self._bases, segments[0].base_offset)
        found = self.all[first : first + len(segments)]
        return len(found) == len(segments) and all(
            one is other for one, other in zip(found, segments, strict=True)
        )

    def replace(self, segments: Sequence[Segment], new: Segment) -> None:
        """Put one segment in place of adjacent ones that begin at the same offset; touches no file."""
        assert self.holds(segments), "segments that are gone cannot be replaced"
        first = bisect_left(self._bases, segments[0].base_offset)
        self.gone += self._bases[first + 1 : first + len(segments)]
        self.all[first : first + len(segments)] = [new]
        self._bases[first : first + len(segments)] = [new.base_offset]

    def delete_later(self, paths: Sequence[str], due_ms: int) -> None:
        """Let ``purge`` remove files that no longer belong to a segment."""
        self._to_delete = sorted([*self._to_delete, *((due_ms, path) for path in paths)])

    def purge(self, now_ms: int | None) -> None:
        """Remove the files whose removal is due; with None, all that wait."""
        due = len(self._to_delete) if now_ms is None else bisect_left(self._to_delete, (now_ms + 1, ""))
        for _, path in self._to_delete[:due]:
            self._fs.remove(path)
        del self._to_delete[:due]

    def close(self) -> None:
        """Close every file."""
        for segment in self.all:
            segment.close()

    def _find_batch(self, offset: int) -> tuple[Segment, Step] | None:
        """The first batch that ends at or after ``offset``, maybe in a later segment after compaction."""
        for segment in self.since(offset):
            step = segment.seek(offset)
            if step is not None:
                return segment, step
        return None


def roll_is_due(active: Segment, config: LogConfig, headers: Sequence[BatchHeader], now_ms: int) -> bool:
    """Return whether batches go into a new segment: the active one is full, too old, or has no room for an
    index entry.

    The age is the newest timestamp of the batches less that of the segment's first batch; without timestamps,
    the time since the segment was created. In a compacted log ``max.compaction.lag.ms`` bounds it too.
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
    """Return whether a segment that gets no more batches is too old by the clock; otherwise it would never be
    compacted or removed. Its age counts from its first batch's timestamp, or from its creation if that
    timestamp lies outside of the time since then.
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
    """Return how many of the first segments to remove, possibly all.

    All their records are older than ``retention.ms``, or the log without them still has ``retention.bytes``,
    or they lie below the log start and are not active. A segment that reaches above the high watermark stays,
    and so does an empty active one.
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
