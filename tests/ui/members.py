"""Members of groups for the tests of the page: they join, read and stay until the block ends."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager

from kohort.admin import GroupAdmin
from kohort.client import Cluster
from kohort.consumer import AsyncGroupConsumer
from kohort.testing import RunningBroker
from tests.admin.conftest import stable


@contextmanager
def grouped(
    broker: RunningBroker, group: str, topic: str, clients: Sequence[str], *, partitions: int = 3
) -> Iterator[Callable[[str], None]]:
    """Members with these client ids, who joined one after the other; their loop runs in a thread. Calling
    what is given with "app" makes one more, with "-app" one less.
    """
    ready, failed = threading.Event(), []
    coming: queue.Queue[str | None] = queue.Queue()
    for client in clients:
        coming.put(client)

    async def run() -> None:
        async with Cluster(broker.bootstrap) as cluster:
            await cluster.create_topics({topic: partitions})
        async with AsyncExitStack() as stack, GroupAdmin(broker.bootstrap) as admin:
            there: dict[str, AsyncGroupConsumer] = {}
            while (client := await asyncio.to_thread(coming.get)) is not None:
                if client.startswith("-"):
                    await there.pop(client[1:]).close()
                    continue
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
                there[client] = consumer
                await stable(admin, group, len(there))
                if len(there) == len(clients):
                    ready.set()

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
        yield coming.put
    finally:
        coming.put(None)
        thread.join(60)
    assert not failed, failed
