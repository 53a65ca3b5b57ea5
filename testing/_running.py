"""A broker in a thread of this process, for code that has no event loop of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..broker import Broker
    from ..coordinator import CoordinatorEvent
    from ._running_broker import RunningBroker, TestClock
    from ._steering import RequestFaults

#: What tests want otherwise than production does: groups form at once, members may ask for short sessions.
TEST_SETTINGS: Mapping[str, Any] = {
    "group_initial_rebalance_delay_ms": 0,
    "group_min_session_timeout_ms": 500,
}


@contextmanager
def running_broker(
    *,
    data: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    on_note: Callable[[CoordinatorEvent], None] | None = None,
    **settings: Any,
) -> Iterator[RunningBroker]:
    """A broker in its own thread and event loop, until the block ends.

    ``settings`` are Kafka's names with underscores. Two defaults are made for tests: groups form without
    the initial rebalance delay, and sessions may be as short as 500 ms. With ``data`` the topics outlive
    the block. ``on_note`` is called in the broker's thread. Raises what :class:`kohort.broker.Broker`
    raises.
    """
    from ..broker import Broker, BrokerSettings
    from ..broker.apis import load_all
    from ._running_broker import TestClock
    from ._steering import FaultyRouter, RequestFaults

    # checking settings costs the import of pydantic: not for our own
    chosen = {**TEST_SETTINGS, **settings} if settings else BrokerSettings(**TEST_SETTINGS)
    clock, faults = TestClock(), RequestFaults()
    broker = Broker(
        host=host,
        port=port,
        data=data,
        settings=chosen,
        on_note=on_note,
        clock_ms=clock,
        make_router=partial(FaultyRouter, faults),
    )
    # before there is a second thread: pytest parses what is imported, and Python cannot do so in two at once
    load_all()
    thread = _BrokerThread(broker, clock, faults)
    running = thread.begin()
    try:
        yield running
    finally:
        thread.end()


class _BrokerThread:
    """Runs a broker; hands errors of its start and its end to the caller."""

    def __init__(self, broker: Broker, clock: TestClock, faults: RequestFaults) -> None:
        self._broker = broker
        self._clock = clock
        self._faults = faults
        self._ready = threading.Event()
        self._running: RunningBroker | None = None
        self._error: BaseException | None = None
        self._stop: Callable[[], object] = _nothing_to_stop
        self._thread = threading.Thread(target=self._run, name="kohort-broker", daemon=True)

    def begin(self) -> RunningBroker:
        self._thread.start()
        self._ready.wait()
        if self._running is None:
            self._thread.join()
            assert self._error is not None, "a broker that did not start says why"
            raise self._error
        return self._running

    def end(self) -> None:
        self._stop()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        import asyncio

        from ..broker import loop_factory

        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        import asyncio

        from ._running_broker import RunningBroker

        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        async with self._broker as broker:
            assert broker.data is not None, "a broker that serves has a folder"
            self._stop = lambda: loop.call_soon_threadsafe(stop.set)
            self._running = RunningBroker(broker, loop, self._clock, self._faults)
            self._ready.set()
            await stop.wait()


def _nothing_to_stop() -> None:
    """The broker has not started yet."""
