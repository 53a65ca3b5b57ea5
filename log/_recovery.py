"""Opening the files of a partition, and mending what an unclean stop left.

Below the recovery point everything was flushed and is trusted; from the segment that holds it on, every batch
is verified and the indexes are made anew. A torn tail, all that can be left of an append that was never
answered, is cut at the last whole batch. Damage that whole batches follow is no torn tail: it is an error,
for cutting there would lose records that were acknowledged.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..protocol import BatchHeader, CorruptBatchError
from ._config import LogConfig
from ._control import parse_marker
from ._epochs import LeaderEpochs
from ._errors import CorruptLogError
from ._files import FileSystem
from ._names import LEADER_EPOCHS, LOG, SNAPSHOT, file_name, offset_of
from ._producers import Producers
from ._scan import Damage, batch_follows, follows, verify_segment
from ._segment import Segment
from ._snapshot import read_snapshot, snapshot_offsets
from ._tidy import tidy


class Cut(NamedTuple):
    """A torn tail that was cut off: which file, at which byte, how many bytes, and why."""

    path: str
    position: int
    bytes_cut: int
    reason: str


@dataclass(slots=True)
class RecoveryReport:
    """What opening a partition did. ``verified_bytes`` is 0 after a clean stop."""

    verified_bytes: int = 0
    cuts: list[Cut] = field(default_factory=list)
    rebuilt_indexes: list[str] = field(default_factory=list)
    removed_files: list[str] = field(default_factory=list)
    swapped_segments: list[str] = field(default_factory=list)


class Opened(NamedTuple):
    """The state of a partition as read from its files."""

    segments: list[Segment]
    log_end_offset: int
    producers: Producers
    epochs: LeaderEpochs
    report: RecoveryReport


class _Opening:
    """The steps of one opening, in their order."""

    def __init__(
        self, fs: FileSystem, folder: str, config: LogConfig, now_ms: int, log_start_offset: int
    ) -> None:
        self.fs = fs
        self.folder = folder
        self.config = config
        self.now_ms = now_ms
        self.log_start_offset = log_start_offset
        self.report = RecoveryReport()
        self.segments: list[Segment] = []
        self.next_offset = 0

    def run(self, *, clean: bool, recovery_point: int) -> Opened:
        names = tidy(self.fs, self.folder, self.report.removed_files, self.report.swapped_segments)
        self._find_segments(names)
        bases = [segment.base_offset for segment in self.segments]
        dirty = len(bases) if clean else max(bisect_right(bases, recovery_point) - 1, 0)
        dirty = self._open_trusted(dirty)
        self._verify_from(dirty)
        if self.next_offset < self.log_start_offset:
            dirty = self._start_over()
        producers, epochs = self._replay(names, dirty)
        for segment in self.segments:
            segment.close()
        return Opened(self.segments, self.next_offset, producers, epochs, self.report)

    def _find_segments(self, names: Sequence[str]) -> None:
        found = (offset_of(name) for name in names if name.endswith(LOG))
        bases = sorted(offset for offset in found if offset is not None)
        if not bases:
            segment = Segment.create(self.fs, self.folder, self.log_start_offset, created_ms=self.now_ms)
            self.segments = [segment]
        else:
            self.segments = [Segment(self.fs, self.folder, base, created_ms=self.now_ms) for base in bases]

    def _open_trusted(self, dirty: int) -> int:
        """Open the indexes of the segments that need no check; the number of the first that does."""
        for number, segment in enumerate(self.segments[:dirty]):
            segment.index.open()
            segment.time_index.open()
            last = number == len(self.segments) - 1
            try:
                self.next_offset = segment.next_offset() if last else self.segments[number + 1].base_offset
                self._require_indexes(segment, self.next_offset)
            except CorruptBatchError:
                self._index_again(segment)
                if last:
                    self.next_offset = segment.next_offset()
            if not segment.txn_index.open():
                return number  # only a replay can make it again
        return dirty

    def _require_indexes(self, segment: Segment, next_offset: int) -> None:
        """Raise CorruptLogError for an index that is missing or cannot be this segment's.

        A time index may be empty only where no batch has a timestamp.
        """
        path = segment.index.file.path
        if not self.fs.exists(path) or not segment.index.fits(segment.size):
            raise CorruptLogError(path, 0, "not the offset index of this segment")
        empty = not segment.time_index.count
        path = segment.time_index.file.path
        if not segment.time_index.fits(next_offset) or (empty and segment.first_timestamp_ms >= 0):
            raise CorruptLogError(path, 0, "not the time index of this segment")

    def _index_again(self, segment: Segment) -> None:
        """Make the indexes from the log; a log that is damaged itself is verified like after a crash."""
        self.report.rebuilt_indexes.append(segment.index.file.path)
        segment.begin_indexes()
        next_offset = segment.base_offset
        try:
            for position, header in segment.headers():
                if not follows(header, next_offset, segment.base_offset):
                    reason = f"offset {header.base_offset} where {next_offset} is due"
                    raise CorruptLogError(segment.file.path, position, reason)
                segment.note_batch(header, position, self.config.index_interval_bytes)
                next_offset = header.next_offset
        except CorruptLogError:
            self._verify(segment, segment.base_offset)
        segment.end_indexes()

    def _verify_from(self, dirty: int) -> None:
        if dirty >= len(self.segments):
            return
        self.next_offset = self.segments[dirty].base_offset
        for number in range(dirty, len(self.segments)):
            segment = self.segments[number]
            if self._verify(segment, max(self.next_offset, segment.base_offset)):
                self._drop_empty_after(number)
                return

    def _verify(self, segment: Segment, next_offset: int) -> bool:
        """Check a segment and make its indexes; True if its tail was cut."""
        segment.begin_indexes()

        def take(header: BatchHeader, position: int) -> None:
            segment.note_batch(header, position, self.config.index_interval_bytes)

        self.next_offset, damage = verify_segment(segment, next_offset, take)
        if damage is not None:
            self._cut(segment, damage)
        self.report.verified_bytes += segment.size
        self.report.rebuilt_indexes.append(segment.index.file.path)
        segment.end_indexes()
        return damage is not None

    def _cut(self, segment: Segment, damage: Damage) -> None:
        following = batch_follows(segment, damage, self.next_offset)
        behind = [s for s in self.segments if s.base_offset > segment.base_offset and s.size]
        if following is None and behind:
            reason = f"{damage.reason}, and {behind[0].file.path} follows"
            raise CorruptLogError(segment.file.path, damage.position, reason + _ADVICE)
        if following is not None:
            reason = f"{damage.reason}, and whole batches follow from byte {following} on"
            raise CorruptLogError(segment.file.path, damage.position, reason + _ADVICE)
        cut = Cut(segment.file.path, damage.position, segment.size - damage.position, damage.reason)
        segment.truncate(damage.position)
        segment.file.sync()
        self.report.cuts.append(cut)

    def _drop_empty_after(self, number: int) -> None:
        for segment in self.segments[number + 1 :]:
            self._remove_segment(segment)
        del self.segments[number + 1 :]

    def _start_over(self) -> int:
        """Begin at the log start, which lies behind what is left: no offset is given twice."""
        self.segments.append(
            Segment.create(self.fs, self.folder, self.log_start_offset, created_ms=self.now_ms)
        )
        for segment in self.segments[:-1]:
            self._remove_segment(segment)
        del self.segments[:-1]
        self.next_offset = self.log_start_offset
        return 0

    def _remove_segment(self, segment: Segment) -> None:
        for path in segment.mark_deleted():
            self.fs.remove(path)
            self.report.removed_files.append(path)

    def _replay(self, names: Sequence[str], dirty: int) -> tuple[Producers, LeaderEpochs]:
        """Producers, epochs, and the transaction indexes of the segments from ``dirty`` on."""
        producers = Producers()
        limit = self.segments[dirty].base_offset if dirty < len(self.segments) else self.next_offset
        start = self._restore(producers, names, limit)
        epochs = LeaderEpochs(self.fs, os.path.join(self.folder, LEADER_EPOCHS))
        epochs.cut_end(self.next_offset)
        for segment in self.segments[dirty:]:
            segment.txn_index.open()
            if segment.txn_index.entries:
                segment.txn_index.truncate(0)
        for number, segment in enumerate(self.segments):
            last = number == len(self.segments) - 1
            if not last and self.segments[number + 1].base_offset <= start:
                continue
            for position, header in segment.headers(segment.index.position_for(start)):
                epochs.assign(header.leader_epoch, header.base_offset)
                if header.base_offset >= start:
                    self._replay_batch(producers, segment, position, header, make_index=number >= dirty)
        return producers, epochs

    def _replay_batch(
        self, producers: Producers, segment: Segment, position: int, header: BatchHeader, *, make_index: bool
    ) -> None:
        marker = None
        if header.control:
            marker = parse_marker(segment.read(position, position + header.size), header)
        if marker is not None and make_index:
            aborted = producers.ended_by(header, marker)
            if aborted is not None:
                segment.txn_index.append(aborted)
        producers.note(header, marker, self.now_ms)

    def _restore(self, producers: Producers, names: Sequence[str], limit: int) -> int:
        """Take the newest snapshot at or below ``limit`` that can be read; the offset to replay from.

        Snapshots behind the log's end are of batches that are gone: they go too.
        """
        start = self.segments[0].base_offset
        for offset in reversed(snapshot_offsets(names)):
            if offset > self.next_offset:
                self._remove(file_name(offset, SNAPSHOT))
            elif offset <= limit:
                try:
                    producers.restore(read_snapshot(self.fs, self.folder, offset), self.now_ms)
                    return max(offset, start)
                except CorruptBatchError:
                    self._remove(file_name(offset, SNAPSHOT))
        return start

    def _remove(self, name: str) -> None:
        path = os.path.join(self.folder, name)
        self.fs.remove(path)
        self.report.removed_files.append(path)


_ADVICE = ": restore the file from a copy, or cut it there by hand and lose what follows"


def open_files(
    fs: FileSystem,
    folder: str,
    config: LogConfig,
    *,
    now_ms: int,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
) -> Opened:
    """Read the partition in ``folder``, making its first segment if it has none.

    Raises CorruptLogError for damage that is no torn tail, and OSError.
    """
    opening = _Opening(fs, folder, config, now_ms, log_start_offset)
    return opening.run(clean=clean, recovery_point=recovery_point)
