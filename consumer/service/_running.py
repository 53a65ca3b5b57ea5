"""A handler at work: its lanes, its threads, and the brake on its topics when it falls behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ._handlers import Handler, SendDeadLetter
from ._lanes import LaneScheduler, Partition

if TYPE_CHECKING:
    from ...protocol import TopicPartition
    from ..record import Record

#: Least backlog at which a handler's topics pause: enough that it never waits for the next fetch.
MIN_BACKLOG = 1_000

log = logging.getLogger("kohort.consumer.service")


class RunningHandler:
    """Feeds one handler. ``brake(handler, on)`` is called when its backlog gets high, and low again."""

    def __init__(
        self,
        handler: Handler,
        *,
        done: Callable[[Record], None],
        send: SendDeadLetter,
        on_failure: Callable[[Exception], None],
        brake: Callable[[RunningHandler, bool], None],
    ) -> None:
        self.handler = handler
        self.braked = False
        self.finished = 0
        self._expects_keys = handler.lanes == "key"
        self.high = max(MIN_BACKLOG, 4 * handler.concurrency * handler.batch)
        self._low = self.high // 2
        self._done = done
        self._brake = brake
        self._send = send
        self._executor = None if handler.is_async else _threads(handler)
        self.lanes = LaneScheduler(
            self._run,
            concurrency=handler.concurrency,
            batch=handler.batch,
            done=self._finish,
            on_failure=on_failure,
        )

    def hand_over(self, records: Iterable[Record]) -> int:
        """Put records of this handler's topics into their lanes; how many there were."""
        add, lane_of = self.lanes.add, self.handler.lane_of
        count = 0
        for count, record in enumerate(records, 1):  # noqa: B007 - the last count is what is asked for
            lane = lane_of(record)
            if lane is None and self._expects_keys:
                self._tell_of_missing_keys(record)
            add((record.topic, record.partition), lane, record)
        if self.lanes.backlog > self.high and not self.braked:
            self.braked = True
            self._brake(self, True)
        return count

    def _tell_of_missing_keys(self, record: Record) -> None:
        """Once: whether producers set keys is not to be known before their records come."""
        self._expects_keys = False
        log.warning(
            'handler %s has lanes="key", but the record of %s-%d at offset %d has no key: such records '
            "are handled one after the other in each partition. Have their producer set keys, or take "
            'lanes="partition", or lanes="none" where order does not matter',
            self.handler.name,
            record.topic,
            record.partition,
            record.offset,
        )

    async def release(self, partitions: Iterable[TopicPartition] | None, timeout_ms: float) -> None:
        """Bring partitions (None: all) to an end within the time; what had to be cancelled is logged."""
        if partitions is None:
            unfinished = await self.lanes.release_all(timeout_ms / 1000)
        else:
            mine: list[Partition] = [
                (p.topic, p.partition) for p in partitions if p.topic in self.handler.topics
            ]
            unfinished = await self.lanes.release(mine, timeout_ms / 1000)
        for each in unfinished:
            topic, partition = each.partition
            log.warning(
                "handler %s had not finished %s-%d at offset %d after %.1f s and was cancelled: "
                "the record is not committed and will be handled again",
                self.handler.name,
                topic,
                partition,
                each.offset,
                timeout_ms / 1000,
            )
        self._let_go_of_brake()

    async def close(self) -> None:
        """Stop the workers; threads that still run are left to end by themselves."""
        await self.lanes.close()
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    async def _run(self, records: list[Record], attempt: int) -> float | None:
        return await self.handler.run(records, attempt, self._executor, self._send)

    def _finish(self, record: Record) -> None:
        self._done(record)
        self.finished += 1
        if self.braked:
            self._let_go_of_brake()

    def _let_go_of_brake(self) -> None:
        if self.braked and self.lanes.backlog <= self._low:
            self.braked = False
            self._brake(self, False)


def _threads(handler: Handler) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(handler.concurrency, thread_name_prefix=f"kohort-{handler.name}")
