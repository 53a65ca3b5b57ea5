"""What has been dealt with, and what is committed of it: the part of a consumer that takes records back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from ..protocol import TopicPartition
from .assembly import Parts
from .config import ConsumerConfig
from .errors import ConfigError
from .offset_requests import CommittedOffset
from .record import Record
from .tracker import Stay, Tracker

_epoch_of = itemgetter(Record._fields.index("epoch"))


class Marking(ABC):
    """Base of AsyncGroupConsumer; see there."""

    config: ConsumerConfig
    _parts: Parts | None
    _error: Exception | None
    _tracker: Tracker
    _stays: Mapping[int, Stay]

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
        # what mostly happens, in as few steps as can be: the first one that is not done is done
        try:
            stay, offset = self._stays[record.epoch], record.offset
        except KeyError:
            pass
        else:
            if offset == stay.first and stay.in_line and offset != stay.end and not self._tracker.awaited:
                stay.first = offset + 1
                return
        parts = self._parts or self._running(closing=True)
        self._was_done(parts, parts.tracker.done(record))

    def _was_done(self, parts: Parts, stay: Stay) -> None:
        if parts.tracker.awaited:
            parts.delivery.made_room(stay)
            parts.handover.record_done()

    def done_all(self, records: Iterable[Record]) -> None:
        """``done`` for each."""
        parts = self._parts or self._running(closing=True)
        records = records if isinstance(records, list) else list(records)
        taken = parts.delivery.last_taken
        if records and records == taken.records:
            # a record equals itself only: these are what was given together last
            for stay, offsets in taken.parts:
                if stay is not self._stays.get(stay.epoch):
                    parts.tracker.stay_of(next(each for each in records if each.epoch == stay.epoch))
                stay.done_all(offsets)
                self._was_done(parts, stay)
            return
        for _, run in groupby(records, _epoch_of):
            self._was_done(parts, parts.tracker.done_run(list(run)))

    def done_offsets(self, epoch: int, offsets: Sequence[int]) -> None:
        """Records of a stay have been dealt with, by their offsets; nothing happens if it is over."""
        parts = self._parts or self._running(closing=True)
        if (stay := self._stays.get(epoch)) is not None:
            stay.done_all(offsets)
            self._was_done(parts, stay)

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
