"""An application of a share group: a process with the share consumer as it ships, which takes records one by
one, in batches or several at once, takes its time, fails, hangs, and ends in good order or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from ....consumer.share.consumer import ShareConsumer
from ....consumer.share.records import ShareRecord
from ....protocol import AcknowledgeType
from ....share_partitions import TopicPlace
from ..brokers._world import AnyWorld
from ._application_ledger import AppDelivery
from ._consuming_process import ApplicationWork, ConsumingProcess, Failed

_PAUSE_S: Final = 0.1
#: How likely each verdict is while there are faults.
_VERDICTS: Final = {AcknowledgeType.ACCEPT: 0.75, AcknowledgeType.RELEASE: 0.15, AcknowledgeType.REJECT: 0.1}
#: How likely it is that a record takes a while, and that its handler hangs until the faults are over.
_SLOW: Final = 0.08
_HANGS: Final = 0.01
_SLOW_S: Final = (0.05, 0.4, 0.9, 1.5, 3.0)
_ALL_ANSWERS_MS: Final = 1_000_000


class ConsumerMember(ConsumingProcess):
    """One process of the application."""

    def __init__(self, world: AnyWorld, work: ApplicationWork, name: str) -> None:
        self._leaving = asyncio.Event()
        self._speaking = asyncio.Event()
        super().__init__(world, work, name)

    def leave(self) -> None:
        super().leave()
        self._leaving.set()

    async def _live(self) -> None:
        """Read with one consumer until the process is to end, or the consumer ends with an error."""
        consumer = ShareConsumer(
            *self._work.topics,
            bootstrap=self.world.bootstrap,
            group=self._work.group,
            **self._habits.settings,
        )
        self._begin(consumer)
        await consumer.start()
        reading, flushing, leaving = tasks = [
            asyncio.ensure_future(each)
            for each in (self._read(consumer), self._flush(consumer), self._leaving.wait())
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._close(consumer)
            leaving.cancel()
            if not self._habits.drain_ms:
                # others wait for their handlers, though nothing that they say counts any more
                reading.cancel()
            ended = await asyncio.gather(reading, flushing, return_exceptions=True)
        self._look_for_tasks()
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _close(self, consumer: ShareConsumer) -> None:
        began, drain_ms = self.world.heap.now, self._habits.drain_ms
        timeout_ms = self.rng.choice((300, 5_000))
        self._begin_to_close()
        await consumer.close(drain_timeout_ms=drain_ms, timeout_ms=timeout_ms)
        self._look_at_close(began, drain_ms + timeout_ms)
        self._speaking.set()

    # --- records ------------------------------------------------------------------------------------------

    async def _read(self, consumer: ShareConsumer) -> None:
        if self._habits.reads == "batches":
            await self._read_batches(consumer)
        elif self._habits.reads == "parallel":
            async with asyncio.TaskGroup() as tasks:
                async for record in consumer:
                    tasks.create_task(self._handle(self._got(consumer, record)))
        else:
            async for record in consumer:
                await self._handle(self._got(consumer, record))
                await self._flush_some(consumer)

    async def _read_batches(self, consumer: ShareConsumer) -> None:
        say: dict[AcknowledgeType, Callable[[list[ShareRecord]], None]] = {
            AcknowledgeType.ACCEPT: consumer.accept,
            AcknowledgeType.RELEASE: consumer.release,
            AcknowledgeType.REJECT: consumer.reject,
        }
        async for batch in consumer.batches(self.rng.choice((None, 1, 10))):
            entries = [self._got(consumer, record) for record in batch]
            await self._take_time(consumer, entries)
            for entry in entries:
                self._say(entry, self._draw_verdict())
            # also of those that were lost meanwhile: it changes nothing
            for verdict, say_it in say.items():
                say_it([entry.record for entry in entries if entry.said is verdict])
            await self._flush_some(consumer)

    def _got(self, consumer: ShareConsumer, record: ShareRecord) -> AppDelivery:
        place, now = TopicPlace(record.place.topic_id, record.partition), consumer.state
        if now.locked + now.buffered > self._habits.most_locked:
            self.world.found("S16", f"{self} has {now}, at most {self._habits.most_locked}")
        self._work.on_records(place, record.topic, {record.offset: record.value or b""})
        told = self._habits.flushes == "always"
        return self._ledger.on_delivered(self.name, now.member_id, record, holds_ms=self._holds_ms, told=told)

    async def _handle(self, entry: AppDelivery) -> None:
        """Work on one record: it is accepted at the end, or released after an error."""
        verdict = self._draw_verdict()
        try:
            async with entry.record:
                try:
                    await self._take_time(None, [entry])
                except asyncio.CancelledError:
                    verdict = AcknowledgeType.RELEASE
                    raise
                finally:
                    self._say(entry, verdict)
                if verdict is AcknowledgeType.REJECT:
                    entry.record.reject()
                elif verdict is AcknowledgeType.RELEASE:
                    raise Failed
        except Failed:
            pass

    def _say(self, entry: AppDelivery, verdict: AcknowledgeType) -> None:
        """Note what is about to be said."""
        entry.said = verdict
        self._speaking.set()

    async def _take_time(self, consumer: ShareConsumer | None, entries: Sequence[AppDelivery]) -> None:
        if self.world.healed:
            return
        draw = self.rng.random()
        if draw < _SLOW:
            await asyncio.sleep(self.rng.choice(_SLOW_S))
            if consumer is not None and self.rng.random() < 0.5:
                consumer.renew([entry.record for entry in entries])
                await asyncio.sleep(self.rng.choice(_SLOW_S))
        elif draw < _SLOW + _HANGS:
            while not self.world.healed:  # noqa: ASYNC110
                await asyncio.sleep(_PAUSE_S)

    def _draw_verdict(self) -> AcknowledgeType:
        if self.world.healed:
            return AcknowledgeType.ACCEPT
        (verdict,) = self.rng.choices(list(_VERDICTS), list(_VERDICTS.values()))
        return verdict

    async def _flush(self, consumer: ShareConsumer) -> None:
        """Ask for the answers to all that is said, from the moment at which it is."""
        async with asyncio.TaskGroup() as tasks:
            while not self._is_closed:
                await self._speaking.wait()
                self._speaking.clear()
                if self._habits.flushes == "always":
                    tasks.create_task(self._flush_once(consumer, _ALL_ANSWERS_MS))

    async def _flush_some(self, consumer: ShareConsumer) -> None:
        if self._habits.flushes == "batches" and self.rng.random() < 0.5:
            await self._flush_once(consumer, self.rng.choice((20, 3_000)))

    async def _flush_once(self, consumer: ShareConsumer, timeout_ms: float) -> None:
        self._ledger.on_answers(await consumer.flush(timeout_ms))
