"""A broker in this process that is given more and more of something, and the lines of Python it runs.

No clock is read: the figures are the same on a busy machine.
"""

from __future__ import annotations

import asyncio
import gc
import struct
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from kohort.broker import Broker
from kohort.protocol import ApiKey, ErrorCode, decode_response, encode_request
from tests.broker.wire import creatable
from tests.messages import request_of
from tests.waiting import until

#: Of one request after another until what it needs is there.
_TRIES: Final = 2_000
_PAUSE_S: Final = 0.01

#: Neither waits, nor refuses for the number of what there is.
_SETTINGS: Final[dict[str, Any]] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.max.size": 10_000,
    "group.share.max.size": 1_000,
    "max.connections.per.ip": 100_000,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    # nothing happens by itself meanwhile
    "log.retention.check.interval.ms": 3_600_000,
    "log.cleaner.backoff.ms": 3_600_000,
    "group.min.session.timeout.ms": 1,
}

_NOT_YET: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Lines:
    """Counts the lines of kohort's Python that this thread runs in ``counted`` blocks."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        gc.collect()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)

    def _called(self, frame: FrameType, _event: str, _argument: object) -> Any:
        return self._ran if frame.f_globals.get("__name__", "").startswith("kohort.") else None

    def _ran(self, _frame: FrameType, event: str, _argument: object) -> Any:
        self.count += event == "line"
        return self._ran


def frame_of(key: ApiKey, version: int, /, **fields: Any) -> bytes:
    """A request as bytes."""
    return bytes(encode_request(version, 1, "growing", request_of(key)(version=version, **fields)))


class Link:
    """A connection, and the requests that are sent on it one behind the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, frames: Iterable[bytes]) -> None:
        self._writer.write(b"".join(frames))

    async def receive(self) -> bytes:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(size)

    async def ask(self, frames: Sequence[bytes]) -> list[bytes]:
        """The answers to requests that are all sent at once."""
        self.send(frames)
        return [await self.receive() for _ in frames]

    async def call(self, key: ApiKey, version: int, /, **fields: Any) -> Any:
        (answer,) = await self.ask([frame_of(key, version, **fields)])
        return decode_response(key, version, answer)[1]

    def drop(self) -> None:
        """The peer vanishes."""
        self._writer.transport.abort()


class GrowingBroker:
    """``link`` is a connection to it that is always there."""

    def __init__(self, broker: Broker, lines: Lines, stack: AsyncExitStack) -> None:
        self.parts = broker._require_running()
        self.port, self.lines, self._stack = broker.port, lines, stack
        self.link: Link

    async def connect(self) -> Link:
        link = Link(*await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24))
        self._stack.callback(link.drop)
        return link

    async def until_done(
        self, key: ApiKey, version: int, is_done: Callable[[Any], bool], **fields: Any
    ) -> Any:
        """The first answer that is what is wanted: internal topics are being made."""
        for _ in range(_TRIES):
            answer = await self.link.call(key, version, **fields)
            if is_done(answer):
                return answer
            await asyncio.sleep(_PAUSE_S)
        raise AssertionError(answer)

    async def until_served(self, key: ApiKey, version: int, **fields: Any) -> Any:
        """The answer without an error of its own."""
        return await self.until_done(key, version, lambda told: told.error_code not in _NOT_YET, **fields)

    async def create(self, *topics: tuple[str, int]) -> None:
        wanted = [creatable(name, count) for name, count in topics]
        told = await self.link.call(ApiKey.CREATE_TOPICS, 7, topics=wanted, timeout_ms=60_000)
        assert not any(each.error_code for each in told.topics), told

    async def until_coordinated(self) -> None:
        """Groups have a coordinator that serves."""
        await self.until_done(
            ApiKey.FIND_COORDINATOR,
            4,
            lambda told: not told.coordinators[0].error_code,
            key_type=0,
            coordinator_keys=["g"],
        )
        await self.until_served(
            ApiKey.HEARTBEAT, 4, group_id="g", generation_id=1, member_id="m", group_instance_id=None
        )

    async def until_unconnected(self, left: int) -> None:
        """Only so many connections are left."""
        await until(lambda: len(self.parts.server.peers()) <= left)


@asynccontextmanager
async def growing_broker(data: Path, lines: Lines, **settings: Any) -> AsyncIterator[GrowingBroker]:
    told = {**_SETTINGS, **{name.replace("_", "."): value for name, value in settings.items()}}
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(Broker(port=0, data=data, settings=told))
        made = GrowingBroker(broker, lines, stack)
        made.link = await made.connect()
        yield made
