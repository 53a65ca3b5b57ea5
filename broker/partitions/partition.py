"""A partition as the broker sees it: its log, its leader, and the requests that wait for it to grow.

The files of a partition are created when it is first written, and opened when they are first read: creating a
topic with many partitions is one small write, and a start costs the same however many partitions there are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from ...log import (
    AppendInfo,
    CheckedBatch,
    CorruptLogError,
    DataFolderError,
    NoDescriptorsError,
    PartitionLog,
    ProducerEntry,
    ReadInfo,
    Salvaged,
    Steps,
    check_batch,
    is_full,
)
from ...protocol import BatchHeader, ErrorCode, KafkaError, parse_batch_header
from ...settings import MAX_LONG
from ..event_loop.stopwatch import clock
from ..metrics import Histogram
from ..metrics._traffic import TopicTraffic
from .disk_watch import DiskWatch
from .flusher import Flusher, deletion_error
from .leadership import Leadership
from .marker_order import MarkerOrder
from .topic_config import TopicConfig
from .unverified_writes import UnverifiedWrites

logger = logging.getLogger("kohort.broker")

#: No epoch, no offset.
_NONE = -1

#: Most first batches that are remembered because the folder could not be created.
_MAX_MISSED = 100

_EMPTY = ReadInfo(b"", 0, 0, 0)


ChangedT = TypeVar("ChangedT")


class ChangeListener(Protocol):
    """Whoever is told of the next change of a partition."""

    def tell(self, partition: Partition, /) -> None:
        """Called once when the partition has grown or is gone, until the listener is added again."""


class Waiter(Generic[ChangedT]):
    """Collects the next change of each of some partitions, for a waiting Fetch for example."""

    __slots__ = ("_changed", "_woken")

    def __init__(self) -> None:
        self._changed: dict[ChangedT, None] = {}
        self._woken: asyncio.Future[None] | None = None

    def tell(self, partition: ChangedT, /) -> None:
        """Called once when a partition has changed, until the waiter is added again."""
        self._changed[partition] = None
        self._wake_waiting()

    def interrupt(self) -> None:
        """End the wait that is under way, if there is one."""
        self._wake_waiting()

    async def wait_changed(self) -> list[ChangedT]:
        """Wait for a change, or until ``interrupt``; return the partitions that have changed."""
        if not self._changed:
            self._woken = asyncio.get_running_loop().create_future()
            await self._woken
        return self.take_changed()

    def take_changed(self) -> list[ChangedT]:
        """The partitions that have changed since the last call."""
        changed, self._changed = list(self._changed), {}
        return changed

    def _wake_waiting(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


@dataclass(slots=True, eq=False)
class LocalTopic:
    """The partitions of a topic on this broker, and what they share."""

    name: str
    id: UUID
    config: TopicConfig
    internal: bool = False
    #: By number; only those on this broker.
    partitions: dict[int, Partition] = field(default_factory=dict)
    traffic: TopicTraffic = field(default_factory=TopicTraffic)
    flush_times: Histogram = field(default_factory=Histogram)

    def __repr__(self) -> str:
        return f"LocalTopic({self.name}, {len(self.partitions)} partitions)"


class Files(Protocol):
    """The source of partitions' files, and of their leader epochs."""

    #: Hears of writes that the disk refuses, and of the first that succeed again.
    disk: DiskWatch

    def make_opener(self, partition: Partition, /) -> Callable[[], PartitionLog]:
        """What opens or creates them, in any thread: it raises CorruptLogError, DataFolderError, KafkaError.
        Raises KafkaError.
        """
        ...

    def kept_in_place(self, partition: Partition, /) -> AbstractContextManager[None]:
        """Within it their folder keeps its name, also if the topic is deleted."""
        ...

    def noted_end(self, partition: Partition, /) -> int | None:
        """Where files end that were not read since a clean stop, as that has noted; None if it has not."""
        ...

    def leader_epoch(self, partition: Partition, /) -> int:
        """The epoch in which this broker leads a partition. Raises DataFolderError, KafkaError."""
        ...

    def damaged_partition(self, partition: Partition, /) -> None:
        """Called when a partition cannot be served any more."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class Partition:
    """One partition. ``waiters`` are told of its next change: an append, more to be read, a deletion.

    ``damage`` says why the files cannot be served (None: they can). They are left as they are, and nothing
    is read or written until somebody has repaired them and restarted the broker.
    """

    topic: LocalTopic
    index: int
    _files: Files
    _: KW_ONLY
    on_disk: InitVar[bool]
    #: Other brokers may have replicas: the leader decides what is committed, and there is none at first.
    replicated: bool = False
    #: In the order in which they came.
    waiters: dict[ChangeListener, None] = field(default_factory=dict, init=False)
    unverified: UnverifiedWrites = field(default_factory=UnverifiedWrites, init=False)
    marker_order: MarkerOrder = field(init=False)
    #: The files; None if nothing was ever written, or they have not been needed yet.
    log: PartitionLog | None = field(default=None, init=False)
    _damage: str | None = field(default=None, init=False)
    # None: not read so far
    _leader_epoch: int | None = field(default=0, init=False)
    _unopened: bool = field(default=False, init=False)
    # a thread reads the files
    _being_read: bool = field(default=False, init=False)
    #: What this broker knows of the replicas while it leads a partition of a cluster; else None.
    leadership: Leadership | None = field(default=None, init=False)
    #: The high watermark as the leader has it, which is shown when it is on the disk.
    _told_watermark: int = field(default=0, init=False)
    #: Whether this broker leads it; otherwise clients can neither read nor write.
    is_led: bool = field(init=False)
    #: It was deleted, or moved to other brokers.
    gone: bool = field(default=False, init=False)
    _flusher: Flusher | None = field(default=None, init=False)
    _told: tuple[str, int] | None = field(default=None, init=False)
    # first batches that were refused because the folder could not be created
    _missed: list[BatchHeader] = field(default_factory=list, init=False)

    def __post_init__(self, on_disk: bool) -> None:
        self.marker_order = MarkerOrder(self.producers)
        self.is_led = not self.replicated
        if on_disk:
            self._unopened = True
            self._leader_epoch = 0 if self.replicated else None

    def __repr__(self) -> str:
        return f"Partition({self.topic.name}-{self.index}, {self.log}, {len(self.waiters)} waiting)"

    @property
    def damage(self) -> str | None:
        """The reason why the files are not served; None if they are."""
        return self._damage

    @damage.setter
    def damage(self, found: str) -> None:
        """Set the reason; the owner of the files is told."""
        self._damage = found
        self._files.damaged_partition(self)

    @property
    def size_bytes(self) -> int:
        """Bytes of the log's segments; 0 if it is not open."""
        return 0 if self.log is None else self.log.size_bytes

    @property
    def leader_epoch(self) -> int:
        """The leader epoch under which this broker leads the partition. Raises KafkaError."""
        if self._leader_epoch is None:
            try:
                self._leader_epoch = self._files.leader_epoch(self)
            except (DataFolderError, KafkaError) as error:
                self._on_damage(error)
        return self._leader_epoch or 0

    @property
    def log_start_offset(self) -> int:
        """First offset that the log has; 0 without a log."""
        log = self.open()
        return 0 if log is None else log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record; 0 without a log."""
        log = self.open()
        return 0 if log is None else log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Consumers read up to here; 0 without a log."""
        if (end := self.noted_end) is not None:
            return end
        log = self.open()
        return 0 if log is None else log.high_watermark

    @property
    def noted_end(self) -> int | None:
        """The high watermark of files that were not read since a clean stop; None if they must be read."""
        return self._files.noted_end(self) if self.is_unread and not self.replicated else None

    @property
    def last_stable_offset(self) -> int:
        """Consumers of committed records read up to here; 0 without a log."""
        log = self.open()
        return 0 if log is None else log.last_stable_offset

    # -- in a cluster ----------------------------------------------------------------------------------------

    def lead(self, leader_epoch: int, make: Callable[[int, int], Leadership]) -> None:
        """Lead the partition from now on, under a new leader epoch. ``make`` gets the log's end and the high
        watermark. Raises KafkaError.
        """
        self.check_usable()
        self._end_leadership()
        self._leader_epoch = leader_epoch
        log = self.log
        if log is not None:
            # before the first record: followers find by it the point where they diverge from this log
            try:
                log.begin_epoch(leader_epoch)
            except KafkaError as error:
                # on a full disk the first append does it: nothing is written before
                if log.offline or not is_full(error):
                    raise
                self._files.disk.on_refused(error)
        # with kohort.visibility=flushed more may be committed than is shown
        end = self.log_end_offset
        self.leadership = make(end, min(end, max(self.high_watermark, self._told_watermark)))
        self.is_led = True
        self.commit_up_to(self.leadership.replication.high_watermark)

    def follow(self, leader_epoch: int) -> None:
        """Take records from another broker's log, or wait for a leader."""
        self._end_leadership()
        # what is here stays committed, until it is cut
        end = 0 if self.log is None else self.log.log_end_offset
        self._told_watermark = min(self._told_watermark, end)
        self._leader_epoch = leader_epoch

    def commit_up_to(self, high_watermark: int) -> None:
        """Let records below the high watermark be read, and tell those who wait for them; with
        ``kohort.visibility=flushed`` no more than is on the disk, and the rest after the flush.
        """
        self._told_watermark = high_watermark
        log = self.log
        if log is not None:
            on_disk = log.recovery_point if log.config.shows_flushed else high_watermark
            if log.advance_high_watermark(min(high_watermark, on_disk)):
                self.wake()

    def append_copied(self, records: bytes, *, now_ms: int) -> None:
        """Append batches of the leader's log, as they are. Raises KafkaError."""
        self.check_usable()
        try:
            if self.log is None:
                self.log = self._open_log()
            self.log.append_copied(records, now_ms=now_ms)
        except KafkaError as error:
            self._files.disk.on_refused(error)
            raise
        self._on_written(self.log)

    def truncate(self, offset: int, *, now_ms: int, restart: bool = False) -> None:
        """Truncate the log to ``offset``; with ``restart`` drop everything, and continue at ``offset``.
        Raises KafkaError.
        """
        self.check_usable()
        if self.log is None:
            if not restart:
                return
            self.log = self._open_log()
        if self._flusher is not None:
            self._flusher.close(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the log is cut"))
            self._flusher = None
        try:
            self.log = self.log.replace_truncated(offset, now_ms=now_ms, restart=restart)
        except KafkaError as error:
            self._files.disk.on_refused(error)
            # it goes on with what is left, when there is room
            self._unopened = is_full(error) and self.log.offline
            raise
        except (CorruptLogError, DataFolderError) as error:
            self._on_damage(error)
            self.check_usable()
        self._told_watermark = min(self._told_watermark, offset)

    def cut_damage(self, then: str, *, now_ms: int) -> None:
        """Truncate the log to its first known damage; ``then`` tells people what follows. For a follower,
        whose leader has the records, and for a leader that others could not copy. Raises KafkaError.
        """
        # what is left is verified anew when it is opened again: more may be found
        while (log := self.open()) is not None and (damaged := log.first_damaged_offset) is not None:
            logger.warning(
                "%s-%d is cut from %d to %d, where it is damaged, and %s",
                self.topic.name,
                self.index,
                log.log_end_offset,
                damaged,
                then,
            )
            self.truncate(damaged, now_ms=now_ms)

    def _end_leadership(self) -> None:
        leadership, self.leadership = self.leadership, None
        self.is_led = not self.replicated
        self.unverified = UnverifiedWrites()
        if leadership is not None:
            leadership.end(not_leader(self.topic.name, self.index))
            self.wake()

    def producers(self) -> Iterable[ProducerEntry]:
        """The idempotent and transactional producers that have written here."""
        log = self.open()
        return () if log is None else log.producers

    def producer(self, producer_id: int) -> ProducerEntry | None:
        """Find a producer; None if it has not written here, or has expired."""
        log = self.open()
        return None if log is None else log.producers.get(producer_id)

    def open(self) -> PartitionLog | None:
        """The files, None if there are none or they are damaged. Raises KafkaError if no file can be
        opened, the disk is full, or a thread reads them.
        """
        if self.is_unread:
            if self._being_read:
                raise KafkaError(
                    ErrorCode.NOT_LEADER_OR_FOLLOWER,
                    f"{self.topic.name}-{self.index} is being read: try again",
                )
            try:
                self._take_up(self._open_log())
            except (CorruptLogError, DataFolderError, KafkaError) as error:
                self._on_damage(error)
        return self.log

    @property
    def is_unread(self) -> bool:
        """Return whether the files have not been read so far, since the start or a cut that was
        interrupted.
        """
        return self._unopened and self._damage is None

    async def open_in_thread(self) -> None:
        """As ``open``, beside the event loop; until then the partition is not served. Raises KafkaError."""
        self._being_read = True
        try:
            with self._files.kept_in_place(self):
                log = await asyncio.get_running_loop().run_in_executor(None, self._make_opener())
        except (CorruptLogError, DataFolderError, KafkaError) as error:
            if not self.gone:
                self._on_damage(error)
            return
        finally:
            self._being_read = False
        if self.gone:
            log.abandon()
            return
        log.reconfigure(self.topic.config.log_config())
        self._advance_high_watermark(log)
        self._take_up(log)

    def _take_up(self, log: PartitionLog) -> None:
        self.log, self._unopened = log, False
        if self._leader_epoch is None:
            self._leader_epoch = self._files.leader_epoch(self)

    def _open_log(self) -> PartitionLog:
        log = self._make_opener()()
        self._advance_high_watermark(log)
        return log

    def _make_opener(self) -> Callable[[], PartitionLog]:
        read = self._files.make_opener(self)

        def opened() -> PartitionLog:
            log = read()
            if log.config.shows_flushed and log.recovery_point < log.log_end_offset:
                log.flush()  # recovered records are read from the page cache
            return log

        return opened

    def _advance_high_watermark(self, log: PartitionLog) -> None:
        """Advance the high watermark to everything that was appended or, with ``kohort.visibility=flushed``,
        to everything on the disk, and notify waiting requests. In a cluster the replicas decide.
        """
        if self.replicated:
            self._on_growth(log)
            return
        if log.advance_high_watermark(log.recovery_point if log.config.shows_flushed else log.log_end_offset):
            self.wake()

    def _on_growth(self, log: PartitionLog) -> None:
        leadership = self.leadership
        if leadership is None:
            self.commit_up_to(self._told_watermark)
            return
        leadership.on_append(log.log_end_offset)
        self.commit_up_to(leadership.replication.high_watermark)
        # followers read up to the log's end
        self.wake()

    def _on_damage(self, error: Exception) -> None:
        """Take a damaged partition out of service and serve the others; its files are left for inspection.
        Raises the error if nothing is damaged: no file can be opened now, or the disk is full.
        """
        if isinstance(error, NoDescriptorsError) or (isinstance(error, KafkaError) and is_full(error)):
            raise error
        self.damage = str(error)
        logger.error(
            "%s-%d is not served, its files are left as they are: %s", self.topic.name, self.index, error
        )

    def give_up(self, error: KafkaError) -> None:
        """Take the partition out of service after a disk error, so that another replica leads it; not while
        the disk is full, since it goes on when there is room.
        """
        is_usable = is_full(error) and (self.log is None or self.is_unread or not self.log.offline)
        if error.code is ErrorCode.KAFKA_STORAGE_ERROR and self.damage is None and not is_usable:
            with suppress(NoDescriptorsError):
                self._on_damage(error)

    @property
    def _others_could_lead(self) -> bool:
        return self.leadership is not None and len(self.leadership.replication.isr) > 1

    def check_usable(self) -> None:
        """Raise KafkaError KAFKA_STORAGE_ERROR for a partition whose files are damaged."""
        if self._unopened:
            self.open()
        if self._damage is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._damage)

    def check(self, records: bytes | bytearray, *, now_ms: int) -> Steps[CheckedBatch]:
        """See PartitionLog.check."""
        self.check_usable()
        if self.log is not None:
            return self.log.check(records, now_ms=now_ms)
        return check_batch(records, self.topic.config.log_config(), now_ms=now_ms)

    def append(
        self,
        records: bytes | bytearray,
        *,
        now_ms: int,
        leader_epoch: int | None = None,
        from_client: bool = True,
        checked: CheckedBatch | None = None,
    ) -> AppendInfo:
        """Append batches, wake waiting requests, and plan the flush.

        For a client's batches ``flush_before_answer`` waits for it; others are flushed here if
        ``flush.messages`` asks for that. Raises KafkaError.
        """
        self.check_usable()
        if not self.is_led:
            raise not_leader(self.topic.name, self.index)
        try:
            if self.log is None:
                self.log = self._create_log(records, from_client=from_client)
            info = self.log.append(
                records,
                now_ms=now_ms,
                leader_epoch=self.leader_epoch if leader_epoch is None else leader_epoch,
                from_client=from_client,
                flush_when_due=not from_client,
                checked=checked,
            )
        except KafkaError as error:
            self._files.disk.on_refused(error)
            if self._others_could_lead:
                self.give_up(error)
            raise
        self._advance_high_watermark(self.log)
        self._on_written(self.log)
        return info

    def append_built(self, batch: bytearray, *, now_ms: int) -> int:
        """See PartitionLog.append_built; as ``append`` otherwise."""
        if self.log is None or self._damage is not None or self.replicated:
            if self.leadership is not None:
                self.leadership.replication.check_acks_all()
            return self.append(batch, now_ms=now_ms, from_client=False).base_offset
        try:
            base_offset = self.log.append_built(batch, now_ms=now_ms, leader_epoch=self._leader_epoch or 0)
        except KafkaError as error:
            self._files.disk.on_refused(error)
            raise
        self._advance_high_watermark(self.log)
        self._on_written(self.log)
        return base_offset

    def _on_written(self, log: PartitionLog) -> None:
        """Follow an append that succeeded: the disk may have refused others, and a flush may be due."""
        disk = self._files.disk
        if disk.failing:
            disk.on_accepted()
        self._plan_flush(log)

    def _create_log(self, records: bytes | bytearray, *, from_client: bool) -> PartitionLog:
        try:
            log = self._open_log()
        except (KafkaError, CorruptLogError, DataFolderError) as error:
            if from_client:
                self._missed = [*self._missed[1 - _MAX_MISSED :], parse_batch_header(records)]
            if isinstance(error, KafkaError):
                raise
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        while self._missed:
            log.on_missed(self._missed.pop(0))
        return log

    def flush_before_answer(self, end_offset: int, *, all_replicas: bool) -> Awaitable[None] | None:
        """Return the flush that the response to an append up to ``end_offset`` has to wait for; None: none.

        ``all_replicas``: the request had acks=all. The wait raises KafkaError (KAFKA_STORAGE_ERROR and
        others).
        """
        log = self.log
        if log is None or log.recovery_point >= end_offset:
            return None
        if log.flush_is_due or (all_replicas and self.topic.config.kohort_ack_flush):
            return self._flusher_of(log).wait_flushed(end_offset)
        return None

    def wait_stored(self, end_offset: int, timeout_ms: float) -> Awaitable[object] | None:
        """Return what the response to an append with acks=all up to ``end_offset`` has to wait for: the flush
        that is due, and all in-sync replicas; None: nothing. To be called before anything else runs: the wait
        raises KafkaError (``flush_before_answer``, ``Leadership.replicated``) also if the leadership that
        appended ends meanwhile.
        """
        flush = self.flush_before_answer(end_offset, all_replicas=True)
        if self.leadership is None:
            return flush
        replicated = self.leadership.wait_replicated(end_offset, timeout_ms)
        if replicated is None or flush is None:
            return flush or replicated
        return asyncio.gather(replicated, flush)

    def _plan_flush(self, log: PartitionLog) -> None:
        """Begin or schedule a flush, if there is something to flush and a config asks for it, or if a segment
        was rolled: complete segments are flushed, as in Apache Kafka; a snapshot may be to be written, too.
        """
        config = self.topic.config
        if log.has_snapshot_to_write:
            self._flusher_of(log).save()
        if log.recovery_point >= log.log_end_offset:
            return
        never = config.flush_ms == MAX_LONG
        always = never and config.flush_messages == MAX_LONG and log.config.shows_flushed
        if log.flush_is_due or log.rolled_is_unflushed or always:
            self._flusher_of(log).start()
        elif not never:
            self._flusher_of(log).start_within(config.flush_ms / 1_000)

    def _flusher_of(self, log: PartitionLog) -> Flusher:
        if self._flusher is None:
            self._flusher = Flusher(log, self._on_flushed, self._flush_failed, self.topic.flush_times)
        return self._flusher

    def _on_flushed(self) -> None:
        if self.log is not None:
            self._advance_high_watermark(self.log)
            self._plan_flush(self.log)

    def _flush_failed(self, error: KafkaError) -> None:
        """Take the partition offline: nothing is served until a restart has read the files."""
        logger.error("%s-%d is offline, its disk failed: %s", self.topic.name, self.index, error)
        self.damage = str(error)
        self.wake()

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
        """See PartitionLog.read. Raises KafkaError: OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE."""
        self.check_usable()
        if self.log is not None:
            try:
                return self.log.read(
                    offset,
                    max_bytes,
                    committed=committed,
                    to_log_end=to_log_end,
                    at_least_one=at_least_one,
                    range_bytes=range_bytes,
                )
            except CorruptLogError as error:
                raise self._unreadable_error(error) from error
        if offset != 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.topic.name}-{self.index} is empty")
        return _EMPTY

    def salvage(self, offset: int) -> Iterator[Salvaged]:
        """See PartitionLog.salvage."""
        self.check_usable()
        return iter(()) if self.log is None else self.log.salvage(offset)

    def find_timestamp(self, timestamp_ms: int | None) -> Steps[tuple[int, int, int] | None]:
        """See PartitionLog.find_timestamp; None: the newest timestamp."""
        self.check_usable()
        log = self.log
        if log is None:
            return None
        try:
            if timestamp_ms is not None:
                return (yield from log.find_timestamp(timestamp_ms))
            newest = yield from log.find_newest()
            return None if newest is None else (*newest, self.epoch_at(newest[0]))
        except CorruptLogError as error:
            raise self._unreadable_error(error) from error

    def delete_records(self, before_offset: int, *, now_ms: int) -> int:
        """Delete records below ``before_offset``; return the new log start. Raises KafkaError
        OFFSET_OUT_OF_RANGE.
        """
        log = self.open()
        if log is not None:
            start = log.delete_records(before_offset, now_ms=now_ms)
            self.wake()
            return start
        if before_offset not in (0, _NONE):
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.topic.name}-{self.index} is empty")
        return 0

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at an offset, or of the next one to be written; -1 if unknown."""
        if offset == self.log_end_offset:
            return self.leader_epoch
        log = self.open()
        return _NONE if log is None else log.epoch_for_offset(offset)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The newest epoch up to ``epoch`` that is known and where it ended; (-1, -1) if there is none."""
        if epoch == self.leader_epoch:
            return epoch, self.log_end_offset
        log = self.open()
        return (_NONE, _NONE) if log is None else log.end_offset_for_epoch(epoch)

    def apply_retention(self, now_ms: int) -> None:
        """Delete segments that are too old, too many or before the log start, unless somebody reads them."""
        if self._being_read:
            return
        log = self.open()
        if log is not None:
            start = log.log_start_offset
            log.apply_retention(now_ms)
            if log.log_start_offset != start:
                self.wake()
            self._plan_flush(log)

    def flush(self) -> None:
        """Return once everything is on the disk. Raises KafkaError KAFKA_STORAGE_ERROR."""
        if self.log is not None:
            begun_s = clock()
            self.log.flush()
            self.topic.flush_times.record(clock() - begun_s)
            self._on_flushed()

    def reconfigure(self) -> None:
        """Put the topic's config in force."""
        if self.log is not None:
            self.log.reconfigure(self.topic.config.log_config())
            self._advance_high_watermark(self.log)
            self.wake()
            self._plan_flush(self.log)

    def delete(self) -> None:
        """Close the files, which the caller removes; waiting requests find the topic gone."""
        self.gone = True
        self._end_leadership()
        if self._flusher is not None:
            self._flusher.close(deletion_error(self.topic.name))
        if self.log is not None:
            self.log.abandon()
            self.log = None
        self._unopened = False
        self.wake()

    def close(self) -> None:
        """Flush and close the files. Raises KafkaError KAFKA_STORAGE_ERROR."""
        if self.log is None:
            return
        if self.log.offline and self.damage is None:
            self.damage = f"{self.topic.name}-{self.index}: its disk failed"
        if self._flusher is not None:
            self._flusher.close(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the broker stops: ask the next"))
        self.log.close()

    def _unreadable_error(self, error: CorruptLogError) -> KafkaError:
        """Log a damaged batch once, however often clients ask for it, and return their error. If another
        replica may have it undamaged, take this one out of service.
        """
        if self.replicated and (self.leadership is None or self._others_could_lead):
            self._on_damage(error)
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        place = (error.path, error.position)
        if self._told != place:
            self._told = place
            logger.error("%s-%d cannot be read: %s", self.topic.name, self.index, error)
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error))

    def wake(self) -> None:
        """Tell who waits for a change."""
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters:
            # it may wait again at once
            waiter.tell(self)


def not_leader(topic: str, index: int) -> KafkaError:
    """Return NOT_LEADER_OR_FOLLOWER for a partition."""
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is not led by this broker")
