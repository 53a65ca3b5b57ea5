"""What has been dealt with, and what is committed of it: the part of a consumer that takes records back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from ..client.errors import ConfigError
from ..client.offsets import CommittedOffset
from ..protocol import TopicPartition
from .assembly import Parts
from .config import ConsumerConfig
from .partition_session import PartitionSession
from .record import Record
from .tracker import Tracker


class Marking(ABC):
    """Base of AsyncGroupConsumer; see there."""

    config: ConsumerConfig
    _parts: Parts | None
    _error: Exception | None
    _tracker: Tracker
    _sessions: Mapping[int, PartitionSession]

    @abstractmethod
    def _running(self, *, closing: bool = False) -> Parts:
        """The parts; ConsumerClosedError unless it runs."""

    @abstractmethod
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions this member owns now."""

    def done(self, record: Record) -> None:
        """The record has been dealt with: it may be committed once everything before it is done too.

        Raises StaleRecordError when its partition has been given up since: it will be delivered elsewhere.
        """
        try:
            session, offset = self._sessions[record.session_id], record.offset
        except KeyError:
            session = (self._parts or self._running(closing=True)).tracker.session_of(record)
        if session.first == offset < session.limit:
            # what mostly happens, in as few steps as can be: the first one that is not done is done
            session.first = offset + 1
        else:
            session.done(offset)
        if self._tracker.awaited:
            self._was_done(self._parts or self._running(closing=True))

    def _was_done(self, parts: Parts) -> None:
        if parts.tracker.awaited:
            parts.delivery.made_room()
            parts.handover.record_done()

    def done_all(self, records: Iterable[Record]) -> None:
        """``done`` for each. Raises StaleRecordError for those that are to be delivered elsewhere, once the
        others are marked.
        """
        parts = self._parts or self._running(closing=True)
        records = records if isinstance(records, list) else list(records)
        taken = parts.delivery.last_taken
        # a record equals itself only: these are what was given together last
        if records == taken.records and all(self._goes_on(session) for session, _, _ in taken.parts):
            for session, start, end in taken.parts:
                session.done_range(start, end)
            self._was_done(parts)
        else:
            stale = parts.tracker.done_all(records)
            self._was_done(parts)
            if stale is not None:
                parts.tracker.session_of(stale)

    def _goes_on(self, session: PartitionSession) -> bool:
        return session.session_id in self._sessions

    def done_marked(self) -> None:
        """What other threads have marked done is done; it may have been given up since."""
        self._tracker.done_marked()
        if self._tracker.awaited:
            self._was_done(self._parts or self._running(closing=True))

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit what is done, or these offsets (the next ones to read); what is before them counts as done.

        Waits out a rebalance, up to ``timeout_ms`` (default_api_timeout_ms). Raises CommitFailedError, which
        names the partitions this member has lost, and FatalGroupError.
        """
        parts = self._running(closing=True)
        self._require_group("commit")
        if self._error is not None:
            raise self._error
        timeout_ms = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        parts.delivery.recall()
        await parts.committer.commit(offsets, timeout_ms)
        parts.handover.record_done()

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, for these partitions or those of the assignment."""
        self._require_group("committed")
        return await self._running().cluster.committed(self.config.group, partitions or self.assignment())

    def _require_group(self, call: str) -> None:
        if not self.config.group:
            raise ConfigError(f"{call}: this consumer has no group, so nothing is committed; give it one")

    async def drain(self, timeout_ms: float, *partitions: TopicPartition) -> bool:
        """Wait until what was delivered (of these partitions, or all) is done; whether it was in time."""
        parts = self._running()
        parts.delivery.recall()
        return await parts.handover.drain(partitions or self.assignment(), timeout_ms)
