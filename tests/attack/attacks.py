"""What one client, or many, can do to a broker. Each attack is under way when its context is entered.

``python -m tests.attack.attacks NAME PORT COUNT`` runs one in a process of its own, so that it costs
those who are attacked nothing but what the broker spends on it: a line ``begun``, one with the counts
once it has done all it does, and the end when its standard input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from kohort.protocol import ApiKey, ErrorCode, decode_response, encode_request
from tests.attack.victim import Stream, commit
from tests.broker.wire import Wire, create_topic, fetch_fields, produce
from tests.broker.wire import batch as small_batch
from tests.messages import request_of

Attack = Callable[[int, int], AbstractAsyncContextManager["Story"]]

ANNOUNCED_BYTES = 104_857_600
METADATA_BYTES = 1 << 20
TOGETHER = 200


class Story:
    """What came of it; ``done`` is set once the attack has done all it does."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.done = asyncio.Event()

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number


async def _many(port: int, count: int, **options: Any) -> list[Stream]:
    streams: list[Stream] = []
    while len(streams) < count:
        wanted = min(TOGETHER, count - len(streams))
        numbers = range(len(streams), len(streams) + wanted)
        streams += await asyncio.gather(*(Stream.open(port, 1 + number, **options) for number in numbers))
    return streams


def _close(streams: list[Stream]) -> None:
    for stream in streams:
        stream.close()


@asynccontextmanager
async def announced(port: int, count: int) -> AsyncIterator[Story]:
    """Connections that each announce 100 MiB and send 10 bytes."""
    story = Story()
    streams = await _many(port, count)
    for stream in streams:
        stream.writer.write(struct.pack(">i", ANNOUNCED_BYTES) + bytes(10))
    story.count("connections", len(streams))
    story.done.set()
    yield story
    _close(streams)


@asynccontextmanager
async def idle(port: int, count: int) -> AsyncIterator[Story]:
    """Connections that say nothing."""
    story = Story()
    streams = await _many(port, count)
    story.count("connections", len(streams))
    story.done.set()
    yield story
    _close(streams)


def _join(group: str, metadata: bytes) -> Any:
    make = request_of(ApiKey.JOIN_GROUP)
    return make(
        version=3,
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="attack",
        protocols=[make.JoinGroupRequestProtocol(version=3, name="p", metadata=metadata)],
    )


@asynccontextmanager
async def members(port: int, count: int) -> AsyncIterator[Story]:
    """Members of one group that each bring 1 MiB of metadata."""
    story = Story()
    streams = await _many(port, count)
    request = bytes(encode_request(3, 1, "attacker", _join("crowded", bytes(METADATA_BYTES))))

    async def join(stream: Stream) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            stream.writer.write(request)
            await stream.writer.drain()
            error = decode_response(ApiKey.JOIN_GROUP, 3, await stream.frame())[1].error_code
            story.count(ErrorCode(error).name)

    def answered(_: object) -> None:
        # those that were taken in wait for the rebalance to end
        if sum(task.done() for task in tasks) >= count - 64:
            story.done.set()

    tasks = [asyncio.create_task(join(stream)) for stream in streams]
    for task in tasks:
        task.add_done_callback(answered)
    story.count("members", len(streams))
    yield story
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    _close(streams)


def prepare_large(bootstrap: str) -> None:
    """48 MiB of records, for those who will not read them."""
    with Wire(bootstrap, timeout_s=60) as wire:
        create_topic(wire, "large")
        for _ in range(48):
            values = small_batch(1, key=bytes(1_000_000))
            assert produce(wire, "large", values).error_code == 0


@asynccontextmanager
async def slow_readers(port: int, count: int) -> AsyncIterator[Story]:
    """Connections that ask for 48 MiB and read nothing."""
    await asyncio.to_thread(prepare_large, f"127.0.0.1:{port}")
    story = Story()
    streams = await _many(port, count, receive_buffer=4096)
    fields = fetch_fields("large", 0, max_bytes=50 << 20, partition_max_bytes=50 << 20)
    request = bytes(encode_request(12, 1, "attacker", request_of(ApiKey.FETCH)(version=12, **fields)))
    for stream in streams:
        stream.writer.write(request)
        stream.writer.transport.pause_reading()  # type: ignore[attr-defined]
    story.count("connections", len(streams))
    story.done.set()
    yield story
    _close(streams)


@asynccontextmanager
async def revolving_door(port: int, count: int) -> AsyncIterator[Story]:
    """One member that joins and leaves ``count`` times, as fast as it can."""
    story = Story()
    stream = await Stream.open(port)
    leave = request_of(ApiKey.LEAVE_GROUP)

    async def loop() -> None:
        for _ in range(count):
            answer = await stream.call(ApiKey.JOIN_GROUP, 3, _join("door", b"m"))
            story.count("joins")
            if not answer.error_code:
                body = leave(version=2, group_id="door", member_id=answer.member_id)
                await stream.call(ApiKey.LEAVE_GROUP, 2, body)
        story.done.set()

    task = asyncio.create_task(loop())
    yield story
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    stream.close()


@asynccontextmanager
async def group_ids(port: int, count: int) -> AsyncIterator[Story]:
    """One client that commits for ``count`` groups, as fast as it can."""
    story = Story()
    stream = await Stream.open(port)
    template = bytes(encode_request(8, 1, "attacker", commit("000000000", 1)))
    place = template.index(b"000000000")
    before, behind = template[:place], template[place + 9 :]

    async def send() -> None:
        for start in range(0, count, 100):
            numbers = range(start, min(start + 100, count))
            stream.writer.write(b"".join(before + b"%09d" % number + behind for number in numbers))
            await stream.writer.drain()

    async def receive() -> None:
        for _ in range(count):
            await stream.frame()
            story.count("groups")
        story.done.set()

    tasks = [asyncio.create_task(send()), asyncio.create_task(receive())]
    yield story
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    stream.close()


ATTACKS: dict[str, Attack] = {
    "announced": announced,
    "idle": idle,
    "members": members,
    "slow-readers": slow_readers,
    "revolving-door": revolving_door,
    "group-ids": group_ids,
}


async def _main(name: str, port: int, count: int) -> None:
    async with ATTACKS[name](port, count) as story:
        print("begun", flush=True)
        told = asyncio.create_task(story.done.wait())
        ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        await asyncio.wait([told, ended], return_when=asyncio.FIRST_COMPLETED)
        print(json.dumps(story.counts), flush=True)
        await ended
        told.cancel()


def many_files() -> None:
    """Let this process, and those it starts, have as many connections as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65_536)), hard))


if __name__ == "__main__":
    many_files()
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
