"""Which records are delivered, which are done, and what may be committed. No I/O.

The committable offset of a partition is the first one that is delivered and not done. If all are done it is
the position of delivery, which is beyond control batches and gaps of compaction. Records may be done in any
order; what is done beyond the first gap is part of the commit's metadata (``done_ahead``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from secrets import randbits

from ...client.offsets import CommittedOffset
from ...protocol import TopicPartition
from ..errors import StaleRecordError
from ..record import Record
from . import done_ahead
from .partition_session import PartitionSession

_offset_of = itemgetter(Record._fields.index("offset"))
_session_id_of = itemgetter(Record._fields.index("session_id"))
#: After this many deliveries without a record marked done, revocations do not wait for the user, unless
#: offsets are committed at intervals.
NEVER_MARKED = 10


class Tracker:
    """The sessions of all partitions that this consumer owns or is about to revoke.

    ``commits``: whether offsets are committed at intervals, for which users must mark records done. The
    attribute ``with_metadata``: whether commits have metadata about records that are done beyond the first
    gap.
    """

    def __init__(self, *, commits: bool = True) -> None:
        self.with_metadata = True
        #: How often records were delivered.
        self.given_out = 0
        #: How many waits there are for records to be done, full partitions included.
        self.awaited = 0
        self._marking = commits
        self._by_partition: dict[TopicPartition, PartitionSession] = {}
        self._by_id: dict[int, PartitionSession] = {}

    def __repr__(self) -> str:
        return f"Tracker({len(self._by_partition)} partitions, {self.undone()} records undone)"

    def begin_session(
        self,
        partition: TopicPartition,
        position: int,
        *,
        committed: CommittedOffset | None = None,
        leader_epoch: int = -1,
    ) -> PartitionSession:
        """Start a session; an earlier one ends, and its records can no longer be marked done.

        With ``committed``, which must be at ``position``, records that its metadata says are done are not
        delivered again.
        """
        before = self.end_session(partition)
        if committed is not None and committed.offset != position:
            committed = None
        # random, so that no record of another consumer fits, in this process or its parent
        session = PartitionSession(partition, randbits(62) + 1, position, committed, leader_epoch)
        session.assignment = session.session_id if before is None else before.assignment
        if committed is not None:
            session.done_earlier(done_ahead.decode(position, committed.metadata))
        self._by_partition[partition] = self._by_id[session.session_id] = session
        return session

    def end_session(self, partition: TopicPartition) -> PartitionSession | None:
        """End the partition's session, which is returned."""
        session = self._by_partition.pop(partition, None)
        if session is not None:
            self._marking = self._marking or session.any_done
            del self._by_id[session.session_id]
        return session

    @property
    def sessions(self) -> Mapping[int, PartitionSession]:
        """The current sessions by id: a live view."""
        return self._by_id

    def get(self, partition: TopicPartition) -> PartitionSession | None:
        """The current session of a partition."""
        return self._by_partition.get(partition)

    def session_of(self, record: Record) -> PartitionSession:
        """The session that delivered the record. StaleRecordError if it is over, or another consumer's."""
        session = self._by_id.get(record.session_id)
        if session is None or session.partition != record[:2]:
            raise StaleRecordError(
                f"{record.topic}-{record.partition} offset {record.offset} was delivered in generation "
                f"{record.generation}, and its partition has been given up (or sought elsewhere) since, or "
                "another consumer delivered it: the partition's current owner delivers the record again"
            )
        return session

    def done(self, record: Record) -> PartitionSession:
        """Mark a record done and return its session. StaleRecordError if that is over."""
        session = self.session_of(record)
        session.done(record.offset)
        return session

    def done_all(self, records: Sequence[Record]) -> Record | None:
        """Mark the records done whose sessions go on; returns the first of the others."""
        stale: Record | None = None
        ids = set(map(_session_id_of, records))
        if len(ids) == 1:
            groups: Mapping[int, list[int]] = {ids.pop(): list(map(_offset_of, records))}
        else:
            groups = defaultdict(list)
            for record in records:
                groups[record.session_id].append(record.offset)
        for session_id, offsets in groups.items():
            if (session := self._by_id.get(session_id)) is not None:
                session.done_all(offsets)
            elif stale is None:
                stale = next(record for record in records if record.session_id == session_id)
        return stale

    def done_marked(self) -> None:
        """Process the records that other threads have marked done."""
        for session in self._by_id.values():
            if session.marked:
                # one step each, whatever is appended between the two
                offsets = session.marked[:]
                del session.marked[: len(offsets)]
                session.done_all(offsets)

    def done_batch(self, session_id: int, start: int, end: int) -> PartitionSession:
        """Mark a range of offsets done. StaleRecordError if the session is over."""
        session = self._by_id.get(session_id)
        if session is None:
            raise StaleRecordError(
                f"the batch from offset {start} is of a partition that has been given up (or sought "
                "elsewhere) since, or of another consumer: its current owner delivers the records again"
            )
        session.done_range(start, end)
        return session

    def undone(self, partitions: Iterable[TopicPartition] | None = None) -> int:
        """Records delivered and not done, of these partitions or all."""
        return sum(session.undone for session in self._sessions_of(partitions))

    def undone_by_partition(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The numbers of undone records, of partitions that have any."""
        return {
            session.partition: session.undone for session in self._sessions_of(partitions) if session.undone
        }

    def _is_marking(self) -> bool:
        """Return whether the user is expected to mark records done; one with offsets elsewhere never does."""
        self._marking = self._marking or any(session.any_done for session in self._sessions_of(None))
        return self._marking or self.given_out < NEVER_MARKED

    def first_undone(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The partitions with undone records to wait for, and the first offset of them.

        Empty for a user who does not commit at intervals, and got records NEVER_MARKED times without marking
        any done.
        """
        if not self._is_marking():
            return {}
        return {
            s.partition: s.first_undone for s in self._sessions_of(partitions) if s.first_undone is not None
        }

    def committable(
        self, partitions: Iterable[TopicPartition] | None = None, *, again: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """The offsets to commit, of these partitions or all, that differ from the last commit.

        With ``again``, also those that do not differ.
        """
        found = {}
        for session in self._sessions_of(partitions):
            offset = self.news(session) or (session.committed if again else None)
            if offset is not None:
                found[session.partition] = offset
        return found

    def news(self, session: PartitionSession) -> CommittedOffset | None:
        """The offset to commit of this session, which may be over; None if it does not differ."""
        offset = session.to_commit()
        if not self.with_metadata:
            offset = CommittedOffset(offset.offset, offset.leader_epoch)
        return offset if _is_news(offset, session.committed) else None

    def note_committed(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Note that these offsets are committed: they are not due again."""
        for partition, offset in offsets.items():
            if (session := self._by_partition.get(partition)) is not None:
                session.committed = offset

    def _sessions_of(self, partitions: Iterable[TopicPartition] | None) -> list[PartitionSession]:
        if partitions is None:
            return list(self._by_partition.values())
        return [s for partition in partitions if (s := self._by_partition.get(partition)) is not None]


def _is_news(offset: CommittedOffset, before: CommittedOffset | None) -> bool:
    """Return whether to commit: no lower offset, and nothing over the user's metadata of the same one."""
    if before is None or offset.offset != before.offset:
        return before is None or offset.offset > before.offset
    return offset.metadata != before.metadata and done_ahead.is_ours(before.metadata)
