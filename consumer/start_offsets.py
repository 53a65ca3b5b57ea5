"""Finds where partitions are read: committed offsets, resets to an end or a time, cut logs (KIP-320)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ..protocol import KafkaError, KohortError, TopicPartition, UnsupportedVersionError
from .backoff import Backoff
from .cluster import Cluster
from .delivery import Delivery
from .errors import ConsumerClosedError, LogTruncatedError
from .events import BrokerUnavailable, Event, LogTruncated, OffsetReset, PartitionFailed
from .offset_requests import EARLIEST, LATEST, CommittedOffset, EpochEnd
from .positions import Phase, Position, Positions


class StartOffsets:
    """``polled`` is called when a poll that waits may have something to say. ``group``: "" for none."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        read_committed: bool,
        positions: Positions,
        delivery: Delivery,
        *,
        backoff: Backoff,
        report: Callable[[Event], None],
        polled: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._read_committed = read_committed
        self._positions = positions
        self._delivery = delivery
        self._backoff = backoff
        self._report = report
        self._polled = polled

    def __repr__(self) -> str:
        return f"StartOffsets({self._positions!r})"

    # committed offsets

    async def find_committed(self, seeking: list[Position]) -> None:
        """Ask for the committed offsets of these."""
        found = await self._guarded(seeking, "asking for committed offsets", lambda: self._committed(seeking))
        if found is None:
            return
        for position in seeking:
            if self._positions.get(position.partition) is position and position.phase is Phase.SEEKING:
                self._positions.found_committed(position.partition, found.get(position.partition))
                self.moved(position)

    async def _committed(self, seeking: list[Position]) -> dict[TopicPartition, CommittedOffset]:
        if not self._group:
            return {}
        return await self._cluster.committed(self._group, [p.partition for p in seeking])

    # resets

    async def reset(self, resetting: list[Position]) -> None:
        """Ask the logs where these go on."""
        at = {p.partition: p.reset_to for p in resetting}
        before = {p.partition: p.changed for p in resetting}
        missed = [p.partition for p in resetting if p.reset is not None and p.reset.asked is not None]

        async def ask() -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
            return await self._offsets_at(at), await self._ranges(missed)

        answer = await self._guarded(resetting, "resetting offsets", ask)
        if answer is None:
            return
        found, ranges = answer
        for position in resetting:
            partition = position.partition
            if self._positions.get(partition) is not position or position.changed != before[partition]:
                continue
            reset = self._positions.reset_found(position, found[partition])
            if reset is not None:
                reason = reset.reason + ranges.get(partition, "")
                policy = _policy_name(at[partition])
                self._report(OffsetReset(partition, reset.asked, reason, policy, found[partition]))
            self.moved(position, moved_by_reset=True)

    async def _ranges(self, partitions: list[TopicPartition]) -> dict[TopicPartition, str]:
        """What the logs hold, in words, for the reason of a reset."""
        starts = await self._cluster.list_offsets(dict.fromkeys(partitions, EARLIEST))
        ends = await self._cluster.list_offsets(dict.fromkeys(partitions, LATEST))
        return {p: f": it starts at {starts[p].offset} and ends at {ends[p].offset}" for p in partitions}

    async def _offsets_at(self, at: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Offsets by time; the end of the log where no record is that late."""
        found = await self._cluster.list_offsets(at, read_committed=self._read_committed)
        none = {partition: LATEST for partition, row in found.items() if row.offset < 0}
        ends = await self._cluster.list_offsets(none, read_committed=self._read_committed)
        return {partition: ends.get(partition, row).offset for partition, row in found.items()}

    # cut logs

    async def validate(self, validating: list[Position]) -> None:
        """Ask the leaders whether their logs still are the ones that were read (KIP-320)."""
        epochs = {p.partition: p.leader_epoch for p in validating}
        before = {p.partition: p.changed for p in validating}
        known = {p: self._cluster.known.leader_epoch(p) for p in epochs}
        ends = await self._guarded(
            validating, "asking where leader epochs end", lambda: self._epoch_ends(epochs)
        )
        if ends is None:
            return
        for position in validating:
            partition = position.partition
            if self._positions.get(partition) is not position or position.changed != before[partition]:
                continue
            position.checked_epoch = known[partition]
            end = ends.get(partition)
            if end is not None and end.offset < position.fetch_offset:
                self._truncated(position, end)
            else:
                self._positions.valid(position)
            self.moved(position, goes_on=True)

    async def _epoch_ends(self, epochs: dict[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
        try:
            return await self._cluster.epoch_ends(epochs)
        except UnsupportedVersionError:
            # brokers before Kafka 2.1 cannot say, and nobody could ask them before
            return {}

    def _truncated(self, position: Position, end: EpochEnd) -> None:
        """What was read is not in the log any more: go on where it was cut, or as the policy is."""
        partition, asked, epoch = position.partition, position.fetch_offset, position.leader_epoch
        if self._positions.fails_without_offset:
            self._positions.fail(position, LogTruncatedError(partition, asked, epoch, end.offset))
            return
        if end.offset < 0:
            self._positions.cut_somewhere(position, f"leader epoch {epoch}, which it is from, is gone")
            self._delivery.drop([partition])
            return
        # what was fetched and not delivered may be gone as well; what was delivered is where it was, or gone
        stay = self._delivery.delivered_to(partition)
        offset = end.offset if stay is None else min(end.offset, stay)
        self._positions.cut_at(position, offset)
        self._delivery.cut(position)
        self._report(LogTruncated(partition, asked, epoch, offset))

    # what they share

    def moved(self, position: Position, *, moved_by_reset: bool = False, goes_on: bool = False) -> None:
        """The position is in another phase: start delivery, or say why there is none."""
        if position.phase is Phase.READING and not (goes_on and self._delivery.has(position.partition)):
            self._delivery.start(position, moved_by_reset=moved_by_reset)
        if position.phase is Phase.FAILED and position.error is not None:
            self._report(PartitionFailed(position.partition, position.error))
        self._polled()

    async def _guarded(
        self, positions: list[Position], doing: str, call: Callable[[], Awaitable[Any]]
    ) -> Any | None:
        """The call's answer; None after an error, which is reported and delays these partitions."""
        try:
            return await call()
        except ConsumerClosedError:
            return None
        except KohortError as error:
            for position in positions:
                self.delay(position)
            if isinstance(error, KafkaError) and not error.retriable:
                for position in positions:
                    self._positions.fail(position, error)
                    self.moved(position)
            else:
                self._report(BrokerUnavailable(doing, error))
            return None

    def delay(self, position: Position) -> None:
        """Leave it alone for a while."""
        now = asyncio.get_running_loop().time() * 1000
        position.retry_at = now + self._backoff.delay_ms(position.failures)
        position.failures += 1


def _policy_name(reset_to: int) -> str:
    return {EARLIEST: "earliest", LATEST: "latest"}.get(reset_to, f"timestamp {reset_to}")
