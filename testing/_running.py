"""A broker in a thread of this process, for code that has no event loop of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..coordinator import CoordinatorEvent
    from ._running_broker import RunningBroker


@contextmanager
def running_broker(
    *,
    data: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    on_event: Callable[[CoordinatorEvent], None] | None = None,
    **settings: object,
) -> Iterator[RunningBroker]:
    """A broker in its own thread and event loop, until the block ends.

    ``settings`` are Kafka's names with underscores. Two defaults differ, for tests: groups form without
    the initial rebalance delay, and sessions may be as short as 500 ms. With ``data`` the topics outlive
    the block. ``on_event`` is called in the broker's thread. Raises what :class:`kohort.broker.Broker`
    raises.
    """
    from ._broker_thread import BrokerThread

    thread = BrokerThread(settings, data=data, host=host, port=port, on_event=on_event)
    running = thread.start()
    try:
        yield running
    finally:
        thread.end()
