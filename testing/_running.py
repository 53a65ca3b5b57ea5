"""A broker in a thread of this process, for code that has no event loop of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..coordinator import CoordinatorEvent
    from ._running_broker import RunningBroker

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
    import asyncio
    from concurrent.futures import Future

    from ..broker import Broker, BrokerSettings, loop_factory
    from ..broker.apis import load_all
    from ._running_broker import RunningBroker, TestClock
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
    begun: Future[tuple[RunningBroker, Callable[[], object]]] = Future()
    ended: Future[None] = Future()

    async def serve() -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        async with broker:
            running = RunningBroker(broker, loop, clock, faults)
            begun.set_result((running, lambda: loop.call_soon_threadsafe(stopped.set)))
            await stopped.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(serve())
            ended.set_result(None)
        except BaseException as error:
            for future in (ended, begun):
                if not future.done():
                    future.set_exception(error)

    thread = threading.Thread(target=run, name="kohort-broker", daemon=True)
    thread.start()
    try:
        running, stop = begun.result()
        try:
            yield running
        finally:
            stop()
    finally:
        thread.join()
        ended.result()
