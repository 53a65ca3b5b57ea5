"""For the end-to-end tests of the consumer: records to read, members to read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer
from tests.consumer.handover_bench import HandoverBench, handover_bench
from tests.consumer.members import Maker

#: Sessions that a busy machine does not end; heartbeats that tell soon.
QUICK: dict[str, Any] = {
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 200,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 100,
    "metadata_max_age_ms": 1_000,
}


#: For files whose tests say how groups behave, whoever assigns.
both_protocols = pytest.mark.parametrize("protocol", ["classic", "consumer"])

#: For a member that is to die: short enough for a test to see its session end.
SHORT_SESSION_MS = 2_000


@pytest.fixture
def protocol() -> str:
    """The protocol of consumers that are made with ``QUICK``; ``both_protocols`` gives either."""
    return "classic"


@pytest.fixture(autouse=True)
def _spoken(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUICK, "protocol", protocol)


@pytest.fixture
async def member(bootstrap: str) -> AsyncIterator[Maker]:
    """``await member(topic, group=...)`` is a consumer that has started; closed after the test."""
    async with AsyncExitStack() as stack:

        async def make(*topics: str, **config: Any) -> AsyncGroupConsumer:
            consumer = AsyncGroupConsumer(*topics, **{"bootstrap": bootstrap, **QUICK, **config})
            return await stack.enter_async_context(consumer)

        yield make


@pytest.fixture
async def bench() -> AsyncIterator[HandoverBench]:
    async with handover_bench() as bench:
        yield bench
