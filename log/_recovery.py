"""Opening the files of a partition, and recovery after an unclean stop.

Below the recovery point everything was flushed and is trusted; from the segment that holds it on, every batch
is verified and the indexes are rebuilt. A torn tail, which only an unanswered append can leave, is cut off
after the last whole batch. Damage followed by whole batches is not a torn tail. It is an error, since cutting
there would lose acknowledged records; for logs whose reader skips damage it stays and is reported.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..protocol import BatchHeader, CorruptBatchError
from ..protocol.named_tuples import NamedTuple
from ._checkpoints import UNDEFINED, LeaderEpochs
from ._config import LogConfig
from ._errors import CorruptLogError, DataFolderError
from ._files import FileSystem
from ._leftovers import tidy_folder
from ._names import LEADER_EPOCHS, LOG, SNAPSHOT, file_name, offsets_of
from ._producers import Producers, read_snapshot, stray_snapshots, write_snapshot
from ._records import parse_marker
from ._scan import Chain, Damage, damaged_range, verify_segment
from ._segment import Segment


class Cut(NamedTuple):
    """A torn tail that was cut off: which file, at which byte, how many bytes, and why."""

    path: str
    position: int
    bytes_cut: int
    reason: str


class Damaged(NamedTuple):
    """Damage that was left in the middle of a log: the file, where it begins, and the next whole batch."""

    path: str
    position: int
    resume: int
    reason: str


@dataclass(slots=True)
class RecoveryReport:
    """Findings and repairs of opening a partition. ``verified_bytes`` is 0 after a clean stop.

    ``found``: the folder held segments. ``lost_offsets``: number of offsets below the recovery point that are
    missing at the log's end, although their records had been flushed. ``missing_from``: the first offset that
    is missing between two segments.
    """

    found: bool = field(default=False, compare=False)
    lost_offsets: int = 0
    missing_from: int | None = None
    verified_bytes: int = 0
    cuts: list[Cut] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)
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


@dataclass(slots=True, eq=False)
class Opening:
    """The steps of one opening, in order. With ``keep_damage``, damage other than a torn tail stays as it is,
    and the log continues after it.
    """

    fs: FileSystem
    folder: str
    config: LogConfig
    now_ms: int
    log_start_offset: int
    keep_damage: bool
    report: RecoveryReport = field(default_factory=RecoveryReport)
    segments: list[Segment] = field(default_factory=list)
    next_offset: int = 0
    epochs: LeaderEpochs = field(init=False)
    #: Set if offsets are missing between batches, as after compaction.
    gaps: bool = False
    #: All before it was flushed; None: everything.
    recovery_point: int | None = None

    def run(self, recovery_point: int | None) -> Opened:
        """Read the partition, verify it from ``recovery_point`` on (None: the last stop was clean), and
        create its first segment if it has none.

        Raises OSError, and CorruptLogError for damage other than a torn tail.
        """
        self.recovery_point = recovery_point
        self.epochs = self._open_epochs()
        names = tidy_folder(self.fs, self.folder, self.report.removed_files, self.report.swapped_segments)
        self._find_segments(names)
        bases = [segment.base_offset for segment in self.segments]
        dirty = len(bases) if recovery_point is None else max(bisect_right(bases, recovery_point) - 1, 0)
        dirty = self._open_trusted(dirty)
        self._verify_from(dirty)
        if self.next_offset < self.log_start_offset:
            dirty = self._start_over()
        producers = None
        while producers is None:
            try:
                producers = self._replay_producers(names, dirty)
            except CorruptLogError as error:
                dirty = self._verify_met(error, dirty)
        for segment in self.segments:
            segment.close()
        if self.report.removed_files:
            self.fs.sync_dir(self.folder)
        return Opened(self.segments, self.next_offset, producers, self.epochs, self.report)

    def _open_epochs(self) -> LeaderEpochs:
        """The epochs of the checkpoint; a file that cannot be read is removed, to be rebuilt from the
        batches.
        """
        path = os.path.join(self.folder, LEADER_EPOCHS)
        try:
            return LeaderEpochs(self.fs, path)
        except DataFolderError:
            self._remove_file(LEADER_EPOCHS)
            return LeaderEpochs(self.fs, path, [])

    def _find_segments(self, names: Sequence[str]) -> None:
        bases = offsets_of(names, LOG)
        self.report.found = bool(bases)
        self.segments = [Segment(self.fs, self.folder, base, created_ms=self.now_ms) for base in bases]
        if not bases:
            self._add_segment()

    def _add_segment(self) -> None:
        """Begin a segment at the log start."""
        created = Segment.create(self.fs, self.folder, self.log_start_offset, created_ms=self.now_ms)
        self.segments.append(created)

    def _open_trusted(self, dirty: int) -> int:
        """Open the indexes of the segments before ``dirty``; return the number of the first one to replay."""
        for number, segment in enumerate(self.segments[:dirty]):
            segment.index.open()
            segment.time_index.open()
            last = number == len(self.segments) - 1
            try:
                self.next_offset = self._end_of(segment) if last else self.segments[number + 1].base_offset
                self._require_indexes(segment, self.next_offset)
            except CorruptBatchError:
                if self._verify_segment(number, segment.base_offset):
                    return len(self.segments)
            offsets = range(segment.base_offset, self.next_offset)
            if not segment.txn_index.open() or any(
                entry.last_offset not in offsets for entry in segment.txn_index.entries
            ):
                return number  # only a replay can rebuild it
        return dirty

    def _end_of(self, segment: Segment) -> int:
        """The end of a segment that needs no check. Raises CorruptLogError if the batches after its last
        index entry do not follow each other.
        """
        last = segment.index.last()
        end = segment.base_offset
        steps = segment.steps(last[1] if last is not None else 0)
        if last is not None:
            first = next(steps, None)
            if first is None or first.last_offset != last[0]:
                raise CorruptLogError(segment.index.file.path, 0, "its last entry is not that of a batch")
            end = first.last_offset + 1
        for step in steps:
            if step.base_offset != end:
                reason = f"offset {step.base_offset} where {end} is due"
                raise CorruptLogError(segment.file.path, step.position, reason)
            end = step.last_offset + 1
        return end

    def _require_indexes(self, segment: Segment, next_offset: int) -> None:
        """Raise CorruptLogError for an index that is missing or cannot be this segment's.

        A time index may be empty only if no batch has a timestamp.
        """
        path = segment.index.file.path
        if not self.fs.exists(path) or not segment.index.fits(segment.size):
            raise CorruptLogError(path, 0, "not the offset index of this segment")
        empty = not segment.time_index.count
        path = segment.time_index.file.path
        if not segment.time_index.fits(next_offset) or (empty and segment.first_timestamp_ms >= 0):
            raise CorruptLogError(path, 0, "not the time index of this segment")

    def _verify_from(self, dirty: int) -> None:
        if dirty >= len(self.segments):
            return
        self.next_offset = self.segments[dirty].base_offset
        for number in range(dirty, len(self.segments)):
            if self._verify_segment(number, max(self.next_offset, self.segments[number].base_offset)):
                return

    def _verify_met(self, error: CorruptLogError, dirty: int) -> int:
        """Verify the trusted segment in which damage was found, and those after it; return its number."""
        found = (n for n, segment in enumerate(self.segments[:dirty]) if segment.file.path == error.path)
        number = next(found, None)
        if number is None:
            raise error
        self._verify_from(number)
        return number

    def _verify_segment(self, number: int, next_offset: int) -> bool:
        """Verify a segment and build its indexes; return True if no whole batch follows, so it is now the
        last.
        """
        segment = self.segments[number]
        behind = next((s for s in self.segments[number + 1 :] if s.size), None)
        bound = None if behind is None else behind.base_offset
        chain = Chain(
            segment.base_offset,
            next_offset,
            bound=bound,
            epochs=self.epochs,
            anchored=not self._may_begin_later(number),
        )
        torn = self._walk_batches(number, chain, behind)
        self.gaps = self.gaps or chain.gaps > 0
        self.next_offset = chain.next_offset
        may_miss = self.gaps or self.config.compacts
        if not may_miss and bound is not None and chain.next_offset < bound:
            reason = f"the records of the offsets {chain.next_offset} to {bound - 1} are missing"
            if not self._keep_damage(segment, segment.size, segment.size, reason):
                raise CorruptLogError(segment.file.path, segment.size, reason + _ADVICE)
            if self.report.missing_from is None:
                self.report.missing_from = chain.next_offset
        self.report.verified_bytes += segment.size
        self.report.rebuilt_indexes.append(segment.index.file.path)
        segment.end_indexes()
        # an empty segment after missing offsets was created for batches that are lost
        last = torn or (behind is None and not may_miss and self.next_offset < self.segments[-1].base_offset)
        if last:
            self._remove_segments(self.segments[number + 1 :])  # they hold no batch
        return last

    def _may_begin_later(self, number: int) -> bool:
        """Return whether a segment's first batches may have been compacted away.

        Nothing is compacted in the last segment. Where part of it was flushed it is believed all the same: it
        may have been another one before the log was truncated.
        """
        if not self.config.compacts or number < len(self.segments) - 1:
            return self.config.compacts
        return self.recovery_point is None or self.recovery_point > self.segments[number].base_offset

    def _walk_batches(self, number: int, chain: Chain, behind: Segment | None) -> bool:
        """Verify the batches of a segment and index them; return True if its tail was cut."""
        segment = self.segments[number]
        following_base = self.segments[number + 1].base_offset if number + 1 < len(self.segments) else None
        segment.begin_indexes()
        interval = self.config.index_interval_bytes
        resumed = -1

        def take(header: BatchHeader, position: int) -> None:
            # the index has to lead behind the damage, since no walk can cross it
            segment.note_batch(header, position, -1 if position == resumed else interval)

        position = 0
        while True:
            damage = verify_segment(
                segment,
                chain,
                take,
                position=position,
                gap_at_end=self.gaps or behind is not None,
                end=following_base,
            )
            if damage is None:
                return False
            end_offset = chain.next_offset if behind is None else behind.base_offset
            found = damaged_range(segment, damage, chain.next_offset, end_offset)
            at_end = found.resume == segment.size
            if at_end and behind is None:
                self._cut_segment(segment, damage)
                return True
            if not self._keep_damage(segment, found.position, found.resume, found.reason):
                why = _damage_text(damage, None if at_end else found.resume, behind)
                raise CorruptLogError(segment.file.path, damage.position, why)
            segment.damage.append(found)
            if at_end:
                return False
            position = resumed = found.resume
            chain.step_over()

    def _keep_damage(self, segment: Segment, position: int, resume: int, reason: str) -> bool:
        """Report damage that stays; return False if it must not stay."""
        if self.keep_damage:
            self.report.damaged.append(Damaged(segment.file.path, position, resume, reason))
        return self.keep_damage

    def _cut_segment(self, segment: Segment, damage: Damage) -> None:
        cut = Cut(segment.file.path, damage.position, segment.size - damage.position, damage.reason)
        segment.truncate(damage.position)
        segment.file.sync()
        self.report.cuts.append(cut)

    def _start_over(self) -> int:
        """Begin a segment at the log start, after all remaining records, so that no offset is used twice."""
        self._add_segment()
        self._remove_segments(self.segments[:-1])
        self.next_offset = self.log_start_offset
        return 0

    def _remove_segments(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            for path in segment.mark_deleted():
                self.fs.remove(path)
                self.report.removed_files.append(path)
            self.segments.remove(segment)

    def _replay_producers(self, names: Sequence[str], dirty: int) -> Producers:
        """Rebuild producers, epochs, and the transaction indexes of the segments from ``dirty`` on."""
        producers = Producers()
        limit = self.segments[dirty].base_offset if dirty < len(self.segments) else self.next_offset
        start = self._restore_snapshot(producers, names, limit)
        kept = [offset for offset in offsets_of(names, SNAPSHOT) if offset <= self.next_offset]
        stray = stray_snapshots(kept, (segment.base_offset for segment in self.segments))
        for offset in stray:
            self._remove_file(file_name(offset, SNAPSHOT))
        anew = {offset for offset in kept if offset > limit}.difference(stray)
        self.epochs.cut_end(self.next_offset)
        # without the checkpoint the epoch of every batch has to be read
        first = start if self.epochs.latest != UNDEFINED else self.segments[0].base_offset
        for segment in self.segments[dirty:]:
            segment.txn_index.open()
            if segment.txn_index.entries:
                segment.txn_index.truncate(0)
        for number, segment in enumerate(self.segments):
            last = number == len(self.segments) - 1
            if not last and self.segments[number + 1].base_offset <= first:
                continue
            if segment.base_offset in anew:
                anew.remove(segment.base_offset)
                write_snapshot(self.fs, self.folder, segment.base_offset, producers)
            for position, header in segment.headers(segment.start_for(first)):
                self.epochs.assign(header.leader_epoch, header.base_offset)
                if header.base_offset >= start:
                    self._replay_batch(producers, segment, position, header, make_index=number >= dirty)
        for offset in anew:
            # the newest one, which lies in the last segment
            if offset == self.next_offset:
                write_snapshot(self.fs, self.folder, offset, producers)
            else:
                self._remove_file(file_name(offset, SNAPSHOT))
        return producers

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

    def _restore_snapshot(self, producers: Producers, names: Sequence[str], limit: int) -> int:
        """Load the newest readable snapshot at or below ``limit``; return the offset to replay from.

        Snapshots after the log's end are removed. Those between ``limit`` and the end may describe batches
        that are lost, because pages reach a disk in any order: the replay rewrites them.
        """
        start = self.segments[0].base_offset
        for offset in reversed(offsets_of(names, SNAPSHOT)):
            if offset > self.next_offset:
                self._remove_file(file_name(offset, SNAPSHOT))
            elif offset <= limit:
                try:
                    producers.restore(read_snapshot(self.fs, self.folder, offset), self.now_ms)
                    return max(offset, start)
                except CorruptBatchError:
                    self._remove_file(file_name(offset, SNAPSHOT))
        return start

    def _remove_file(self, name: str) -> None:
        path = os.path.join(self.folder, name)
        self.fs.remove(path)
        self.report.removed_files.append(path)


_ADVICE = ": restore the file from a copy, or cut it there by hand and lose what follows"


def _damage_text(damage: Damage, following: int | None, behind: Segment | None) -> str:
    if following is not None:
        return f"{damage.reason}, and whole batches follow from byte {following} on" + _ADVICE
    assert behind is not None
    return f"{damage.reason}, and {behind.file.path} follows" + _ADVICE
