"""The log of one partition: append, read, look up, flush, delete. Synchronous; time is an argument."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from ..protocol import (
    BatchHeader,
    CorruptBatchError,
    ErrorCode,
    KafkaError,
    iter_batches,
    stamp_built,
    verify_batch,
)
from ..protocol.named_tuples import NamedTuple
from ._checkpoints import claim_folder
from ._config import LogConfig
from ._cut import CutPlan, plan_cut
from ._errors import (
    CorruptLogError,
    DataFolderError,
    NoDescriptorsError,
    UndoError,
    storage_error,
    storage_errors,
)
from ._files import OS_FILES, FileRange, FileSystem
from ._flush import Flush, Flushing
from ._lookup import find_newest, find_timestamp
from ._names import LEADER_EPOCHS, SEGMENT_SUFFIXES, SNAPSHOT, file_name, offsets_of, parse_partition_folder
from ._producers import (
    MOST_SAVED,
    AppendedBatch,
    Producers,
    finish_saving,
    remove_snapshot,
    saving_path,
    write_saving,
    write_snapshot,
)
from ._records import Marker, markers_of
from ._recovery import Opened, Opening, RecoveryReport
from ._scan import Salvaged, salvage_segments
from ._segment import Segment
from ._segments import EMPTY_RUN, Segments, expired_segments, quiet_roll_is_due, roll_is_due
from ._steps import Result, Steps, ThreadWork, at_once
from ._validation import CheckedBatch, check_batch, check_own, stamp_batches
from .cleaner._cleaning import Cleaning
from .cleaner._filter import FilterRules, LastBatch
from .cleaner._plan import Cleanable, SegmentInfo, find_cleanable, segment_infos
from .cleaner._swap import Source

#: Makes delete_records delete everything below the high watermark.
UP_TO_HIGH_WATERMARK = -1

#: The markers of one batch without a producer id.
_NO_MARKER = (None,)

#: Limits of the search for a producer's earlier batches: offsets before the log's end, reads, bytes per read.
_RECALLED_OFFSETS: Final = 10_000
_RECALLED_READS: Final = 32
_RECALLED_BYTES: Final = 1 << 20

#: Bytes of memory that a snapshot needs for a producer.
_SAVED_BYTES: Final = 200

#: Kafka's default for log.cleaner.dedupe.buffer.size.
DEDUPE_BUFFER_BYTES = 128 << 20


class AppendInfo(NamedTuple):
    """The result of an append.

    ``log_append_time_ms`` is -1 unless the log stamps batches; for a duplicate it is the timestamp of the
    batch that was appended first.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool = False


class ReadInfo(NamedTuple):
    """The result of a read: whole batches. The first one holds the requested offset or, after compaction, the
    next offset that exists.

    ``aborted`` lists (producer id, first offset) of the aborted transactions among the records; only a read
    of committed records fills it.
    """

    records: bytes
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[tuple[int, int]] = ()
    #: File and position of the records, for messages about them.
    file: str = ""
    position: int = 0
    #: The records as a range of the file, unread, if the caller asked for one and it is possible.
    range: FileRange | None = None


class PartitionLog:
    """One partition's records on disk, for one user at a time.

    The owner decides which records are committed, and under which leader epoch new ones are written: it
    passes the leader epoch to ``append`` and calls ``advance_high_watermark``. Readers see nothing above the
    high watermark.

    On a failing disk every method raises KafkaError KAFKA_STORAGE_ERROR. A failed append leaves the log as it
    was and may be tried again. If that cannot be guaranteed, the log goes ``offline``: every method raises
    that error until the log is reopened, which recovers it from the disk.
    """

    def __init__(
        self, path: str, config: LogConfig, topic_id: uuid.UUID, opened: Opened, fs: FileSystem
    ) -> None:
        name = parse_partition_folder(os.path.basename(path))
        assert name is not None
        self.path = path
        self.config = config
        self.topic_id = topic_id
        self.topic, self.partition = name
        #: Findings and repairs of the opening, for the caller to report.
        self.recovery: RecoveryReport = opened.report
        self.offline = False
        self._fs = fs
        self._segments = Segments(fs, path, opened.segments)
        self._flushing = Flushing(fs, path)
        self._producers = opened.producers
        self._epochs = opened.epochs
        self.log_start_offset = self._segments.first.base_offset
        self.log_end_offset = opened.log_end_offset
        #: Offset below which records are committed and may be read; see ``advance_high_watermark``.
        self.high_watermark = self.log_start_offset
        #: Offset below which everything is on the disk.
        self.recovery_point = opened.log_end_offset
        #: End of the last compaction, 0 if there was none: the cleaner-offset-checkpoint of the data folder.
        self.cleaner_offset = 0

    def __repr__(self) -> str:
        return (
            f"PartitionLog({self.topic}-{self.partition}, {self.log_start_offset}..{self.log_end_offset}, "
            f"{len(self._segments)} segments{', offline' if self.offline else ''})"
        )

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        config: LogConfig,
        *,
        now_ms: int,
        clean: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        topic_id: uuid.UUID | None = None,
        keep_damage: bool = False,
        fs: FileSystem = OS_FILES,
    ) -> PartitionLog:
        """Open the folder ``<topic>-<partition>``, or create it for ``topic_id``.

        Unless the last stop was ``clean``, everything from ``recovery_point`` on is verified.
        ``high_watermark`` is the last known one; readers see no further until it advances. Raises
        CorruptLogError for damage other than a torn tail, DataFolderError for a folder that is not a
        partition's, and KafkaError KAFKA_STORAGE_ERROR. With ``keep_damage`` such damage is no error: it
        stays where it is, ``recovery.damaged`` reports it, and the log continues after it.
        """
        folder = os.path.abspath(os.fspath(path))
        if parse_partition_folder(os.path.basename(folder)) is None:
            raise DataFolderError(f"{folder} is no partition: its name must be a topic, '-' and a number")
        with storage_errors(folder):
            known_id = claim_folder(fs, folder, topic_id)
            opening = Opening(fs, folder, config, now_ms, log_start_offset, keep_damage)
            opened = opening.run(None if clean else recovery_point)
            log = cls(folder, config, known_id, opened, fs)
            if opened.report.found:
                opened.report.lost_offsets = max(recovery_point - log.log_end_offset, 0)
            if not clean:
                log.recovery_point = min(recovery_point, log.log_end_offset)
            log.log_start_offset = log.high_watermark = max(log.log_start_offset, log_start_offset)
            log._epochs.assign(0, log.log_start_offset)
        log.advance_high_watermark(high_watermark)
        return log

    # -- what it holds ---------------------------------------------------------------------------------------

    def advance_high_watermark(self, offset: int) -> bool:
        """Let readers see the log's records below ``offset``. Return whether the high watermark advanced: it
        never goes back.
        """
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    @property
    def last_stable_offset(self) -> int:
        """Offset below which no transaction is open: where a reader of committed records has to stop."""
        first_open = self._producers.first_open_offset
        if first_open is None:
            return self.high_watermark
        return min(max(first_open, self.log_start_offset), self.high_watermark)

    @property
    def producers(self) -> Producers:
        """The known producers, with their open transactions."""
        return self._producers

    @property
    def newest_producer_id(self) -> int:
        """The largest known producer id, -1 if there is none."""
        return max((each.producer_id for each in self._producers), default=-1)

    @property
    def leader_epoch(self) -> int:
        """The newest leader epoch that records were written under; 0 before the first."""
        return max(self._epochs.latest, 0)

    @property
    def size_bytes(self) -> int:
        """Size of all segments in bytes, including batches below the log start that are not removed yet."""
        return self._segments.size_bytes

    @property
    def is_damaged(self) -> bool:
        """Return whether the log has known damage; everything before and after it is served."""
        return self.first_damaged_offset is not None

    @property
    def first_damaged_offset(self) -> int | None:
        """The first offset that is known to be damaged or missing; None if there is none."""
        damaged = [segment.damage[0].first_offset for segment in self._segments.all if segment.damage]
        missing = self.recovery.missing_from
        return min(damaged if missing is None else [*damaged, missing], default=None)

    @property
    def flush_is_due(self) -> bool:
        """Return whether ``flush.messages`` records or more are not on the disk."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    @property
    def rolled_is_unflushed(self) -> bool:
        """Return whether a complete segment is not synced, so that a recovery would have to read it."""
        return self.recovery_point < self._segments.active.base_offset

    def reconfigure(self, config: LogConfig) -> None:
        """Apply changed settings."""
        self.config = config

    # -- read ------------------------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
        to_log_end: bool = False,
        at_least_one: bool = True,
        range_bytes: int | None = None,
    ) -> ReadInfo:
        """Read whole batches from the one with ``offset`` on, up to ``max_bytes``; the first one whatever its
        size, unless ``at_least_one`` is False.

        Batches end at the high watermark; with ``committed`` at the last stable offset, with ``to_log_end``
        at the log's end. With ``range_bytes``, records of that many bytes or more are returned as ``range``,
        unread, if the file is one of the operating system's. Raises KafkaError OFFSET_OUT_OF_RANGE outside of
        log start .. log end, and CorruptLogError for a damaged offset; records before and after damage can be
        read.
        """
        self._require_online()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.topic}-{self.partition}: it holds {self.log_start_offset} to "
                f"{self.log_end_offset}",
            )
        limit = self.log_end_offset if to_log_end else self.high_watermark
        if committed:
            limit = self.last_stable_offset
        run = EMPTY_RUN
        while offset < limit:
            try:
                run = self._segments.read(
                    offset,
                    limit,
                    self.log_end_offset,
                    max_bytes,
                    at_least_one=at_least_one,
                    range_bytes=range_bytes,
                )
                break
            except CorruptLogError as error:
                if not self._segments.learn(error, self.log_end_offset):
                    raise
            except OSError as error:
                raise storage_error(self.path, error) from error
        return ReadInfo(
            run.records,
            self.high_watermark,
            self.last_stable_offset,
            self.log_start_offset,
            self._segments.aborted_transactions(offset, run.end_offset)
            if committed and run.end_offset > offset
            else [],
            run.file,
            run.position,
            run.range,
        )

    def salvage(self, offset: int) -> Iterator[Salvaged]:
        """Yield every whole batch of a damaged log from ``offset`` on, and the damage between them."""
        self._require_online()
        with storage_errors(self.path):
            yield from salvage_segments(self._segments.since(offset), offset)

    def find_timestamp(self, timestamp_ms: int) -> Steps[tuple[int, int, int] | None]:
        """Steps to the offset, timestamp and leader epoch of the first record at ``timestamp_ms`` or later,
        or to None.
        """
        steps = find_timestamp(self._segments, timestamp_ms, self.log_start_offset, self.log_end_offset)
        return self._look_up(steps)

    def find_newest(self) -> Steps[tuple[int, int] | None]:
        """Steps to the offset and timestamp of the newest record; None if no record has a timestamp."""
        return self._look_up(find_newest(self._segments))

    def _look_up(self, steps: Steps[Result]) -> Steps[Result]:
        self._require_online()
        try:
            return (yield from steps)
        except OSError as error:
            self._require_online()
            raise storage_error(self.path, error) from error

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The newest leader epoch not after ``epoch`` and its end offset; (-1, -1) if that is not known."""
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch that wrote ``offset``; -1 if unknown."""
        return self._epochs.epoch_at(offset)

    # -- append ----------------------------------------------------------------------------------------------

    def check(self, records: bytes | bytearray, *, now_ms: int) -> Steps[CheckedBatch]:
        """Steps to the ``checked`` argument of ``append``. Raises KafkaError with the wire code."""
        self._require_online()
        return check_batch(records, self.config, now_ms=now_ms)

    def _duplicate_of(self, header: BatchHeader) -> AppendedBatch | None:
        found = self._producers.duplicate_of(header)
        if found is None and (producer := self._producers.to_recall(header)) is not None:
            producer.recall(self._headers_before(producer.batches[0].base_offset))
            found = producer.find(header)
        return found

    def _headers_before(self, offset: int) -> list[BatchHeader]:
        """Headers of the batches before ``offset``, as far back as in-flight requests may reach."""
        headers: list[BatchHeader] = []
        at = max(self.log_start_offset, offset - _RECALLED_OFFSETS)
        # batches behind damage, or beyond these limits, stay unknown
        with suppress(CorruptLogError):
            for _ in range(_RECALLED_READS):
                run = bytes(self.read(at, _RECALLED_BYTES, to_log_end=True).records) if at < offset else b""
                headers += (header for _, header in iter_batches(run) if header.base_offset < offset)
                if not run:
                    break
                at = headers[-1].next_offset if headers else offset
        return headers

    def append(
        self,
        records: bytes | bytearray,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        from_client: bool = True,
        flush_when_due: bool = True,
        checked: CheckedBatch | None = None,
    ) -> AppendInfo:
        """Add batches at the log's end. They are in the page cache when this returns, and on the disk after
        ``flush``, which an append calls if it is due, unless ``flush_when_due`` is False.

        A client sends one data batch, whose records and sequence numbers are checked; other callers, such as
        a coordinator, may send several batches, control batches among them. ``checked`` is the result of
        ``check`` for a client's batch. A leader epoch older than the log's newest is replaced by that one.
        Raises KafkaError with the wire code: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE,
        RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP, UNKNOWN_SERVER_ERROR, OUT_OF_ORDER_SEQUENCE_NUMBER,
        INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE or KAFKA_STORAGE_ERROR.
        """
        self._require_online()
        if from_client:
            checked = checked or at_once(check_batch(records, self.config, now_ms=now_ms))
            records, headers = checked.data, [checked.header]
        else:
            headers = check_own(records, self.config)
        if from_client and (duplicate := self._duplicate_of(headers[0])) is not None:
            return AppendInfo(
                duplicate.base_offset,
                duplicate.last_offset,
                duplicate.timestamp_ms,
                self.log_start_offset,
                True,
            )
        markers = markers_of(records, headers)
        for header, marker in zip(headers, markers, strict=True):
            if header.producer_id >= 0:
                self._producers.check(header, sequence=from_client, marker=marker)
        epoch = max(leader_epoch, self.leader_epoch)
        stamp_ms = now_ms if self.config.stamps else None
        newest_ms = None if checked is None else checked.max_timestamp_ms
        data, headers = stamp_batches(records, headers, self.log_end_offset, epoch, stamp_ms, newest_ms)
        base_offset = self.log_end_offset
        try:
            self._add_batches(data, headers, markers, now_ms)
        except KafkaError:
            if from_client:
                self.on_missed(headers[0])
            raise
        if flush_when_due and self.flush_is_due:
            self.flush()
        time_ms = -1 if stamp_ms is None else stamp_ms
        return AppendInfo(base_offset, headers[-1].last_offset, time_ms, self.log_start_offset)

    def append_built(self, batch: bytearray, *, now_ms: int, leader_epoch: int = 0) -> int:
        """Add a batch fresh from ``build_batch`` and return its base offset. The batch is stamped in place
        and usually not checked again. Otherwise this is ``append`` with ``from_client=False``.
        """
        self._require_online()
        config, base_offset = self.config, self.log_end_offset
        epoch = max(leader_epoch, self.leader_epoch)
        header = stamp_built(batch, base_offset=base_offset, leader_epoch=epoch)
        size = len(batch)
        if (
            header.producer_id >= 0
            or size > config.max_message_bytes
            or size > config.segment_bytes
            or config.stamps
        ):
            info = self.append(batch, now_ms=now_ms, leader_epoch=leader_epoch, from_client=False)
            return info.base_offset
        self._add_batches(batch, [header], _NO_MARKER, now_ms)
        if self.flush_is_due:
            self.flush()
        return base_offset

    # -- as a replica ----------------------------------------------------------------------------------------

    def begin_epoch(self, leader_epoch: int) -> None:
        """Begin a new leader epoch at the log's end, before its first record, so that followers can find
        where their logs diverge from this one. Raises KafkaError KAFKA_STORAGE_ERROR.
        """
        self._require_online()
        with self._changing_log():
            self._epochs.assign(leader_epoch, self.log_end_offset)

    def append_copied(self, records: bytes, *, now_ms: int) -> None:
        """Add batches copied from the leader's log, from this log's end on. Offsets, epochs and timestamps
        stay the leader's. Raises KafkaError CORRUPT_MESSAGE and KAFKA_STORAGE_ERROR; the batches before the
        bad one are added.
        """
        self._require_online()
        for position, end, headers in _batch_runs(records, self.config.segment_bytes):
            due, first = self.log_end_offset, headers[0]
            if first.base_offset < due or first.leader_epoch < 0:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE, f"a batch at offset {first.base_offset} where {due} is due"
                )
            data = bytearray(records[position:end])
            if first.leader_epoch < self._epochs.latest:
                # this broker led from here on, and none of the records that it wrote remain
                with self._changing_log():
                    self._epochs.cut_end(due - 1)
            self._add_batches(data, headers, markers_of(data, headers), now_ms)

    def replace_truncated(self, offset: int, *, now_ms: int, restart: bool = False) -> PartitionLog:
        """Close this log and return the one that replaces it, without the batches that end at or after
        ``offset``. With ``restart`` all batches go, and the new log begins at ``offset``.

        What stays is not read again, unless the log is known to be damaged, much of it goes, or what a
        producer wrote last lies far before the cut.

        Raises CorruptLogError, DataFolderError and KafkaError KAFKA_STORAGE_ERROR; the last one also while a
        compaction swaps its files in: try again. If this log is offline then, the disk refused a step of the
        cut: ``reopened`` returns what is left.
        """
        self._require_online()
        if self._segments.replacing:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} is being compacted: try again")
        plan = None if restart else self._plan_cut(offset)
        self.abandon()
        # of what is cut nothing counts from here on, whichever step the disk refuses
        self.recovery_point = min(self.recovery_point, offset)
        self.high_watermark = min(self.high_watermark, offset)
        if restart:
            self.log_start_offset = offset
        with storage_errors(self.path):
            if plan is not None:
                return self._without_segments(plan)
            if restart:
                for name in self._fs.list(self.path):
                    if name == LEADER_EPOCHS or name.endswith((*SEGMENT_SUFFIXES, SNAPSHOT)):
                        self._fs.remove(os.path.join(self.path, name))
            else:
                self._segments.cut(offset)
                self._epochs.cut_end(offset)
            self._fs.sync_dir(self.path)
        return self.reopen(now_ms=now_ms)

    def reopen(self, *, now_ms: int) -> PartitionLog:
        """Return this log as it is on the disk after a cut, also one that the disk has interrupted. Raises
        CorruptLogError, DataFolderError and KafkaError KAFKA_STORAGE_ERROR.
        """
        log = PartitionLog.open(
            self.path,
            self.config,
            now_ms=now_ms,
            clean=False,
            recovery_point=self.recovery_point,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
            topic_id=self.topic_id,
            keep_damage=True,
            fs=self._fs,
        )
        log.cleaner_offset = min(self.cleaner_offset, log.log_end_offset)
        return log

    def _plan_cut(self, offset: int) -> CutPlan | None:
        """How to cut this log without opening it again; None if that cannot be done."""
        if self.is_damaged:
            return None
        with storage_errors(self.path), suppress(CorruptBatchError):
            plan = plan_cut(self._segments.all, self._producers, offset)
            if plan is not None and plan.end_offset >= self.log_start_offset:
                return plan
        return None

    def _without_segments(self, plan: CutPlan) -> PartitionLog:
        for segment in reversed(plan.going):
            for path in segment.mark_deleted():
                self._fs.remove(path)
        self._segments.purge(None)
        snapshots = offsets_of(self._fs.list(self.path), SNAPSHOT)
        for stale in {each for each in snapshots if each > plan.end_offset}.union(self._segments.gone):
            remove_snapshot(self._fs, self.path, stale)
        # only then is the segment the last one whatever happens, which the next start does not trust
        self._fs.sync_dir(self.path)
        # not synced, which would write everything in the file that is not flushed, for as long as that takes:
        # if power is lost before the file system has noted the cut, some of what went may be back behind
        # newer batches. That is damage, from which a follower copies its log anew
        plan.segment.cut(plan.position, plan.end_offset)
        self._epochs.cut_end(plan.end_offset)
        segments = self._segments.all[: len(self._segments) - len(plan.going)]
        opened = Opened(segments, plan.end_offset, plan.producers, self._epochs, RecoveryReport(found=True))
        log = PartitionLog(self.path, self.config, self.topic_id, opened, self._fs)
        log.recovery_point = min(self.recovery_point, plan.end_offset)
        log.log_start_offset = log.high_watermark = self.log_start_offset
        log.advance_high_watermark(self.high_watermark)
        log.cleaner_offset = min(self.cleaner_offset, plan.end_offset)
        return log

    def on_missed(self, header: BatchHeader) -> None:
        """Record that a client's batch was not written. If it is its producer's first, later ones are refused
        until it arrives again.
        """
        self._producers.on_missed(header)

    def _add_batches(
        self, data: bytearray, headers: Sequence[BatchHeader], markers: Sequence[Marker | None], now_ms: int
    ) -> None:
        """Write batches that are already stamped, from the log's end on. Raises KafkaError
        KAFKA_STORAGE_ERROR.
        """
        try:
            self._epochs.assign(headers[0].leader_epoch, self.log_end_offset)
            active = self._segments.active
            if roll_is_due(active, self.config, headers, now_ms):
                active = self._roll_segment(now_ms)
            aborted = None
            if markers is not _NO_MARKER:
                for header, marker in zip(headers, markers, strict=True):
                    if marker is not None:
                        aborted = self._producers.ended_by(header, marker)
            interval = self.config.index_interval_bytes
            active.append(data, headers, interval_bytes=interval, aborted=aborted)
        except OSError as error:
            self.offline = isinstance(error, UndoError)
            raise storage_error(self.path, error) from error
        if markers is not _NO_MARKER:
            for header, marker in zip(headers, markers, strict=True):
                self._producers.note(header, marker, now_ms)
        self.log_end_offset = headers[-1].last_offset + 1

    def _roll_segment(self, now_ms: int) -> Segment:
        """Begin a new segment at the log's end. Until its file exists, the old one stays active."""
        self._segments.active.seal()
        if len(self._producers) <= MOST_SAVED:
            self._producers.saving = None
            write_snapshot(self._fs, self.path, self.log_end_offset, self._producers)
        else:
            # without it the next start reads more of the log
            self._producers.begin_saving(self.log_end_offset)
        segment = Segment.create(self._fs, self.path, self.log_end_offset, created_ms=now_ms)
        self._segments.add(segment)
        return segment

    @property
    def has_snapshot_to_write(self) -> bool:
        """Return whether ``write_snapshot`` is to be called: of many producers, when a segment was begun."""
        return self._producers.saving is not None

    def write_snapshot(self) -> Steps[None]:
        """Write the snapshot of the last roll while the log goes on; a later roll takes its place. Raises
        KafkaError KAFKA_STORAGE_ERROR: then it is not written, and the next start reads more of the log.
        """
        producers, saving = self._producers, self._producers.saving
        if saving is None:
            return
        size = len(producers) * _SAVED_BYTES
        while saving.step():
            yield None
            if producers.saving is not saving:
                return
        aside = saving_path(self.path, saving)
        try:
            with storage_errors(self.path):
                yield ThreadWork(lambda: write_saving(self._fs, self.path, saving), size)
                # a log that was cut meanwhile may have other records before this offset
                if producers.saving is saving:
                    self._fs.rename(aside, os.path.join(self.path, file_name(saving.offset, SNAPSHOT)))
                else:
                    self._fs.remove(aside)
        finally:
            if producers.saving is saving:
                producers.saving = None

    # -- delete ----------------------------------------------------------------------------------------------

    def delete_records(self, before_offset: int, *, now_ms: int = 0) -> int:
        """Move the log start up to ``before_offset`` and return it; segments entirely below it are removed.

        UP_TO_HIGH_WATERMARK is allowed. The move is durable once the data folder's log starts are written.
        Raises KafkaError OFFSET_OUT_OF_RANGE beyond the high watermark.
        """
        self._require_online()
        if before_offset == UP_TO_HIGH_WATERMARK:
            before_offset = self.high_watermark
        if not 0 <= before_offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"records before {before_offset} cannot be deleted: high watermark is {self.high_watermark}",
            )
        self.log_start_offset = max(self.log_start_offset, before_offset)
        with self._changing_log():
            self._remove_segments(self._segments.count_below(self.log_start_offset), now_ms)
        return self.log_start_offset

    def apply_retention(self, now_ms: int) -> int:
        """Remove segments by age and size and below the log start; return how many. If all are too old, the
        log continues with a new one; a new one also begins if nothing was appended for ``segment.ms``.

        Also removes files that have waited for ``file.delete.delay.ms``, expired producers, and the snapshots
        at the beginning of removed segments.
        """
        self._require_online()
        with self._changing_log():
            if quiet_roll_is_due(self._segments.active, self.config, now_ms):
                self._roll_segment(now_ms)
            count = expired_segments(
                self._segments.all,
                self.config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=self.high_watermark,
                now_ms=now_ms,
            )
            if count == len(self._segments):
                self._roll_segment(now_ms)
            self._remove_segments(count, now_ms)
            self._producers.expire(now_ms, self.config.producer_id_expiration_ms)
            self._segments.purge(now_ms)
            while self._segments.gone:
                remove_snapshot(self._fs, self.path, self._segments.gone[-1])
                self._segments.gone.pop()
        return count

    def _remove_segments(self, count: int, now_ms: int) -> None:
        if count and (saving := self._producers.saving) is not None:
            # it has to be there before records are gone that say the same
            finish_saving(self._fs, self.path, saving)
            self._producers.saving = None
        try:
            self._segments.remove_first(count, now_ms + self.config.file_delete_delay_ms)
            self._epochs.cut_start(max(self.log_start_offset, self._segments.first.base_offset))
        finally:
            self.log_start_offset = max(self.log_start_offset, self._segments.first.base_offset)

    @contextmanager
    def _changing_log(self) -> Iterator[None]:
        """Turn an OSError into KAFKA_STORAGE_ERROR; an UndoError also takes the log offline."""
        try:
            yield
        except OSError as error:
            self.offline = isinstance(error, UndoError)
            raise storage_error(self.path, error) from error

    # -- compaction ------------------------------------------------------------------------------------------

    def cleanable(self, now_ms: int) -> Cleanable:
        """Return what a compaction of this log would cover now. Raises OSError and CorruptLogError."""
        return self._plan_compaction(now_ms)[1]

    def _plan_compaction(self, now_ms: int) -> tuple[Sequence[SegmentInfo], Cleanable]:
        infos = segment_infos(self._segments.all, self.log_end_offset, self.config)
        dirty, stable = self._first_dirty_offset, self.last_stable_offset
        found = find_cleanable(
            infos, self.config, first_dirty=dirty, last_stable_offset=stable, now_ms=now_ms
        )
        return infos, found

    def begin_cleaning(
        self,
        now_ms: int,
        *,
        memory_bytes: int = DEDUPE_BUFFER_BYTES,
        breathe: Callable[[], None] = lambda: None,
    ) -> Cleaning:
        """Begin a compaction: run its stages, then call ``end_cleaning``; one at a time.

        ``memory_bytes`` bounds the memory for keys; ``breathe`` is called every millisecond or so in long
        stages. Raises KafkaError KAFKA_STORAGE_ERROR, OSError and CorruptLogError.
        """
        self._require_online()
        infos, cleanable = self._plan_compaction(now_ms)
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
            online=lambda: not self.offline,
            breathe=breathe,
        )
        producers = {
            producer.producer_id: LastBatch(
                producer.batches[-1].last_offset if producer.batches else -1, producer.epoch
            )
            for producer in self._producers
        }
        rules = FilterRules(now_ms, self.config.delete_retention_ms, producers)
        return Cleaning(source, cleanable, rules, memory_bytes)

    def end_cleaning(self, cleaning: Cleaning) -> bool:
        """End a compaction, and return whether it was completed; otherwise it is abandoned."""
        if cleaning.done:
            self.cleaner_offset = cleaning.report.end_offset
        elif not cleaning.abandon():
            self.offline = True
        return cleaning.done

    def roll_for_cleaning(self, now_ms: int, min_bytes: int) -> bool:
        """Begin a new segment if a compaction could then start, because at least ``min_bytes``, and more than
        min.cleanable.dirty.ratio of the log, would be dirty. Return whether it did.
        """
        self._require_online()
        dirty = sum(segment.size for segment in self._segments.since(self._first_dirty_offset))
        due = (
            self.config.compacts
            and self._segments.active.size > 0
            and dirty >= min_bytes
            and dirty > self.config.min_cleanable_dirty_ratio * self.size_bytes
        )
        if due:
            with self._changing_log():
                self._roll_segment(now_ms)
        return due

    @property
    def _first_dirty_offset(self) -> int:
        """The end of the last compaction; the log start if that is unknown or impossible."""
        known = self.log_start_offset <= self.cleaner_offset <= self.log_end_offset
        return self.cleaner_offset if known else self.log_start_offset

    # -- to the disk -----------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Return once everything appended is on the disk, and advance the recovery point to the log's end.

        If it fails, the log goes offline, since the content of the disk is unknown until it is read again.
        After NoDescriptorsError alone it stays online.
        """
        flush = self.begin_flush()
        flush.run()
        self.end_flush(flush)

    def begin_flush(self) -> Flush:
        """Begin a flush of everything appended so far: run it, in any thread, and pass it to
        ``end_flush``.
        """
        self._require_online()
        # a segment whose records were synced before it was rolled got its last time index entry afterwards
        segments = self._segments.since(max(self.recovery_point - 1, 0))
        return self._flushing.begin_flush(segments, self.log_end_offset)

    def end_flush(self, flush: Flush) -> None:
        """Apply the result of a flush. Raises KafkaError KAFKA_STORAGE_ERROR if it failed; the log then goes
        offline, except after NoDescriptorsError, which another flush may follow.
        """
        self._require_online()
        if flush.error is None and flush.missing and not self._segments.replacing:
            # segments were removed or replaced since it began: rare enough to sync here. Compaction has
            # synced the ones that it puts in place
            flush = self.begin_flush()
            flush.run(complete=True)
        if flush.error is not None:
            failure = storage_error(self.path, flush.error)
            # files that could not be opened were not synced: the next flush syncs them
            self.offline = not isinstance(failure, NoDescriptorsError)
            raise failure from flush.error
        self._flushing.end_flush(flush)
        self.recovery_point = max(self.recovery_point, flush.end_offset)

    def close(self) -> None:
        """Flush, write indexes and a producer snapshot that a clean start can trust, and close the files.

        An offline log only closes its files. Raises KafkaError KAFKA_STORAGE_ERROR; the stop is then not
        clean.
        """
        try:
            with storage_errors(self.path):
                if not self.offline:
                    self._producers.saving = None
                    self._segments.active.seal()
                    write_snapshot(self._fs, self.path, self.log_end_offset, self._producers)
                    self.flush()
                    self._segments.purge(None)
        finally:
            self._segments.close()
            self.offline = True

    def abandon(self) -> None:
        """Close the files as they are, because they are going to be removed."""
        self.offline = True
        self._producers.saving = None
        self._segments.close()

    def _require_online(self) -> None:
        if self.offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{self.path} is closed or its disk failed: look at the disk, then restart the broker",
            )


def _batch_runs(records: bytes, most_bytes: int) -> Iterator[tuple[int, int, list[BatchHeader]]]:
    """Runs of batches that may be added together: of one leader epoch, and small enough for one segment; a
    transactional batch is a run of its own. Yields start and end position and the headers of each run. Raises
    KafkaError CORRUPT_MESSAGE.
    """
    start = end = 0
    run: list[BatchHeader] = []
    try:
        for position, header in iter_batches(records):
            verify_batch(records, header, position)
            if run and (
                header.leader_epoch != run[0].leader_epoch
                or header.base_offset < run[-1].next_offset
                or header.transactional
                or run[-1].transactional
                or position + header.size - start > most_bytes
            ):
                yield start, end, run
                start, run = position, []
            run.append(header)
            end = position + header.size
    except CorruptBatchError as error:
        if run:
            yield start, end, run
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if run:
        yield start, end, run
