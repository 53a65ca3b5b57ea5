"""What has been dealt with, and what is committed of it: the part of a consumer that takes records back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from ..protocol import TopicPartition
from .assembly import Parts
from .config import ConsumerConfig
from .errors import ConfigError
from .offset_requests import CommittedOffset
from .record import Record
from .tracker import Stay

_epoch_of = itemgetter(Record._fields.index("epoch"))


class Marking(ABC):
    """Base of AsyncGroupConsumer; see there."""

    config: ConsumerConfig
    _parts: Parts | None
    _error: Exception | None

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
        parts = self._parts or self._running(closing=True)
        stay = parts.tracker.done(record)
        if parts.delivery.full_lanes or parts.handover.drained.waiters:
            self._was_done(parts, stay)

    def _was_done(self, parts: Parts, stay: Stay) -> None:
        if parts.delivery.full_lanes:
            parts.delivery.made_room(stay)
        if parts.handover.drained.waiters:
            parts.handover.record_done()

    def done_all(self, records: Iterable[Record]) -> None:
        """``done`` for each."""
        parts = self._parts or self._running(closing=True)
        records = records if isinstance(records, list) else list(records)
        runs = [records]
        if len(set(map(_epoch_of, records))) != 1:
            runs = [list(run) for _, run in groupby(records, _epoch_of)]
        for run in runs:
            self._was_done(parts, parts.tracker.done_run(run))

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
        return await self._running().handover.drain(partitions or self.assignment(), timeout_ms)
