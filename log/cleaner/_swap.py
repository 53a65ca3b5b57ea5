"""One new segment in place of several, so that a crash at any point leaves either the old ones or the new
one.

Of the segments 0 and 5 a segment 0 is made. The folder is synced between the steps, so that they reach the
disk in this order:

======================================  =====  =====  ================================  ======================
step                                    0.log  5.log  beside them                       after a crash
======================================  =====  =====  ================================  ======================
written and synced                      old    old    0.log.cleaned                     that is removed
renamed, the .log last                  old    old    0.log.swap                        the next start goes on
its place in memory, old ones renamed                 0.log.swap, 0. and 5.log.deleted  the next start goes on
its final name                          new           0. and 5.log.deleted              those are removed
after file.delete.delay.ms              new
======================================  =====  =====  ================================  ======================
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...protocol import BATCH_OVERHEAD, BatchHeader, CorruptBatchError, parse_batch_header
from ...protocol.named_tuples import NamedTuple
from .._config import LogConfig
from .._errors import CorruptLogError
from .._files import FileSystem
from .._indexes import NO_TIMESTAMP, AbortedTransaction
from .._names import CLEANED, DELETED, SEGMENT_SUFFIXES, SWAP, file_name
from .._segment import Segment
from .._segments import Segments
from ._filter import BatchFilter
from ._plan import SegmentInfo, may_join

#: Bytes read at a time: about a millisecond of work, after which other work runs.
CHUNK_BYTES = 64 << 10

#: Bytes of kept batches that are written at a time.
WRITE_BYTES = 256 << 10

#: The .log is renamed last: a .log.swap has all other files of its segment beside it.
_LOG_LAST = tuple(reversed(SEGMENT_SUFFIXES))


class SwapStage(NamedTuple):
    """A step of a compaction: call ``run``, in any thread if ``apart``, otherwise in the log's thread."""

    apart: bool
    run: Callable[[], None]


@dataclass(slots=True, eq=False)
class Source:
    """The log that is compacted: its parts, and what was true of it when the compaction was planned.

    ``online`` tells whether it still can be used. ``unsynced`` are files with records that may not be on the
    disk. ``breathe`` is called every millisecond or so of work that runs apart; it may raise to end it.
    """

    fs: FileSystem
    folder: str
    config: LogConfig
    segments: Segments
    infos: Sequence[SegmentInfo]
    aborted: Sequence[AbortedTransaction]
    unsynced: list[str]
    online: Callable[[], bool]
    breathe: Callable[[], None]

    def sync(self) -> None:
        """Sync the files that are to be compacted. Raises OSError."""
        while self.unsynced:
            file = self.fs.file(self.unsynced[-1])
            try:
                file.sync()
            finally:
                file.close()
            self.unsynced.pop()


def read_batches(source: Source, segment: Segment, take: Callable[[bytes, bool], int]) -> None:
    """Pass a segment's batches to ``take`` in chunks, with a flag for the last chunk, until it takes no more.

    ``take`` returns how many bytes it used: a batch that a chunk cuts off comes again, whole. The walk ends
    when it uses nothing of a whole batch. The file is reopened. Raises OSError and CorruptLogError.
    """
    file = source.fs.file(segment.file.path)
    position, wanted = 0, CHUNK_BYTES
    try:
        while position < segment.size:
            data = file.read(position, min(wanted, segment.size - position))
            used = take(data, position + len(data) == segment.size)
            position += used
            wanted = CHUNK_BYTES
            if not used:
                wanted = parse_batch_header(data).size
                if wanted > segment.size - position:
                    raise CorruptBatchError(f"a batch of {wanted} bytes is cut short")
                if wanted <= len(data):
                    return
            source.breathe()
    except CorruptBatchError as error:
        raise CorruptLogError(segment.file.path, position + error.position, str(error)) from error
    finally:
        file.close()


class Swap:
    """The creation of one new segment: run its ``stages`` in order.

    It takes the place of the first of the ``candidates``, and of as many more as fit.
    """

    def __init__(
        self,
        source: Source,
        candidates: Sequence[tuple[SegmentInfo, Segment]],
        walk: BatchFilter,
        due_ms: int,
    ) -> None:
        #: The segments that are replaced; known once the new one is written.
        self.sources = [candidates[0][1]]
        #: Retention removed the sources, or the log was closed: nothing is left to do.
        self.gone = False
        self._source = source
        self._walk = walk
        self._due_ms = due_ms
        self._candidates = candidates
        self._new: Segment | None = None
        self._installed = False
        self._old_paths: list[str] = []

    def __repr__(self) -> str:
        first = self.sources[0].base_offset
        return f"Swap({self._source.folder!r}, {len(self.sources)} segments from {first})"

    @property
    def new_size(self) -> int:
        """Bytes of the new segment; 0 if nothing was kept."""
        return 0 if self._new is None else self._new.size

    @property
    def is_lost(self) -> bool:
        """Return whether the log has dropped the sources."""
        return not self._installed and not self._source.segments.holds(self.sources)

    def stages(self) -> Iterator[SwapStage]:
        """Yield the stages in turn; those that block may run in a thread."""
        yield SwapStage(True, self._write_output)
        yield SwapStage(False, self._claim_sources)
        yield SwapStage(True, self._sync_folder)
        yield SwapStage(False, self._install_output)
        yield SwapStage(True, self._retire_sources)
        yield SwapStage(False, self._name_output)
        yield SwapStage(True, self._sync_folder)
        yield SwapStage(False, self._finish_swap)

    def abandon(self) -> bool:
        """Remove the new files; False if the new segment is in use already and cannot be taken out again."""
        if self._installed:
            return False
        if self._new is not None:
            self._new.close()
        # the next start removes what cannot be removed now; the .log goes last, as it was renamed last
        with contextlib.suppress(OSError):
            for tail in (SWAP, CLEANED):
                self._remove_new(tail)
        return True

    # -- apart -----------------------------------------------------------------------------------------------

    def _write_output(self) -> None:
        source = self._source
        self._remove_new(CLEANED)
        first, last = self._candidates[0][1], self._candidates[-1][1]
        new = self._new = Segment.create(
            source.fs, source.folder, first.base_offset, created_ms=last.created_ms, tail=CLEANED
        )
        out = _Output(new, source.config.index_interval_bytes)
        for number, (info, segment) in enumerate(self._candidates):
            following = self._candidates[number + 1][0] if segment is not last else None
            if not self._fill_output(out, segment, info.end_offset, following):
                break
        self.sources = [segment for _, segment in self._candidates[: number + 1]]
        out.flush()
        for aborted in self._walk.take_aborted():
            new.txn_index.append(aborted)
        new.end_indexes()
        new.sync()
        new.close()
        if segment is not last:
            # a record is dropped here because of a later one, which must therefore reach the disk first
            source.sync()

    def _fill_output(
        self, out: _Output, segment: Segment, end_offset: int, following: SegmentInfo | None
    ) -> bool:
        """Write the kept batches of a segment; return whether the next source goes into the same new segment.

        The last batch of the new segment stays at least as a header, so that the file itself tells which
        offsets it covers and which segments it replaces.
        """
        goes_on = False

        def take(data: bytes, last: bool) -> int:
            nonlocal goes_on
            kept = self._walk.take(data, end_offset)
            out.add(kept.data, kept.headers)
            if last:
                goes_on = following is not None and may_join(
                    out.info(end_offset), following, self._source.config
                )
                if not goes_on and kept.last:
                    out.add(kept.last, [parse_batch_header(kept.last)])
            return kept.consumed

        read_batches(self._source, segment, take)
        return goes_on

    def _sync_folder(self) -> None:
        self._source.fs.sync_dir(self._source.folder)

    def _retire_sources(self) -> None:
        """Rename the sources, the first one first, so that after a crash the newer records are still there.

        Stop once the log is closed: its topic may be deleted, and a new topic's files may have these names.
        Producer snapshots are left to retention, which may be removing them at this moment.
        """
        for segment in self.sources:
            if not self._source.online():
                return
            self._old_paths += segment.rename_files(DELETED, SEGMENT_SUFFIXES)
        self._sync_folder()

    # -- where the log is used -------------------------------------------------------------------------------

    def _claim_sources(self) -> None:
        if self._is_overtaken():
            return
        new = self._make_segment()
        new.rename_files(SWAP, _LOG_LAST)
        new.use_tail(SWAP)

    def _install_output(self) -> None:
        if self._is_overtaken():
            return
        segments = self._source.segments
        segments.replace(self.sources, self._make_segment())
        segments.replacing = self._installed = True

    def _name_output(self) -> None:
        if not self._source.online():
            self.gone = True  # the next opening continues from here
            return
        new = self._make_segment()
        new.rename_files("", SEGMENT_SUFFIXES)
        new.use_tail("")

    def _finish_swap(self) -> None:
        for segment in self.sources:
            segment.close()
        self._source.segments.delete_later(self._old_paths, self._due_ms)
        self._source.segments.replacing = self._installed = False

    # -- inside ----------------------------------------------------------------------------------------------

    def _make_segment(self) -> Segment:
        assert self._new is not None, "stages run in order"
        return self._new

    def _is_overtaken(self) -> bool:
        self.gone = not self._source.online() or self.is_lost
        if self.gone:
            self.abandon()
        return self.gone

    def _remove_new(self, tail: str) -> None:
        for suffix in _LOG_LAST:
            name = file_name(self.sources[0].base_offset, suffix + tail)
            self._source.fs.remove(os.path.join(self._source.folder, name))


class _Output:
    """Gathers small runs of batches before they are written."""

    def __init__(self, segment: Segment, interval_bytes: int) -> None:
        self._segment = segment
        self._interval_bytes = interval_bytes
        self._data = bytearray()
        self._headers: list[BatchHeader] = []

    def add(self, data: bytes, headers: Sequence[BatchHeader]) -> None:
        self._data += data
        self._headers += headers
        if len(self._data) >= WRITE_BYTES:
            self.flush()

    def info(self, end_offset: int) -> SegmentInfo:
        """The segment with what was added and one batch header, its indexes at their largest."""
        segment, unwritten = self._segment, len(self._data) + BATCH_OVERHEAD
        entries = unwritten // max(self._interval_bytes, BATCH_OVERHEAD) + 1
        return SegmentInfo(
            segment.base_offset,
            end_offset,
            segment.size + unwritten,
            (segment.index.count + entries) * segment.index.ENTRY.size,
            (segment.time_index.count + entries) * segment.time_index.ENTRY.size,
            NO_TIMESTAMP,
            NO_TIMESTAMP,
        )

    def flush(self) -> None:
        if self._headers:
            self._segment.append(self._data, self._headers, interval_bytes=self._interval_bytes)
            self._data = bytearray()
            self._headers = []
