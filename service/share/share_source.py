"""Records of a share group for a service: a share consumer with the methods of AsyncGroupConsumer that the
engine calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...consumer.events import Event
from ...consumer.record import Record
from ...consumer.share.config import share_consumer_config
from ...consumer.share.consumer import ShareConsumer
from ...consumer.share.events import LockLost, RenewalUnavailable
from ...consumer.share.records import ShareRecord
from ...protocol import KohortError, TopicPartition
from ...statemachine import MemberState
from ..reporting.metrics import LockNumbers
from .deliveries import USUAL_LIMIT, Deliveries, LockedRecord
from .share_group import read_delivery_limit, read_share_lag

if TYPE_CHECKING:
    from ...consumer.typed_settings import ShareConsumerSettings
    from ..handlers.handler import Handler

#: How often the group's lag and its delivery limit are read.
LAG_S, LIMIT_S = 10.0, 300.0
#: Unless set: twice what the handlers work on, and no more than this.
MOST_LOCKED = 500
#: Longest time to leave the group again where a start is cancelled.
_UNDO_MS = 5_000.0

log = logging.getLogger("kohort.service")


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """As ConsumerStatus, what the engine reads of it."""

    state: MemberState
    member_id: str


class ShareSource:
    """Calls ``drop`` with each record whose lock was lost while the engine had it."""

    def __init__(
        self,
        topics: Sequence[str],
        config: Mapping[str, object],
        handlers: Sequence[Handler],
        *,
        hold_ms: float,
        drop: Callable[[LockedRecord], None],
    ) -> None:
        if "max_locked_records" not in share_consumer_config(**config).model_fields_set:
            busy = sum(handler.concurrency * handler.batch for handler in handlers)
            config = {**config, "max_locked_records": min(MOST_LOCKED, 2 * busy)}
        self._consumer = ShareConsumer(*topics, **cast("ShareConsumerSettings", config))
        self._consumer.logged = False
        self.config = self._consumer.config
        self.events = self._consumer.events
        self.events.listen(self._on_event)
        self.deliveries = Deliveries(hold_ms=hold_ms, max_processing_ms=self.config.max_processing_ms)
        self.deliveries.renews = self.config.renew_locks
        self._lost = self._redelivered = 0
        self._drop = drop
        #: What the engine has.
        self._locked: dict[ShareRecord, LockedRecord] = {}
        self._lag: dict[TopicPartition, int] = {}
        self._watching: asyncio.Task[None] | None = None
        self._told = False

    @property
    def state(self) -> MemberStatus:
        """State of the member."""
        now = self._consumer.state
        return MemberStatus(MemberState.STABLE if now.epoch > 0 else MemberState.UNJOINED, now.member_id)

    @property
    def outage_s(self) -> float:
        """See ``ShareConsumer.outage_s``."""
        return self._consumer.outage_s

    @property
    def lock_numbers(self) -> LockNumbers:
        """Numbers for /metrics."""
        now = self._consumer.state
        return LockNumbers(
            held=now.locked + now.buffered,
            lost=self._lost,
            redelivered=self._redelivered,
            limit=self.deliveries.limit,
        )

    async def start(self) -> None:
        """Connect and join; returns when it is known how often the group delivers a record. When cancelled,
        it leaves nothing behind.
        """
        await self._consumer.start()
        try:
            await self._learn_limit()
        except BaseException:
            await self._consumer.close(timeout_ms=_UNDO_MS)
            raise
        self._watching = asyncio.create_task(self._watch_group(), name="kohort share group")

    async def announce_leave(self) -> None:
        """Fetch nothing more."""
        self._consumer.stop_fetching()

    async def close(self, *, timeout_ms: float) -> None:
        """Send what was said of records, give back the rest, and leave."""
        if self._watching is not None:
            self._watching.cancel()
        await self._consumer.close(timeout_ms=timeout_ms)

    # records

    async def getmany(self, max_records: int, timeout_ms: float, max_bytes: int) -> list[Record]:  # noqa: ARG002 - max_locked_records bounds them
        """The available records, up to ``max_records``."""
        found: list[Record] = []
        for share in await self._consumer.getmany(max_records, timeout_ms):
            self._locked[share] = record = LockedRecord.of(share)
            self._redelivered += record.delivery_count > 1
            found.append(record)
        return found

    def done(self, record: Record) -> None:
        """Its handler has ended: it is accepted, unless it was rejected or released before."""
        if (share := self._take(record)) is not None and share.verdict is None:
            share.accept()

    def give_back(self, record: Record) -> None:
        """No handler ends it here: others get it."""
        if (share := self._take(record)) is None or share.verdict is not None or share.lost:
            return
        share.release()
        if self.deliveries.is_last(record):
            text = (
                "group %s: %s-%d at offset %d is given back in its last delivery, and archived by the group"
            )
            log.error(text, self.config.group, record.topic, record.partition, record.offset)

    def _take(self, record: Record) -> ShareRecord | None:
        assert isinstance(record, LockedRecord), "of this source"
        return record.share if self._locked.pop(record.share, None) is not None else None

    # partitions

    def pause(self, *where: TopicPartition | str) -> None:
        """Fetch nothing of these partitions, or topics."""
        self._consumer.pause(*where)

    def resume(self, *where: TopicPartition | str) -> None:
        """Fetch again."""
        self._consumer.resume(*where)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the coordinator has assigned; others may have them, too."""
        return self._consumer.assignment()

    def lag(self) -> dict[TopicPartition, int]:
        """Records that the group has not done, as it was told last."""
        return self._lag

    # the group

    def _on_event(self, event: Event) -> None:
        match event:
            case RenewalUnavailable():
                self.deliveries.renews = False
            case LockLost(share):
                self._lost += 1
                if (record := self._locked.get(share)) is not None:
                    self._drop(record)

    async def _watch_group(self) -> None:
        clock = asyncio.get_running_loop().time
        look_at = clock() + LIMIT_S
        while True:
            with suppress(KohortError, TimeoutError):  # it is only shown
                self._lag = await read_share_lag(
                    self._consumer.cluster, self.config.group, self._consumer.assignment()
                )
            await asyncio.sleep(LAG_S)
            if clock() >= look_at:
                look_at = clock() + LIMIT_S
                await self._learn_limit()

    async def _learn_limit(self) -> None:
        group = self.config.group
        try:
            self.deliveries.limit = await read_delivery_limit(self._consumer.cluster, group)
        except (KohortError, TimeoutError) as error:
            if not self._told:
                self._told = True
                log.warning(
                    "group %s: brokers do not say how often it delivers a record (%s), so it is taken for "
                    "%d times, Apache Kafka's default: if share.delivery.count.limit is less, records are "
                    "archived without a dead letter. Give this client's principal the operation "
                    "DescribeConfigs on the group or the cluster",
                    group,
                    error,
                    USUAL_LIMIT,
                )
