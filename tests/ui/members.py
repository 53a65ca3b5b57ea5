"""Members of groups for the tests of the page: they join, read and stay until the block ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager

from kohort.admin import GroupAdmin
from kohort.client import Cluster
from kohort.consumer import AsyncGroupConsumer
from kohort.testing import RunningBroker
from tests.admin.conftest import stable


@contextmanager
def grouped(
    broker: RunningBroker, group: str, topic: str, clients: Sequence[str], *, partitions: int = 3
) -> Iterator[None]:
    """Members with these client ids, who joined one after the other; their loop runs in a thread."""
    ready, leave, failed = threading.Event(), threading.Event(), []

    async def run() -> None:
        async with Cluster(broker.bootstrap) as cluster:
            await cluster.create_topics({topic: partitions})
        async with AsyncExitStack() as stack, GroupAdmin(broker.bootstrap) as admin:
            for number, client in enumerate(clients):
                consumer = AsyncGroupConsumer(
                    topic,
                    bootstrap=broker.bootstrap,
                    group=group,
                    client_id=client,
                    assignor="range",
                    heartbeat_interval_ms=100,
                    auto_offset_reset="earliest",
                )
                await stack.enter_async_context(consumer)
                await stable(admin, group, number + 1)
            ready.set()
            await asyncio.to_thread(leave.wait)

    def member() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=member)
    thread.start()
    try:
        assert ready.wait(60)
        assert not failed, failed
        yield
    finally:
        leave.set()
        thread.join(60)
    assert not failed, failed
