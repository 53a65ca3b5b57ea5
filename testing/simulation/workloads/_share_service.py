"""A service on a share group, as it ships. Its handlers take their time, fail now and then or always, hang;
records that they cannot handle go to a dead-letter topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from zlib import crc32

from ....consumer import Record
from ....protocol import AcknowledgeType
from ....service import ConsumerService, LockedRecord, Retry
from ....share_partitions import TopicPlace
from ..brokers._plan import Values
from ..brokers._world import AnyWorld
from ._application_ledger import AppDelivery
from ._consuming_process import ApplicationWork, ConsumingProcess, Failed

#: The topic of dead letters.
LETTERS: Final = "letters"
#: One record of so many is never handled.
_POISON: Final = 37
_FAILS: Final = 0.15
_SLOW: Final = 0.1
_HANGS: Final = 0.01
_SLOW_S: Final = (0.05, 0.4, 0.9, 1.5)
_PAUSE_S: Final = 0.1
#: What a stop takes at most, beside the drain.
_END_MS: Final = 12_500


class ServiceMember(ConsumingProcess):
    """One process with a service."""

    def __init__(self, world: AnyWorld, work: ApplicationWork, name: str) -> None:
        self._service: ConsumerService | None = None
        self._stopped_ms = 0
        self._retries: list[int] = world.plan.retries
        super().__init__(world, work, name)
        self._drain_ms = self.rng.choice((200, 2_000))
        self._concurrency = self.rng.choice((1, 4, 16))
        self._in_batches = self.rng.random() < 0.3

    def leave(self) -> None:
        super().leave()
        self.loop.call_soon(self._stop)

    def _stop(self) -> None:
        self._begin_to_close()
        self._stopped_ms = self.world.heap.now
        if self._service is not None:
            self._service.stop("asked to")

    async def _live(self) -> None:
        if self._leaves:
            return
        settings: Values = self._habits.settings | {"drain_timeout_ms": self._drain_ms}
        service = self._service = ConsumerService(
            bootstrap=self.world.bootstrap, group=self._work.group, group_type="share", **settings
        )
        options: Values = {
            "retry": Retry(attempts=3, backoff_ms=20, max_backoff_ms=200),
            "dead_letter": LETTERS,
            "concurrency": self._concurrency,
        }
        if self._retries:
            options |= {"retry_after_ms": self._retries}
        if self._in_batches:
            service.batch_handler(*self._work.topics, max_records=5, **options)(self._handle)
        else:
            service.handler(*self._work.topics, **options)(self._handle_one)
        looking = asyncio.ensure_future(self._find_consumer(service))
        try:
            await service.serve()
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            self._service = None
            if self._closes:
                self._look_at_close(self._stopped_ms, self._drain_ms + _END_MS)
            self._look_for_tasks()

    async def _find_consumer(self, service: ConsumerService) -> None:
        """Find out which consumer the service has."""
        while service._engine is None or service._engine._share is None:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        self._begin(service._engine._share._consumer)

    # --- records ------------------------------------------------------------------------------------------

    async def _handle_one(self, record: Record) -> None:
        await self._handle([record])

    async def _handle(self, records: Sequence[Record]) -> None:
        entries = [self._got(record) for record in records if isinstance(record, LockedRecord)]
        await self._take_time()
        if not self.world.healed and self.rng.random() < _FAILS:
            raise Failed
        if any(crc32(record.value or b"") % _POISON == 0 for record in records):
            raise Failed
        for entry in entries:
            entry.said = AcknowledgeType.ACCEPT
        self._ledger.on_retried(
            record.value or b"" for record in records if not isinstance(record, LockedRecord)
        )

    def _got(self, record: LockedRecord) -> AppDelivery:
        share = record.share
        entry = self._ledger.delivery_of(share)
        if entry is None:
            place = TopicPlace(share.place.topic_id, share.partition)
            self._work.on_records(place, share.topic, {share.offset: share.value or b""})
            entry = self._ledger.on_delivered(
                self.name, self.member_id, share, holds_ms=self._holds_ms, told=False
            )
        return entry

    async def _take_time(self) -> None:
        draw = 1.0 if self.world.healed else self.rng.random()
        if draw < _SLOW:
            await asyncio.sleep(self.rng.choice(_SLOW_S))
        elif draw < _SLOW + _HANGS:
            while not self.world.healed:  # noqa: ASYNC110
                await asyncio.sleep(_PAUSE_S)
