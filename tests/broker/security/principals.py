"""Who the broker takes its clients for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kohort.broker.apis import AnyRequest
from kohort.broker.authorizer import Authorizer
from kohort.testing import RunningBroker


class _Spy:
    """Lets everything pass, and remembers whose it was."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.authorizer = Authorizer()

    async def admit(self, node: Any, request: AnyRequest) -> Any:
        self.seen.append(request.context.principal)
        return await request.api.handler(node, request)

    def is_open(self, *_about: Any) -> bool:
        return False


@contextmanager
def principals_of(broker: RunningBroker) -> Iterator[list[str]]:
    """The principal of each request that the broker carries out in the block."""
    router: Any = broker._broker._require_running().server.router
    before, spy = router._gate, _Spy()
    router._gate = spy
    try:
        yield spy.seen
    finally:
        router._gate = before
