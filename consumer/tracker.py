"""What is delivered, what is done, and what may be committed of it. No I/O.

Per partition the committable offset is the first one that is delivered and not done; with nothing open it is
where delivery goes on, so that control batches and holes of compaction are passed. Records may be done in any
order; what is done beyond the first gap goes along in the commit's metadata (``done_ahead``).
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from ..client.offsets import CommittedOffset
from ..protocol import TopicPartition
from . import done_ahead
from .errors import StaleRecordError
from .partition_session import PartitionSession
from .record import Record

_offset_of = itemgetter(Record._fields.index("offset"))
_session_id_of = itemgetter(Record._fields.index("session_id"))
#: Whoever has been given records so often without marking one done is not waited for, unless it is to commit.
NEVER_MARKED = 10


class Tracker:
    """The sessions of all partitions that this consumer has now, or is giving up.

    ``with_metadata``: whether commits say what is done beyond the first gap. ``commits``: whether what is
    done is committed at intervals, so that whoever reads must mark records done.
    """

    def __init__(self, *, commits: bool = True) -> None:
        self.with_metadata = True
        #: How often records were given out.
        self.given_out = 0
        #: How many wait for records to be done, partitions whose window is full included.
        self.awaited = 0
        self._marking = commits
        self._by_partition: dict[TopicPartition, PartitionSession] = {}
        self._by_id: dict[int, PartitionSession] = {}

    def __repr__(self) -> str:
        return f"Tracker({len(self._by_partition)} partitions, {self.undone()} records undone)"

    def begin(
        self,
        partition: TopicPartition,
        position: int,
        *,
        committed: CommittedOffset | None = None,
        leader_epoch: int = -1,
    ) -> PartitionSession:
        """A new session; one that was there ends, and its records can no longer be marked done.

        With ``committed``, which must be at ``position``, what its metadata says is done is not done again.
        """
        before = self.end(partition)
        if committed is not None and committed.offset != position:
            committed = None
        # random, so that no record of another consumer in this process, or in one it was forked from, fits
        session = PartitionSession(partition, secrets.randbits(62) + 1, position, committed, leader_epoch)
        session.assignment = session.session_id if before is None else before.assignment
        if committed is not None:
            session.done_earlier(done_ahead.decode(position, committed.metadata))
        self._by_partition[partition] = self._by_id[session.session_id] = session
        return session

    def end(self, partition: TopicPartition) -> PartitionSession | None:
        """The partition is given up."""
        session = self._by_partition.pop(partition, None)
        if session is not None:
            self._marking = self._marking or session.any_done
            del self._by_id[session.session_id]
        return session

    @property
    def sessions(self) -> Mapping[int, PartitionSession]:
        """The sessions that go on, by their ids; always up to date."""
        return self._by_id

    def get(self, partition: TopicPartition) -> PartitionSession | None:
        return self._by_partition.get(partition)

    def session_of(self, record: Record) -> PartitionSession:
        """The session in which the record was delivered; StaleRecordError if it is over, or none of ours."""
        session = self._by_id.get(record.session_id)
        if session is None or session.partition != record[:2]:
            raise StaleRecordError(
                f"{record.topic}-{record.partition} offset {record.offset} was delivered in generation "
                f"{record.generation}, and its partition has been given up (or sought elsewhere) since, or "
                "another consumer delivered it: whoever has it now delivers the record again"
            )
        return session

    def done(self, record: Record) -> PartitionSession:
        """The record has been dealt with; its session. StaleRecordError if that is over."""
        session = self.session_of(record)
        session.done(record.offset)
        return session

    def done_all(self, records: Sequence[Record]) -> Record | None:
        """``done`` for each whose session goes on; the first one of the others."""
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
        """What other threads have marked done is done."""
        for session in self._by_id.values():
            if session.marked:
                # one step each, whatever is appended between the two
                offsets = session.marked[:]
                del session.marked[: len(offsets)]
                session.done_all(offsets)

    def done_batch(self, session_id: int, start: int, end: int) -> PartitionSession:
        """What was delivered as one is done as one. StaleRecordError if the session is over."""
        session = self._by_id.get(session_id)
        if session is None:
            raise StaleRecordError(
                f"the batch from offset {start} is of a partition that has been given up (or sought "
                "elsewhere) since, or of another consumer: whoever has it now delivers its records again"
            )
        session.done_range(start, end)
        return session

    def undone(self, partitions: Iterable[TopicPartition] | None = None) -> int:
        """Records delivered and not done, of these partitions or all."""
        return sum(session.undone for session in self._of(partitions))

    def undone_by_partition(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The partitions that have undone records, and how many."""
        return {session.partition: session.undone for session in self._of(partitions) if session.undone}

    def _is_marking(self) -> bool:
        """Whether records that are out can be expected to be marked done. Who keeps offsets elsewhere never
        does.
        """
        self._marking = self._marking or any(session.any_done for session in self._of(None))
        return self._marking or self.given_out < NEVER_MARKED

    def first_undone(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The partitions with undone records to wait for, and the first offset of them.

        There are none to wait for in a consumer that does not commit at intervals, and has been given records
        NEVER_MARKED times without marking one done.
        """
        if not self._is_marking():
            return {}
        return {s.partition: s.first_undone for s in self._of(partitions) if s.first_undone is not None}

    def committable(
        self, partitions: Iterable[TopicPartition] | None = None, *, again: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """What is worth committing, of these partitions or all: only what differs from the last commit.

        With ``again``, what was committed last where nothing does.
        """
        found = {}
        for session in self._of(partitions):
            offset = self.news(session) or (session.committed if again else None)
            if offset is not None:
                found[session.partition] = offset
        return found

    def news(self, session: PartitionSession) -> CommittedOffset | None:
        """What is worth committing of this session, which may be over; None if nothing differs."""
        offset = session.to_commit()
        if not self.with_metadata:
            offset = CommittedOffset(offset.offset, offset.leader_epoch)
        return offset if _is_news(offset, session.committed) else None

    def committed(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """These offsets are committed."""
        for partition, offset in offsets.items():
            if (session := self._by_partition.get(partition)) is not None:
                session.committed = offset

    def _of(self, partitions: Iterable[TopicPartition] | None) -> list[PartitionSession]:
        if partitions is None:
            return list(self._by_partition.values())
        return [s for partition in partitions if (s := self._by_partition.get(partition)) is not None]


def _is_news(offset: CommittedOffset, before: CommittedOffset | None) -> bool:
    """A commit never goes back, and metadata of the user's own stays for as long as its offset."""
    if before is None or offset.offset != before.offset:
        return before is None or offset.offset > before.offset
    return offset.metadata != before.metadata and done_ahead.is_ours(before.metadata)
