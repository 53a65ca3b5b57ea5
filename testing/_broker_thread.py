"""A broker in a thread of its own, with an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from ..broker import Broker, BrokerSettings, loop_factory
from ..broker.apis import load_all
from ..client.surroundings import SURROUNDINGS, OpenConnection, Surroundings
from ..cluster import MetadataStore
from ..coordinator import CoordinatorEvent
from ._running_broker import RunningBroker, TestClock
from ._steering import FaultyRouter, RequestFaults

#: Settings for tests: groups form at once, members may have short sessions.
TEST_SETTINGS: Mapping[str, Any] = {
    "group_initial_rebalance_delay_ms": 0,
    "group_min_session_timeout_ms": 500,
}


class BrokerThread:
    """A broker in a thread of its own. ``settings`` override those for tests; ``open_connection`` opens its
    connections to other brokers.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        data: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        on_event: Callable[[CoordinatorEvent], None] | None = None,
        open_store: Callable[[], Awaitable[MetadataStore]] | None = None,
        open_connection: OpenConnection | None = None,
    ) -> None:
        # checking settings imports pydantic, which the defaults of tests do not need
        chosen = {**TEST_SETTINGS, **settings} if settings else BrokerSettings(**TEST_SETTINGS)
        self._clock, self._faults = TestClock(), RequestFaults()
        self.broker: Broker = Broker(
            host=host,
            port=port,
            data=data,
            settings=chosen,
            on_event=on_event,
            clock_ms=self._clock,
            make_router=partial(FaultyRouter, self._faults),
            open_store=open_store,
        )
        # before the second thread starts: pytest rewrites modules on import, which is not safe in two threads
        load_all()
        self._open_connection = open_connection
        #: The event loop, once the broker serves.
        self.loop: asyncio.AbstractEventLoop
        self._begun: Future[RunningBroker] = Future()
        self._ended: Future[None] = Future()
        self._stop: Callable[[], object] = lambda: None
        self._is_killed = False
        self._thread = threading.Thread(target=self._run, name="kohort-broker", daemon=True)

    def __repr__(self) -> str:
        return f"BrokerThread({self.broker})"

    def begin(self) -> None:
        """Start the broker; return without waiting until it serves."""
        self._thread.start()

    def wait_until_started(self) -> RunningBroker:
        """Wait until the broker serves and return it. Raises the errors of its start."""
        try:
            return self._begun.result()
        except BaseException:
            self._thread.join()
            raise

    def start(self) -> RunningBroker:
        """Start the broker; return once it serves. Raises the errors of its start."""
        self.begin()
        return self.wait_until_started()

    def end(self, *, kill: bool = False) -> None:
        """Stop the broker, cleanly or as if killed. Raises its errors."""
        self._is_killed = kill
        self._stop()
        self._thread.join()
        self._ended.result()

    async def _serve(self) -> None:
        self.loop = loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        if self._open_connection is not None:
            SURROUNDINGS.set(Surroundings(open_connection=self._open_connection))
        async with self.broker:
            self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
            self._begun.set_result(RunningBroker(self.broker, loop, self._clock, self._faults))
            await stopped.wait()
            if self._is_killed:
                await self.broker.kill()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._serve())
            self._ended.set_result(None)
        except BaseException as error:
            for future in (self._ended, self._begun):
                if not future.done():
                    future.set_exception(error)
