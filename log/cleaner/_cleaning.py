"""Compaction of one partition, in stages: long ones touch no live object and may run in any thread; those
that change the log are short and run in the log's thread.

The first stage reads the dirty part for the newest offset of each key; the others rewrite the log from its
start to that end, one new segment at a time. Keys that do not fit into memory are left to the next
compaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ._filter import BatchFilter, FilterRules
from ._keys import KeyMap, TransactionWalk
from ._plan import Cleanable
from ._swap import Source, Swap, SwapStage, read_batches


@dataclass(slots=True)
class CleanReport:
    """Figures of a compaction so far. ``end_offset`` is where the next one begins."""

    end_offset: int
    records: int = 0
    keys: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    segments_before: int = 0
    segments_after: int = 0


class Cleaning:
    """One compaction: run its ``stages`` in order. If one raises, ``abandon`` it: the log stays as it was.

    Stages raise OSError and CorruptLogError, and whatever ``breathe`` raises.
    """

    def __init__(self, source: Source, cleanable: Cleanable, rules: FilterRules, memory_bytes: int) -> None:
        self.cleanable = cleanable
        self.report = CleanReport(cleanable.first_dirty_offset)
        #: Nothing is left to do: the log was closed, or lost segments that were to be compacted.
        self.overtaken = False
        #: All stages were run.
        self.done = False
        self._source = source
        self._rules = rules
        self._keys = KeyMap(cleanable.first_dirty_offset, memory_bytes, TransactionWalk(source.aborted))
        self._swap: Swap | None = None
        # as they are now: the log may lose some meanwhile
        self._segments = dict(zip(source.infos, source.segments.all, strict=True))
        self._planned = source.segments.all[:-1]

    def __repr__(self) -> str:
        return f"Cleaning({self._source.folder!r}, {self.cleanable})"

    def stages(self) -> Iterator[SwapStage]:
        """Yield the stages in turn; those that block may run in a thread."""
        source = self._source
        yield SwapStage(True, self._read_keys)
        end = self._keys.next_offset if self._keys.full else self.cleanable.end_offset
        walk = BatchFilter(self._keys, TransactionWalk(source.aborted), self._rules)
        due_ms = self._rules.now_ms + source.config.file_delete_delay_ms
        left = [(info, one) for info, one in self._segments.items() if info.base_offset < end and one.size]
        while left:
            swap = self._swap = Swap(source, left, walk, due_ms)
            for stage in swap.stages():
                yield stage
                if swap.gone:
                    self.overtaken = True
                    return
            self._note_swap(swap)
            left = left[len(swap.sources) :]
        self._swap = None
        self.report.end_offset = end
        self.done = True

    def abandon(self) -> bool:
        """Remove half-written files; return False if this cannot be undone and the log must be reopened."""
        lost = (
            self._swap.is_lost if self._swap is not None else not self._source.segments.holds(self._planned)
        )
        self.overtaken = lost or not self._source.online()
        return self._swap is None or self._swap.abandon()

    def _read_keys(self) -> None:
        for info, segment in self._segments.items():
            if info.base_offset >= self.cleanable.end_offset or self._keys.full:
                break
            if info.end_offset > self.cleanable.first_dirty_offset:
                read_batches(self._source, segment, partial(self._take_keys, info.end_offset))
        self.report.keys = len(self._keys.newest)
        self.report.records = self._keys.records

    def _take_keys(self, end_offset: int, data: bytes, _last: bool) -> int:
        return 0 if self._keys.full else self._keys.add(data, end_offset)

    def _note_swap(self, swap: Swap) -> None:
        self.report.segments_before += len(swap.sources)
        self.report.segments_after += 1
        self.report.bytes_before += sum(segment.size for segment in swap.sources)
        self.report.bytes_after += swap.new_size
