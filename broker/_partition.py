"""A partition as the broker sees it: its log, who leads it, and who waits for it to grow.

The files of a partition are made when it is first written: a topic of many partitions is created by one small
write, and ``__consumer_offsets`` with its fifty costs a start nothing. Until then the log is read as empty.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..log import AppendInfo, CorruptLogError, PartitionLog, ReadInfo, Salvaged
from ..protocol import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ._topics import Topic

logger = logging.getLogger("kohort.broker")

#: No epoch, no offset.
_NONE = -1

_EMPTY = ReadInfo(b"", 0, 0, 0)


class Partition:
    """One partition. ``waiters`` are futures of Fetch requests, woken by the next append and at deletion.

    ``damage`` says what is wrong with files that cannot be served (None: nothing): they are left as they
    are, and nothing is read or written until somebody has seen to them and started the broker again.
    """

    __slots__ = ("_create", "_log", "damage", "dirty_since_ms", "index", "leader_epoch", "topic", "waiters")

    def __init__(
        self,
        topic: Topic,
        index: int,
        log: PartitionLog | None,
        create: Callable[[Partition], PartitionLog],
        damage: str | None = None,
    ) -> None:
        self.damage = damage
        self.topic = topic
        self.index = index
        # each start is a new reign: clients that read ahead of a crash see that the log may have been cut
        self.leader_epoch = log.leader_epoch + 1 if log is not None and log.log_end_offset else 0
        self.waiters: set[asyncio.Future[None]] = set()
        #: When the oldest record that is not yet synced was appended; None if all are.
        self.dirty_since_ms: int | None = None
        self._log = log
        self._create = create

    def __repr__(self) -> str:
        return f"Partition({self.topic.name}-{self.index}, {self._log}, {len(self.waiters)} waiting)"

    @property
    def log(self) -> PartitionLog | None:
        """The files, None if nothing was ever written."""
        return self._log

    @property
    def log_start_offset(self) -> int:
        return 0 if self._log is None else self._log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return 0 if self._log is None else self._log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return 0 if self._log is None else self._log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return 0 if self._log is None else self._log.last_stable_offset

    def check_usable(self) -> None:
        """Raise KafkaError KAFKA_STORAGE_ERROR for a partition whose files are damaged."""
        if self.damage is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.damage)

    def append(
        self,
        records: bytes | bytearray,
        *,
        now_ms: int,
        leader_epoch: int | None = None,
        from_client: bool = True,
    ) -> AppendInfo:
        """Append batches and wake who waits for them. Raises KafkaError."""
        self.check_usable()
        if self._log is None:
            self._log = self._create(self)
        info = self._log.append(
            records,
            now_ms=now_ms,
            leader_epoch=self.leader_epoch if leader_epoch is None else leader_epoch,
            from_client=from_client,
        )
        if self.dirty_since_ms is None:
            self.dirty_since_ms = now_ms
        self.wake()
        return info

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
        to_log_end: bool = False,
        at_least_one: bool = True,
    ) -> ReadInfo:
        """As PartitionLog.read; raises KafkaError OFFSET_OUT_OF_RANGE, and KAFKA_STORAGE_ERROR for files
        that have changed under us.
        """
        self.check_usable()
        if self._log is not None:
            try:
                return self._log.read(
                    offset, max_bytes, committed=committed, to_log_end=to_log_end, at_least_one=at_least_one
                )
            except CorruptLogError as error:
                raise self._unreadable(error) from error
        if offset != 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.topic.name}-{self.index} is empty")
        return _EMPTY

    def salvage(self, offset: int) -> Iterator[Salvaged]:
        """As PartitionLog.salvage."""
        self.check_usable()
        return iter(()) if self._log is None else self._log.salvage(offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int, int] | None:
        try:
            return None if self._log is None else self._log.offset_for_timestamp(timestamp_ms)
        except CorruptLogError as error:
            raise self._unreadable(error) from error

    def max_timestamp(self) -> tuple[int, int] | None:
        try:
            return None if self._log is None else self._log.max_timestamp()
        except CorruptLogError as error:
            raise self._unreadable(error) from error

    def delete_records(self, before_offset: int, *, now_ms: int) -> int:
        """The new log start. Raises KafkaError OFFSET_OUT_OF_RANGE."""
        if self._log is not None:
            return self._log.delete_records(before_offset, now_ms=now_ms)
        if before_offset not in (0, _NONE):
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{self.topic.name}-{self.index} is empty")
        return 0

    def epoch_at(self, offset: int) -> int:
        """The leader epoch that wrote an offset, or will write the next one; -1 if unknown."""
        if offset == self.log_end_offset:
            return self.leader_epoch
        return _NONE if self._log is None else self._log.epoch_for_offset(offset)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The newest epoch up to ``epoch`` that is known and where it ended; (-1, -1) if there is none."""
        if epoch == self.leader_epoch:
            return epoch, self.log_end_offset
        return (_NONE, _NONE) if self._log is None else self._log.end_offset_for_epoch(epoch)

    def apply_retention(self, now_ms: int) -> None:
        if self._log is not None:
            self._log.apply_retention(now_ms)

    def flush(self) -> None:
        if self._log is not None:
            self._log.flush()
        self.dirty_since_ms = None

    def delete(self) -> None:
        """Remove the files; who waits finds the topic gone."""
        if self._log is not None:
            self._log.delete()
        self.wake()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def _unreadable(self, error: CorruptLogError) -> KafkaError:
        logger.error("%s-%d cannot be read: %s", self.topic.name, self.index, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
