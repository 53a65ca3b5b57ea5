"""The log of one partition: append, read, look up, flush, delete. Synchronous; time is an argument."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence

from ..protocol import BatchHeader, ErrorCode, KafkaError
from ._checkpoints import claim_folder
from ._cleanable import CleanableLog
from ._config import LogConfig
from ._records import markers_of
from ._errors import DataFolderError, NoDescriptorsError, UndoError, storage_error
from ._files import OS_FILES, FileSystem
from ._flush import Flush
from ._info import AppendInfo
from ._segments import expired_segments, quiet_roll_is_due, roll_is_due
from ._names import parse_partition_folder
from ._recovery import open_files
from ._segment import Segment
from ._producers import remove_snapshot, write_snapshot
from ._validation import stamp
from ._steps import Steps, at_once
from ._tidy import remove_partition
from ._validation import CheckedBatch, check_batch, check_own

#: Ask delete_records for everything below the high watermark.
UP_TO_HIGH_WATERMARK = -1


class PartitionLog(CleanableLog):
    """One partition's records on disk, with one user at a time.

    Every method that meets a failing disk raises KafkaError KAFKA_STORAGE_ERROR. An append that does leaves
    the log as it was and may be tried again; where that cannot be promised the log goes ``offline`` and
    answers everything with that error until it is opened, and so read from the disk, again.
    """

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
        topic_id: uuid.UUID | None = None,
        keep_damage: bool = False,
        fs: FileSystem = OS_FILES,
    ) -> PartitionLog:
        """Open the folder ``<topic>-<partition>``, or make it for ``topic_id``.

        Unless the last stop was ``clean``, everything from ``recovery_point`` on is verified. Raises
        CorruptLogError for damage that is no torn tail, DataFolderError for a folder that is no partition's,
        and KafkaError KAFKA_STORAGE_ERROR. With ``keep_damage``, for logs that are read by ``salvage``, such
        damage stays where it is, ``recovery.damaged`` tells of it, and the log goes on behind it.
        """
        folder = os.path.abspath(os.fspath(path))
        if parse_partition_folder(os.path.basename(folder)) is None:
            raise DataFolderError(f"{folder} is no partition: its name must be a topic, '-' and a number")
        try:
            known_id = claim_folder(fs, folder, topic_id)
            opened = open_files(
                fs,
                folder,
                config,
                now_ms=now_ms,
                clean=clean,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                keep_damage=keep_damage,
            )
            log = cls(folder, config, known_id, opened, fs)
            if opened.report.found:
                opened.report.lost_offsets = max(recovery_point - log.log_end_offset, 0)
            if not clean:
                log.recovery_point = min(recovery_point, log.log_end_offset)
            log.log_start_offset = max(log.log_start_offset, log_start_offset)
            log._epochs.assign(0, log.log_start_offset)
        except OSError as error:
            raise storage_error(folder, error) from error
        if config.shows_flushed and log.recovery_point < log.log_end_offset:
            log.flush()  # what was recovered is read from the page cache
        return log

    @property
    def size_bytes(self) -> int:
        """Bytes of records on disk and on the way there."""
        return self._segments.size_bytes

    @property
    def flush_is_due(self) -> bool:
        """Whether ``flush.messages`` records or more are not on the disk."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    @property
    def rolled_is_unflushed(self) -> bool:
        """Whether a segment that is complete is not on the disk: until it is, a recovery has to read it."""
        return self.recovery_point < self._segments.active.base_offset

    def reconfigure(self, config: LogConfig) -> None:
        """Go by other settings from now on."""
        self.config = config
        self._show()

    # -- append ----------------------------------------------------------------------------------------------

    def check(self, records: bytes | bytearray, *, now_ms: int) -> Steps[CheckedBatch]:
        """Steps to what ``append`` asks for a client's batch, which may hold millions of records. Raises
        KafkaError with the wire code.
        """
        self._require_online()
        return check_batch(records, self.config, now_ms=now_ms)

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
        """Add batches at the log's end. They are in the page cache when this returns, on the disk after
        ``flush``, which an append that finds it due does itself unless told not to.

        A client sends one data batch, each record of it and its sequence numbers are checked; others (a
        coordinator) may send several and control batches. ``checked`` is what ``check`` gave for a client's.
        A leader epoch older than the log's own newest counts as that one. Raises KafkaError with the wire
        code: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP,
        UNKNOWN_SERVER_ERROR, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE or
        KAFKA_STORAGE_ERROR.
        """
        self._require_online()
        if from_client:
            checked = checked or at_once(check_batch(records, self.config, now_ms=now_ms))
            headers = [checked.header]
        else:
            headers = check_own(records, self.config)
        if from_client and (duplicate := self._producers.duplicate_of(headers[0])) is not None:
            return AppendInfo(
                duplicate.base_offset,
                duplicate.last_offset,
                duplicate.timestamp_ms,
                self.log_start_offset,
                True,
            )
        for header in headers:
            if header.producer_id >= 0:
                self._producers.check(header, sequence=from_client)
        epoch = max(leader_epoch, self.leader_epoch)
        stamp_ms = now_ms if self.config.stamps else None
        newest_ms = None if checked is None else checked.max_timestamp_ms
        data, headers = stamp(records, headers, self.log_end_offset, epoch, stamp_ms, newest_ms)
        try:
            self._epochs.assign(epoch, self.log_end_offset)
            self._roll_if_due(headers, now_ms)
            self._write(data, headers, now_ms)
        except OSError as error:
            self.offline = isinstance(error, UndoError)
            if from_client:
                self.missed(headers[0])
            raise storage_error(self.path, error) from error
        base_offset, self.log_end_offset = self.log_end_offset, headers[-1].next_offset
        self._show()
        if flush_when_due and self.flush_is_due:
            self.flush()
        time_ms = -1 if stamp_ms is None else stamp_ms
        return AppendInfo(base_offset, headers[-1].last_offset, time_ms, self.log_start_offset)

    def missed(self, header: BatchHeader) -> None:
        """A client's batch was not written: those behind it wait for it, if it is its producer's first."""
        self._producers.missed(header)

    def _write(self, data: bytearray, headers: Sequence[BatchHeader], now_ms: int) -> None:
        markers = markers_of(data, headers)
        aborted = None
        for header, marker in zip(headers, markers, strict=True):
            if marker is not None:
                aborted = self._producers.ended_by(header, marker)
        interval = self.config.index_interval_bytes
        self._segments.active.append(data, headers, interval_bytes=interval, aborted=aborted)
        for header, marker in zip(headers, markers, strict=True):
            self._producers.note(header, marker, now_ms)

    def _roll_if_due(self, headers: Sequence[BatchHeader], now_ms: int) -> None:
        if roll_is_due(self._segments.active, self.config, headers, now_ms):
            self._roll(now_ms)

    def roll_for_cleaning(self, now_ms: int, min_bytes: int) -> bool:
        """Begin a new segment if that lets a compaction start with ``min_bytes`` or more; whether it did."""
        self._require_online()
        due = self.config.compacts and self.roll_helps_cleaning(min_bytes)
        if due:
            self._roll_alone(now_ms)
        return due

    def _roll_alone(self, now_ms: int) -> None:
        """Begin a new segment without an append."""
        try:
            self._roll(now_ms)
        except OSError as error:
            self.offline = isinstance(error, UndoError)
            raise storage_error(self.path, error) from error

    def _roll(self, now_ms: int) -> None:
        """Begin a new segment at the log's end. Until its file is there, the old one stays as it is."""
        self._segments.active.seal()
        write_snapshot(self._fs, self.path, self.log_end_offset, self._producers)
        self._segments.add(Segment.create(self._fs, self.path, self.log_end_offset, created_ms=now_ms))

    # -- delete ----------------------------------------------------------------------------------------------

    def delete_records(self, before_offset: int, *, now_ms: int = 0) -> int:
        """Move the log start up to ``before_offset`` and return it; segments that lie below it whole are
        removed.

        UP_TO_HIGH_WATERMARK is allowed. It is durable once the data folder's checkpoints are written. Raises
        KafkaError OFFSET_OUT_OF_RANGE beyond the high watermark.
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
        self._remove_segments(self._segments.count_below(self.log_start_offset), now_ms)
        return self.log_start_offset

    def apply_retention(self, now_ms: int) -> int:
        """Remove segments by age and size and below the log start; how many. If all are too old, the log goes
        on with a new one; and one is begun where nothing came for ``segment.ms``.

        Files that wait for removal since ``file.delete.delay.ms`` go, and so do producers that have expired,
        and their snapshots with the segments that began there.
        """
        self._require_online()
        try:
            if quiet_roll_is_due(self._segments.active, self.config, now_ms):
                self._roll_alone(now_ms)
            count = expired_segments(
                self._segments.all,
                self.config,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=self.high_watermark,
                now_ms=now_ms,
            )
        except OSError as error:
            raise storage_error(self.path, error) from error
        if count == len(self._segments):
            self._roll_alone(now_ms)
        self._remove_segments(count, now_ms)
        self._producers.expire(now_ms, self.config.producer_id_expiration_ms)
        try:
            self._segments.purge(now_ms)
            while self._segments.gone:
                remove_snapshot(self._fs, self.path, self._segments.gone[-1])
                self._segments.gone.pop()
        except OSError as error:
            raise storage_error(self.path, error) from error
        return count

    def _remove_segments(self, count: int, now_ms: int) -> None:
        try:
            self._segments.remove_first(count, now_ms + self.config.file_delete_delay_ms)
            self._epochs.cut_start(max(self.log_start_offset, self._segments.first.base_offset))
        except OSError as error:
            self.offline = isinstance(error, UndoError)
            raise storage_error(self.path, error) from error
        finally:
            self.log_start_offset = max(self.log_start_offset, self._segments.first.base_offset)

    # -- to the disk -----------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Return once everything appended is on the disk; the recovery point moves up to there.

        A failure is a loss: the log goes offline, since what the disk holds is known only after reading it.
        Only NoDescriptorsError is none.
        """
        flush = self.begin_flush()
        flush.run()
        self.end_flush(flush)

    def begin_flush(self) -> Flush:
        """A flush of all that was appended so far: to be run, in any thread, and given to ``end_flush``."""
        self._require_online()
        # a segment that was on the disk when it was rolled has got its last time index entry since then
        segments = self._segments.since(max(self.recovery_point - 1, 0))
        return self._flushing.begin(segments, self.log_end_offset)

    def end_flush(self, flush: Flush) -> None:
        """Take in what became of a flush. Raises KafkaError KAFKA_STORAGE_ERROR if it failed; the log is
        offline then, but for NoDescriptorsError, after which another flush may be begun.
        """
        self._require_online()
        if flush.error is None and flush.missing and not self._segments.replacing:
            # segments have gone or were replaced since it began: rare enough to be done here. Those that
            # compaction is putting in place it has synced itself
            flush = self.begin_flush()
            flush.run()
            flush.check_complete()
        if flush.error is not None:
            failure = storage_error(self.path, flush.error)
            # what could not be opened was not synced: the next flush does it
            self.offline = not isinstance(failure, NoDescriptorsError)
            raise failure from flush.error
        self._flushing.end(flush)
        self.recovery_point = max(self.recovery_point, flush.end_offset)
        self._show()

    def _show(self) -> None:
        """Let readers see what they may."""
        end = self.recovery_point if self.config.shows_flushed else self.log_end_offset
        self.high_watermark = max(self.high_watermark, end)

    def close(self) -> None:
        """Flush, leave indexes and a producer snapshot that a clean start can trust, and give the files back.

        An offline log only gives its files back. Raises KafkaError KAFKA_STORAGE_ERROR: the stop is not clean
        then.
        """
        try:
            if not self.offline:
                self._segments.active.seal()
                write_snapshot(self._fs, self.path, self.log_end_offset, self._producers)
                self.flush()
                self._segments.purge(None)
        except OSError as error:
            raise storage_error(self.path, error) from error
        finally:
            self._segments.close()
            self.offline = True

    def abandon(self) -> None:
        """Give the files back as they are: they are going to be removed."""
        self.offline = True
        self._segments.close()

    def delete(self) -> None:
        """Remove the partition from the disk. Raises KafkaError KAFKA_STORAGE_ERROR."""
        self.abandon()
        remove_partition(self._fs, self.path)
