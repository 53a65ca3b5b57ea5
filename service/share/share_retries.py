"""Retry topics of a service of a share group: a consumer group reads them, since there records can wait
without a lock. Its name is that of the share group with ``.retry`` behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ...consumer.config import ConsumerConfig, consumer_config
from ...protocol import KohortError
from ...settings import settings_of
from .._options import longest_drain_ms, rebalance_ms_for
from ..handlers.handler import Handler, HandlerFunction
from ..reporting.metrics import HandlerNumbers, Snapshot
from ..run.engine import Engine

_GROUP_NAMES = frozenset({"group", "group_id"})


def retries_group(group: str) -> str:
    """Name of the consumer group that reads the retry topics of a share group's service."""
    return f"{group}.retry"


def retries_config(config: Mapping[str, object], group: str, drain_ms: int) -> dict[str, object]:
    """Settings of that group's consumer: those of the share consumer that it has, too. A rebalance waits for
    the service's drain, whose time a share group does not bound.
    """
    names = {name for each in settings_of(ConsumerConfig).values() for name in each.names(each.scope)}
    kept = {name: value for name, value in config.items() if name in names - _GROUP_NAMES}
    made = {**kept, "group": retries_group(group)}
    if drain_ms > longest_drain_ms(consumer_config(**made).rebalance_ms):
        made["rebalance_timeout_ms"] = rebalance_ms_for(drain_ms)
    return made


def split_handlers(handlers: Sequence[Handler]) -> tuple[list[Handler], list[Handler]]:
    """The handlers as they read the share group's topics, and as they read retry topics; their counters are
    the same.
    """
    shared = [replace(handler, reads_retries=False) for handler in handlers]
    return shared, [replace(handler, topics=()) for handler in handlers if handler.retry_topics]


class SharedAndRetries:
    """The runs of a share group and of the consumer group of its retry topics, as one."""

    def __init__(self, shared: Engine, retries: Engine) -> None:
        self.group = shared.group
        self._shared, self._retries = shared, retries
        self._both = shared, retries

    @property
    def started(self) -> bool:
        """As of Engine."""
        return self._shared.started

    @property
    def failure(self) -> Exception | None:
        """The error that stops the service."""
        return self._shared.failure or self._retries.failure

    async def start(self) -> None:
        """As of Engine, both or none."""
        await self._retries.start()
        try:
            await self._shared.start()
        except BaseException:
            self._retries.stop("its share group cannot be joined")
            with suppress(KohortError):
                await self._retries.run()
            raise

    async def run(self) -> None:
        """Until both have ended: when one ends, the other stops. Raises the failure."""
        tasks = [asyncio.create_task(each.run(), name=f"kohort {each.group}") for each in self._both]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            self.stop("its other part has ended")
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        for task in tasks:
            task.result()

    def stop(self, reason: str) -> None:
        """Ask both for a graceful end."""
        for each in self._both:
            each.stop(reason)

    def hold(self, function: HandlerFunction, held: bool) -> None:
        """Pause the handler that is this function in both, or resume it."""
        for each in self._both:
            each.hold(function, held)

    @property
    def finished(self) -> int:
        """Number of records finished so far."""
        return sum(each.finished for each in self._both)

    @property
    def postponed(self) -> int:
        """How many of these come again; the counters of both are the same."""
        return self._shared.postponed

    def unready(self) -> str | None:
        """As of Engine."""
        return self._shared.unready() or self._retries.unready()

    def complaint(self) -> str | None:
        """As of Engine."""
        return self._shared.complaint() or self._retries.complaint()

    def remarks(self) -> list[str]:
        """As of Engine."""
        return [remark for each in self._both for remark in each.remarks()]

    def snapshot(self, live: bool) -> Snapshot:
        """Numbers for /metrics, under the share group's name."""
        now, retries = (each.snapshot(live) for each in self._both)
        waiting = {each.handler.function: each for each in retries.handlers}
        return replace(
            now,
            handlers=[_add_numbers(each, waiting.get(each.handler.function)) for each in now.handlers],
            consumed={**now.consumed, **retries.consumed},
            lag={**now.lag, **retries.lag},
            outage_s=max(now.outage_s, retries.outage_s),
        )


def _add_numbers(shared: HandlerNumbers, retries: HandlerNumbers | None) -> HandlerNumbers:
    if retries is None:
        return shared
    return HandlerNumbers(
        shared.handler,
        shared.backlog + retries.backlog,
        shared.in_flight + retries.in_flight,
        max(shared.oldest_call_s, retries.oldest_call_s),
        shared.long_calls + retries.long_calls,
    )
