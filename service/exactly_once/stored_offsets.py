"""Offsets stored with the results, in one transaction of the user's own database.

Each call of a handler is one transaction: lock the partition's row, skip records that are stored as done,
call the handler with the connection, store the next offset, commit. So a record's effect and its offset are
stored together or not at all. A second handler of the record (in a member that was thought dead, a retry, the
next owner) finds the offset and does nothing, so members need no fencing.

A row is about one log, identified by the leader epoch and the topic id beside the offset. After a truncation,
or when the topic is created again, new records may have offsets that are stored as done; they are handled all
the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from ...client.threads import DaemonThreads
from ...consumer.errors import ConsumerError
from ...consumer.events import (
    CallbackFailed,
    Event,
    LogTruncated,
    OffsetReset,
    PartitionsLost,
    PartitionsRevoked,
)
from ...protocol import KohortError, TopicPartition
from .sinks import Sink, StoredOffset

if TYPE_CHECKING:
    from ...consumer.consumer import AsyncGroupConsumer
    from ...consumer.record import Record


#: Longest time to ask brokers for ids of topics; then the known ids are used.
METADATA_TIMEOUT_S = 5.0

log = logging.getLogger("kohort.service")


@dataclass(slots=True, eq=False)
class _Log:
    """The log that the records of one partition session are from.

    ``other_from`` is the offset from which on it is another log than the session before had; None: the same.
    ``begun``: the row is about this one.
    """

    topic_id: str | None = None
    leader_epoch: int = -1
    other_from: int | None = None
    begun: bool = False

    def is_another(self, topic_id: str | None) -> bool:
        """Return whether a row with this topic id is about a deleted topic of the name, or a later one.

        A handler that was slow may have stored it although the partition has moved on.
        """
        return None not in (topic_id, self.topic_id) and topic_id != self.topic_id


class Once:
    """One group's use of a sink. A session is a delivery of a partition, see ``Record.session_id``."""

    def __init__(self, sink: Sink, group: str) -> None:
        self.sink = sink
        self.group = group
        self._logs: dict[tuple[TopicPartition, int], _Log] = {}
        #: The last session of each partition.
        self._newest: dict[TopicPartition, _Log] = {}
        #: The rows as this member has last read or written them.
        self._rows: dict[TopicPartition, StoredOffset] = {}

    def positions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, StoredOffset]:
        """The stored offsets to go on at, of partitions that have been begun."""
        found = self.sink.positions(self.group, partitions)
        self._rows.update(found)
        return found

    def begin(
        self, partition: TopicPartition, session: int, topic_id: str | None, *, other_from: int | None = None
    ) -> None:
        """Called before records of a new session.

        From ``other_from`` on the records are not those of before, even if the stored offset is beyond them.
        """
        # handlers may still be at records of the session before
        for key in [key for key in self._logs if key[0] == partition][:-1]:
            del self._logs[key]
        log = _Log(topic_id, other_from=other_from)
        self._logs[partition, session] = self._newest[partition] = log

    def on_reached(self, partition: TopicPartition, session: int, leader_epoch: int) -> None:
        """Note that records up to this leader epoch have been delivered in the session."""
        if (log := self._logs.get((partition, session))) is not None:
            log.leader_epoch = leader_epoch

    def run(self, records: Sequence[Record], handle: Callable[[list[Record], object], None]) -> None:
        """``handle(records, connection)`` with those of one partition's records that are not done yet."""
        try:
            self._run(records, handle)
        except _RowAppearedError:
            # another member inserted the partition's row between the read and the insert: read again
            self._run(records, handle)

    def _run(self, records: Sequence[Record], handle: Callable[[list[Record], object], None]) -> None:
        first = records[0]
        partition = first.topic_partition
        log = self._logs.get((partition, first.session_id)) or _Log()
        with self.sink.transaction() as connection:
            row = self.sink.lock(connection, self.group, partition)
            done_before = -1 if row is None or log.is_another(row.topic_id) else row.next_offset
            # a row that another member has changed since is about the log as that member knows it
            if log.other_from is not None and not log.begun and row == self._rows.get(partition):
                done_before = min(done_before, log.other_from)
            left = [record for record in records if record.offset >= done_before]
            left = self._still_there(left, log, self._newest.get(partition, log))
            if not left:
                return
            if row is None:
                begun = StoredOffset(first.offset, -1, log.topic_id)
                try:  # before the handler, so that of two members only one gets past this line
                    self.sink.store(connection, self.group, partition, begun, is_new=True)
                except Exception as error:
                    raise _RowAppearedError(f"no row could be added: {error}") from error
            handle(left, connection)
            new = StoredOffset(left[-1].offset + 1, log.leader_epoch, log.topic_id)
            self.sink.store(connection, self.group, partition, new, is_new=False)
        self._rows[partition] = new
        log.begun = True

    @staticmethod
    def _still_there(records: list[Record], log: _Log, newest: _Log) -> list[Record]:
        """Leave out records of a former session that the present log no longer has.

        If their offsets were stored, the records that have these offsets now would count as done.
        """
        if log is newest or newest.other_from is None:
            return records
        return [record for record in records if record.offset < newest.other_from]

    def skip(self, record: Record) -> None:
        """Store a record as done, because it is a dead letter."""
        self.run([record], lambda *_: None)


class _RowAppearedError(ConsumerError):
    """The row was not there, and cannot be inserted."""


class StoredOffsets:
    """Keeps the consumer's positions in step with the sink's offsets, on the event loop.

    Call ``note_truncation`` with every event, ``go_to`` at an assignment and ``begin_sessions`` before
    records are handled.

    ``fail`` gets what the database raises: without its offsets nothing can be handled.
    """

    def __init__(self, once: Once, consumer: AsyncGroupConsumer, fail: Callable[[Exception], None]) -> None:
        self._once = once
        self._consumer = consumer
        self._fail = fail
        self._threads = DaemonThreads(1, "kohort-offsets")
        self._sessions: dict[TopicPartition, int] = {}
        #: Partitions whose log is not the one that their rows are about, and from which offset on.
        self._other_log: dict[TopicPartition, int] = {}

    def close(self) -> None:
        """End the thread."""
        self._threads.close()

    def note_truncation(self, event: Event) -> None:
        """Note truncations: if reading goes back to handled offsets, these now have other records."""
        match event:
            case CallbackFailed("on_partitions_assigned", error):
                # "go_to" was out of time, or cancelled: reading goes on where the group is
                self._fail(error if isinstance(error, Exception) else ConsumerError(f"go_to: {error!r}"))
            case PartitionsRevoked(partitions) | PartitionsLost(partitions):
                for partition in partitions:
                    self._other_log.pop(partition, None)
            case OffsetReset(partition, int(asked), offset=offset) if offset < asked:
                self._is_other(partition, offset)
            case LogTruncated(partition, int(asked), offset=offset) if offset < asked:
                self._is_other(partition, offset)

    def _is_other(self, partition: TopicPartition, offset: int) -> None:
        """From this offset on the log is not the one that was read."""
        self._other_log[partition] = min(offset, self._other_log.get(partition, offset))

    async def go_to(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Continue new partitions at the sink's offsets."""
        try:
            rows = await self._threads.call(partial(self._once.positions, partitions))
        except Exception as error:  # whatever the user's database raises
            # what the group has committed may be behind or ahead
            self._fail(error)
            return
        ids = await self._topic_ids({partition.topic for partition in rows})
        commits = await self._commits_to_check(rows)
        for partition in partitions:
            self._sessions.pop(partition, None)
        for partition, row in rows.items():
            topic_id = ids.get(partition.topic)
            if row.topic_id is not None and topic_id is not None and row.topic_id != topic_id:
                self._is_other(partition, 0)
                log.warning(
                    "group %s: topic %s was deleted and recreated: offset %d, stored for the one before, is "
                    "left alone, and partition %d starts as one that was never read",
                    self._once.group,
                    partition.topic,
                    row.next_offset,
                    partition.partition,
                )
                continue
            if partition in commits:
                continue  # what is stored as done is skipped
            with suppress(KeyError):  # on its way to another member
                self._consumer.seek(partition, row.next_offset, leader_epoch=row.leader_epoch)
                if row.topic_id is not None:
                    # which may be gone just now, and another one there later
                    self._consumer.parts.positions.is_of(partition, UUID(row.topic_id))

    async def _commits_to_check(self, rows: Mapping[TopicPartition, StoredOffset]) -> set[TopicPartition]:
        """Partitions whose rows have no leader epoch, while the group's commits have one and are not ahead.

        Only there it shows whether the log was truncated, and the rows with it.
        """
        unknown = [partition for partition, row in rows.items() if row.leader_epoch < 0]
        if not unknown:
            return set()
        with suppress(KohortError):
            committed = await self._consumer.committed(*unknown)
            return {
                partition
                for partition, commit in committed.items()
                if commit.leader_epoch >= 0 and commit.offset <= rows[partition].next_offset
            }
        return set()

    async def begin_sessions(self, firsts: Iterable[Record]) -> None:
        """Called before records are handled, with the first record of each partition."""
        firsts = list(firsts)
        new = [first for first in firsts if self._sessions.get(first.topic_partition) != first.session_id]
        if new:
            ids = await self._topic_ids({first.topic for first in new})
        for first in new:
            partition = first.topic_partition
            self._sessions[partition] = first.session_id
            other_from = self._other_log.pop(partition, None)
            # by now the topic may be gone, or another one
            read_in = self._consumer.parts.positions.topic_id(partition)
            topic_id = ids.get(partition.topic) if read_in is None else str(read_in)
            self._once.begin(partition, first.session_id, topic_id, other_from=other_from)
        tracker = self._consumer.parts.tracker
        for first in firsts:
            session = tracker.get(first.topic_partition)
            if session is not None and session.session_id == first.session_id:
                self._once.on_reached(first.topic_partition, first.session_id, session.leader_epoch)

    async def _topic_ids(self, topics: set[str]) -> dict[str, str]:
        """Ids of topics as brokers know them now: a topic may have been created again."""
        cluster = self._consumer.parts.cluster
        with suppress(KohortError, TimeoutError):
            # a stop is noticed no sooner
            async with asyncio.timeout(METADATA_TIMEOUT_S):
                await cluster.metadata(topics)
        known = {name: cluster.topic(name) for name in topics}
        return {name: str(topic.topic_id) for name, topic in known.items() if topic and topic.topic_id}
