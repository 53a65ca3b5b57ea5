"""Somebody who uses the broker while others attack it: commits, heartbeat-like look-ups, each timed."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from typing import Any

from kohort.protocol import ApiKey, decode_response, encode_request
from tests.broker.wire import commit_fields
from tests.messages import request_of

GROUP, TOPIC = "victim", "victim"
PACE_S = 0.005


class Stream:
    """A connection on asyncio: sends frames, reads frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int, number: int = 0, *, receive_buffer: int | None = None) -> Stream:
        """To a broker on this machine, retried while its queue of new connections is full. Each 500 numbers
        come from an address of their own, since one address has so many connections.
        """
        here = f"127.0.1.{1 + number // 500}", 0
        for _ in range(50):
            try:
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, limit=1 << 16, local_addr=here if number else None
                )
            except OSError:
                await asyncio.sleep(0.1)
                continue
            if receive_buffer is not None:
                link = writer.get_extra_info("socket")
                link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            return cls(reader, writer)
        raise ConnectionError(f"nobody lets us in at port {port}")

    async def call(self, key: ApiKey, version: int, body: Any) -> Any:
        self.writer.write(encode_request(version, 1, "victim", body))
        return decode_response(key, version, await self.frame())[1]

    async def frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    def close(self) -> None:
        self.writer.transport.abort()


def commit(group: str, offset: int, topic: str = TOPIC) -> Any:
    """OffsetCommit of a group without members."""
    return request_of(ApiKey.OFFSET_COMMIT)(**commit_fields(group, topic, offset))


def look(group: str) -> Any:
    """OffsetFetch v5 of everything a group has."""
    return request_of(ApiKey.OFFSET_FETCH)(version=5, group_id=group, topics=None)


class Victim:
    """Commits and looks, by turns, every 5 ms; ``times_ms`` has what each took."""

    def __init__(self, port: int) -> None:
        self.times_ms: list[float] = []
        self.wrong: list[str] = []
        self._port = port
        self._offset = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Victim:
        self._stream = await Stream.open(self._port)
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None, "entered"
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._stream.close()

    def begin(self) -> None:
        """Forget the times so far."""
        self.times_ms.clear()

    def p99_ms(self) -> float:
        """Of all since ``begin``; the request that still waits counts with what it has waited."""
        times = sorted([*self.times_ms, (time.perf_counter() - self._since) * 1000])
        return times[int(len(times) * 0.99)] if len(times) > 100 else times[-1]

    async def _run(self) -> None:
        self._since = time.perf_counter()
        while True:
            await asyncio.sleep(PACE_S)
            self._since = time.perf_counter()
            if self._offset % 2:
                answer = await self._stream.call(ApiKey.OFFSET_FETCH, 5, look(GROUP))
                found = answer.topics[0].partitions[0].committed_offset
                if found != self._offset:
                    self.wrong.append(f"committed {self._offset}, found {found}")
                self._offset += 1
            else:
                answer = await self._stream.call(ApiKey.OFFSET_COMMIT, 8, commit(GROUP, self._offset + 1))
                if answer.topics[0].partitions[0].error_code:
                    self.wrong.append(str(answer))
                self._offset += 1
            self.times_ms.append((time.perf_counter() - self._since) * 1000)


def resident_mib(process_id: int) -> float:
    """Memory that a process has now, in MiB."""
    with open(f"/proc/{process_id}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * 4096 / (1 << 20)
