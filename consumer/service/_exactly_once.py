"""Offsets stored with the results, in one transaction of the user's own database.

For each call of a handler one transaction: lock the partition's row, leave out what is stored as done, call
the handler with the connection, store the next offset, commit. So the effect of a record and the note
that it is done are there together or not at all, and whoever comes second (a member that was thought dead, a
retry, the next owner) finds the note and does nothing. That is also why no fencing of members is needed.

The note is about one log: the leader epoch and the topic id beside the offset tell whether the partition
still has it. Where the log was cut, or the topic made anew, records come again under offsets that are stored
as done; these are new ones, and are handled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...protocol import TopicPartition
from ..errors import ConsumerError
from ._sinks import Sink, StoredOffset

if TYPE_CHECKING:
    from ..record import Record


@dataclass(slots=True, eq=False)
class _Log:
    """What records of one session of a partition are from.

    ``other_from`` is the offset from which on it is another log than the session before had; None: the same.
    ``begun``: the row is about this one.
    """

    topic_id: str | None = None
    leader_epoch: int = -1
    other_from: int | None = None
    begun: bool = False


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
        """Where to go on, for partitions that have been begun."""
        found = self.sink.positions(self.group, partitions)
        self._rows.update(found)
        return found

    def begin(
        self, partition: TopicPartition, session: int, topic_id: str | None, *, other_from: int | None = None
    ) -> None:
        """Records of a new session follow.

        From ``other_from`` on they are others than before, although the stored offset may be behind them.
        """
        # handlers may still be at records of the session before
        for key in [key for key in self._logs if key[0] == partition][:-1]:
            del self._logs[key]
        log = _Log(topic_id, other_from=other_from)
        self._logs[partition, session] = self._newest[partition] = log

    def reached(self, partition: TopicPartition, session: int, leader_epoch: int) -> None:
        """Records up to this leader epoch have been delivered in the session."""
        if (log := self._logs.get((partition, session))) is not None:
            log.leader_epoch = leader_epoch

    def run(self, records: Sequence[Record], handle: Callable[[list[Record], Any], None]) -> None:
        """``handle(records, connection)`` with those of one partition's records that are not done yet."""
        try:
            self._run(records, handle)
        except _RowAppearedError:
            # another member has begun the partition between our look and our insert: look again
            self._run(records, handle)

    def _run(self, records: Sequence[Record], handle: Callable[[list[Record], Any], None]) -> None:
        first = records[0]
        partition = first.topic_partition
        log = self._logs.get((partition, first.session_id)) or _Log()
        with self.sink.transaction() as connection:
            row = self.sink.lock(connection, self.group, partition)
            done_before = -1 if row is None else row.next_offset
            # a row that another member has changed since is about the log as that member knows it
            if log.other_from is not None and not log.begun and row == self._rows.get(partition):
                done_before = min(done_before, log.other_from)
            left = [record for record in records if record.offset >= done_before]
            left = self._still_there(left, log, self._newest.get(partition, log))
            if not left:
                return
            if row is None:
                self._begin_row(connection, partition, StoredOffset(first.offset, -1, log.topic_id))
            handle(left, connection)
            new = StoredOffset(left[-1].offset + 1, log.leader_epoch, log.topic_id)
            self.sink.store(connection, self.group, partition, new, is_new=False)
        self._rows[partition] = new
        log.begun = True

    @staticmethod
    def _still_there(records: list[Record], log: _Log, newest: _Log) -> list[Record]:
        """Without those of a session that is over which the log, as it is now, does not have any more.

        Were their offsets stored, the records that have these offsets now would count as done.
        """
        if log is newest or newest.other_from is None:
            return records
        return [record for record in records if record.offset < newest.other_from]

    def _begin_row(self, connection: Any, partition: TopicPartition, offset: StoredOffset) -> None:
        # before the handler, so that of two members only one gets past this line
        try:
            self.sink.store(connection, self.group, partition, offset, is_new=True)
        except Exception as error:
            raise _RowAppearedError(f"no row could be added: {error}") from error

    def skip(self, record: Record) -> None:
        """The record is dealt with elsewhere: it is a dead letter."""
        self.run([record], lambda *_: None)


class _RowAppearedError(ConsumerError):
    """The row was not there, and cannot be inserted."""
