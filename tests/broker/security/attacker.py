"""Strangers at a broker's listeners, for a while, each kind at least once.

``python -m tests.broker.security.attacker SECONDS JSON``: the JSON says which attacks, by name, and on which
addresses. A line of JSON tells how often each was done and how often it got in, which must be never.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import struct
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from kohort.protocol import ApiKey, decode_response, encode_request
from tests.broker.security.issuer import message
from tests.broker.security.scram_client import ScramClient
from tests.messages import request_of

#: Connections that each attack has open at once.
AT_ONCE = 8

#: How long an attacker waits for an answer, in seconds.
PATIENCE_S = 5.0


_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_TLS.check_hostname, _TLS.verify_mode = False, ssl.CERT_NONE


class Line:
    """A connection of a stranger."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, address: str, source: str = "127.0.0.1", tls: bool = False) -> Line:
        host, _, port = address.rpartition(":")
        link = asyncio.open_connection(host, int(port), local_addr=(source, 0), ssl=_TLS if tls else None)
        return cls(*await asyncio.wait_for(link, PATIENCE_S))

    async def call(self, key: ApiKey, version: int, **fields: Any) -> Any:
        self.send(bytes(encode_request(version, 1, "stranger", request_of(key)(version=version, **fields))))
        return decode_response(key, version, await self.frame())[1]

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def frame(self) -> bytes:
        (size,) = struct.unpack(">i", await asyncio.wait_for(self._reader.readexactly(4), PATIENCE_S))
        return await asyncio.wait_for(self._reader.readexactly(size), PATIENCE_S)

    async def ended(self) -> None:
        """Wait until the broker has had enough."""
        while await asyncio.wait_for(self._reader.read(65_536), PATIENCE_S):
            pass

    def close(self) -> None:
        self._writer.transport.abort()

    async def says(self, mechanism: str, data: bytes) -> Any:
        await self.call(ApiKey.SASL_HANDSHAKE, 1, mechanism=mechanism)
        return await self.call(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=data)

    async def is_in(self) -> bool:
        try:
            return bool((await self.call(ApiKey.METADATA, 1, topics=[])).brokers)
        except (OSError, EOFError, TimeoutError):
            return False


Attack = Callable[[dict[str, Any]], Awaitable[bool]]


async def _with_line(address: str, work: Callable[[Line], Awaitable[Any]], **how: Any) -> bool:
    line = await Line.open(address, **how)
    try:
        await work(line)
        return await line.is_in()
    finally:
        line.close()


async def wrong_password(about: dict[str, Any]) -> bool:
    async def work(line: Line) -> None:
        client = ScramClient("SCRAM-SHA-256", "alice", "guess")
        answer = await line.says("SCRAM-SHA-256", client.first())
        last = client.last(bytes(answer.auth_bytes))
        await line.call(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=last)

    return await _with_line(about["sasl"], work)


async def wrong_password_in_the_clear(about: dict[str, Any]) -> bool:
    return await _with_line(about["sasl"], lambda line: line.says("PLAIN", b"\0alice\0guess"))


async def replayed_login(about: dict[str, Any]) -> bool:
    """The messages of an exchange that has succeeded, once more."""

    async def work(line: Line) -> None:
        for data in about["recorded"]:
            if data == about["recorded"][0]:
                await line.says("SCRAM-SHA-256", data.encode())
            else:
                await line.call(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=data.encode())

    return await _with_line(about["sasl"], work)


async def token_that_is_not_for_us(about: dict[str, Any]) -> bool:
    async def work(line: Line) -> None:
        await line.says("OAUTHBEARER", message(about["tokens"][0]))
        about["tokens"].append(about["tokens"].pop(0))

    return await _with_line(about["sasl"], work)


async def half_a_tls_handshake(about: dict[str, Any]) -> bool:
    line = await Line.open(about["tls"])
    line.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    await asyncio.sleep(0.2)
    line.close()
    return False


async def tls_on_a_plain_port(about: dict[str, Any]) -> bool:
    line = await Line.open(about["plain"], tls=True)
    line.close()
    return True


async def plain_on_a_tls_port(about: dict[str, Any]) -> bool:
    return await _with_line(about["tls"], lambda _: asyncio.sleep(0))


async def frame_over_the_limit(about: dict[str, Any]) -> bool:
    async def work(line: Line) -> None:
        line.send(struct.pack(">i", 524_289) + bytes(100_000))
        await line.ended()

    return await _with_line(about["sasl"], work)


async def request_before_the_login(about: dict[str, Any]) -> bool:
    return await _with_line(about["sasl"], lambda _: asyncio.sleep(0))


async def garbage(about: dict[str, Any]) -> bool:
    async def work(line: Line) -> None:
        line.send(b"\xfe" * 10_240)
        await line.ended()

    return await _with_line(about["plain"], work)


ATTACKS: dict[str, Attack] = {
    attack.__name__: attack
    for attack in (
        wrong_password,
        wrong_password_in_the_clear,
        replayed_login,
        token_that_is_not_for_us,
        half_a_tls_handshake,
        tls_on_a_plain_port,
        plain_on_a_tls_port,
        frame_over_the_limit,
        request_before_the_login,
        garbage,
    )
}


async def _attack(name: str, about: dict[str, Any], done: Counter[str], got_in: Counter[str]) -> None:
    while True:
        with contextlib.suppress(OSError, EOFError, TimeoutError, ssl.SSLError, AttributeError, KeyError):
            done[name] += 1
            if await ATTACKS[name](about):
                got_in[name] += 1
        await asyncio.sleep(0)


async def _crowd(address: str, size: int, done: Counter[str]) -> None:
    """So many connections from one address, kept."""
    lines = []
    for _ in range(size):
        with contextlib.suppress(OSError, TimeoutError):
            lines.append(await Line.open(address, source="127.0.0.3"))
            done["crowd"] += 1
    await asyncio.sleep(3_600)


async def run(seconds: float, about: dict[str, Any]) -> None:
    done: Counter[str] = Counter()
    got_in: Counter[str] = Counter()
    work = [_attack(name, about, done, got_in) for name in about["attacks"] for _ in range(AT_ONCE)]
    if about["crowd"]:
        work += [_crowd(about["plain"], about["crowd"] // AT_ONCE, done) for _ in range(AT_ONCE)]
    print("begun", flush=True)
    tasks = [asyncio.ensure_future(each) for each in work]
    await asyncio.sleep(seconds)
    while len(done) < len(about["attacks"]) + bool(about["crowd"]):
        await asyncio.wait(tasks, timeout=0.1)
    for task in tasks:
        task.cancel()
    print(json.dumps({"done": done, "got_in": got_in}), flush=True)


if __name__ == "__main__":
    asyncio.run(run(float(sys.argv[1]), json.loads(sys.argv[2])))
