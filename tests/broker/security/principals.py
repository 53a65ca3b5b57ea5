"""Who the broker takes its clients for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kohort.broker._requests import Handler, Request
from kohort.testing import RunningBroker


class _Spy:
    """Lets everything pass, and remembers whose it was."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def admit(self, handler: Handler, node: Any, request: Request) -> Any:
        self.seen.append(request.context.principal)
        return await handler(node, request)

    def is_open(self, *_about: Any) -> bool:
        return False


@contextmanager
def principals_of(broker: RunningBroker) -> Iterator[list[str]]:
    """The principal of each request that the broker carries out in the block."""
    node: Any = broker._broker._running().node
    before, spy = node.gate, _Spy()
    node.gate = spy
    try:
        yield spy.seen
    finally:
        node.gate = before
