"""What strangers send to be decompressed, or to log in with, damaged: refused as the documentation says.

It takes no more memory than it may, raises nothing else, and writes nothing to the log.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import random
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import cramjam
import pytest
from hypothesis import HealthCheck, settings

from kohort.broker.security._errors import LoginFailedError
from kohort.broker.security._exchange import Exchange, PlainExchange
from kohort.broker.security._oauth import OauthExchange
from kohort.broker.security._scram import ScramExchange
from kohort.broker.security._scram_users import ScramUsers
from kohort.broker.security._tokens import TokenVerifier
from kohort.broker.settings import broker_settings
from kohort.log import LogConfig
from kohort.log._steps import at_once
from kohort.log._validation import check_batch
from kohort.protocol import (
    CorruptBatchError,
    KafkaError,
    build_batch,
    decompress,
    parse_batch_header,
)
from kohort.protocol._batch import BATCH_OVERHEAD, with_payload
from kohort.protocol._compression import decompressed_limit
from tests.broker.security.issuer import Issuer, message
from tests.broker.security.scram_client import ScramClient
from tests.codecs import CODECS, xerial
from tests.fuzzing import damage, seeds

#: Examples of each kind, and damaged inputs of each.
hostile = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
INPUTS: Final = 20

#: Bytes of memory besides those that come out: buffers grow in steps, and are kept for the next time.
BUFFERS: Final = 8 << 20

#: A message of a login: at most ``sasl.server.max.receive.size`` arrive.
LARGEST_MESSAGE: Final = 524_288


def _gzip_with_names(data: bytes) -> bytes:
    """With a file name, a comment, an extra field and a checksum of the header."""
    head = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x04\0extra"[:6] + b"name\0" + b"words\0"
    head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    raw = zlib.compressobj(wbits=-15)
    return head + raw.compress(data) + raw.flush() + struct.pack("<II", zlib.crc32(data), len(data))


def _lz4_of_all_options(data: bytes) -> bytes:
    packer = cramjam.lz4.Compressor(level=4, content_checksum=True, block_linked=True)
    packer.compress(data)
    return bytes(packer.finish())


#: Codec number and compressor of each kind of data that may come.
VARIANTS: Final[dict[str, tuple[int, Callable[[bytes], bytes]]]] = {
    **CODECS,
    "gzip of many members": (1, lambda data: gzip.compress(data) * 5),
    "gzip with names": (1, _gzip_with_names),
    "gzip that is not compressed": (1, lambda data: gzip.compress(data, compresslevel=0)),
    "snappy of two streams": (2, lambda data: xerial(data) * 2),
    "lz4 of linked blocks with checksums": (3, _lz4_of_all_options),
    "lz4 of two frames": (3, lambda data: bytes(cramjam.lz4.compress(data)) * 2),
    "zstd of two frames": (4, lambda data: bytes(cramjam.zstd.compress(data)) * 2),
    "zstd of a bomb": (4, lambda data: bytes(cramjam.zstd.compress(data + bytes(2 << 20)))),
    "gzip of a bomb": (1, lambda data: gzip.compress(data + bytes(1 << 18))),
    "lz4 of a bomb": (3, lambda data: bytes(cramjam.lz4.compress(data + bytes(2 << 20)))),
}
_PACKED: dict[str, bytes] = {}


@contextmanager
def at_most(most_bytes: int) -> Iterator[None]:
    """What runs inside takes no more memory."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= most_bytes


def _records() -> bytes:
    rows = [(b"key-%d" % number, random.Random(number).randbytes(30), ()) for number in range(20)]
    return bytes(build_batch(rows, timestamp_ms=1))


@pytest.mark.slow(0.4)
@pytest.mark.parametrize("variant", VARIANTS)
@hostile
@seeds
def test_damaged_data_is_decompressed_within_its_limit_or_corrupt(variant: str, rng: random.Random) -> None:
    """And the log refuses a batch of it with an error of the protocol, or takes it."""
    codec, compress = VARIANTS[variant]
    batch = _records()
    right = _PACKED.setdefault(variant, compress(batch[BATCH_OVERHEAD:]))
    for _ in range(INPUTS):
        data = damage(right, rng)
        limit = decompressed_limit(len(data))
        with at_most(2 * limit + 2 * len(data) + BUFFERS), suppress(CorruptBatchError):
            assert len(decompress(codec, data)) <= limit
        packed = bytes(with_payload(batch, codec, data))
        assert parse_batch_header(packed).codec == codec
        try:
            at_once(check_batch(packed, LogConfig(), now_ms=1))
        except KafkaError:
            continue


class _Logins:
    """Exchanges of each mechanism, and what a client sends that knows its secret."""

    def __init__(self, folder: Path) -> None:
        self._users = ScramUsers()
        self._users.add_missing("alice=secret")
        self._issuer = Issuer(folder / "keys.json")
        self._tokens = TokenVerifier(
            broker_settings({"sasl.oauthbearer.jwks.endpoint.url": self._issuer.url})
        )
        self._token = self._issuer.token()

    def begin(self, mechanism: str) -> tuple[Exchange, Iterator[bytes]]:
        """An exchange and its messages; the answer to one is sent to get the next."""
        if mechanism == "PLAIN":
            return PlainExchange({"alice": "secret"}), iter([b"\0alice\0secret"])
        if mechanism == "OAUTHBEARER":
            return OauthExchange(self._tokens), iter([message(self._token), b"\x01"])
        return ScramExchange(mechanism, self._users), iter([])

    async def try_damaged(self, mechanism: str, rng: random.Random, spoil: Callable[[bytes], bytes]) -> bool:
        """Log in with one message spoiled; return whether that was let in."""
        exchange, messages = self.begin(mechanism)
        spoiled = rng.randrange(2)
        client = ScramClient(mechanism, "alice", "secret") if mechanism.startswith("SCRAM") else None
        answer = b""
        said = ""
        try:
            for number in range(2):
                if client is not None:
                    right = client.first() if number == 0 else client.last(answer)
                else:
                    right = next(messages, b"")
                answer = await exchange.step(spoil(right) if number == spoiled or client is None else right)
                if exchange.done:
                    break
        except LoginFailedError as error:
            said = str(error)
        assert exchange.user == "alice" or not exchange.done
        assert len(said) < 300
        assert said.isprintable()
        assert "secret" not in said
        return exchange.done


#: What stands between the parts of a message.
SEPARATORS: Final = (b",", b"\0", b"\x01", b" ", b".", b"=")


def rearrange(right: bytes, rng: random.Random) -> bytes:
    """A part is left out, empty, there twice, or in the place of another."""
    separator = rng.choice([each for each in SEPARATORS if each in right] or [b","])
    parts = right.split(separator)
    at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    kind = rng.randrange(4)
    if kind == 0:
        del parts[at]
    elif kind == 1:
        parts[at] = b""
    elif kind == 2:
        parts.insert(other, parts[at])
    else:
        parts[at], parts[other] = parts[other], parts[at]
    return separator.join(parts)


def spoil_by(rng: random.Random) -> Callable[[bytes], bytes]:
    return lambda right: rng.choice((damage, rearrange))(right, rng)


MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@pytest.fixture(scope="module")
def logins(tmp_path_factory: pytest.TempPathFactory) -> _Logins:
    return _Logins(tmp_path_factory.mktemp("keys"))


@pytest.mark.slow(0.4)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_damaged_messages_of_a_login_are_refused_without_a_word_in_the_log(
    mechanism: str, logins: _Logins, caplog: pytest.LogCaptureFixture
) -> None:
    @hostile
    @seeds
    def attempt(rng: random.Random) -> None:
        async def all_of_them() -> None:
            for _ in range(INPUTS):
                await logins.try_damaged(mechanism, rng, spoil_by(rng))

        asyncio.run(all_of_them())

    with caplog.at_level(logging.DEBUG, "kohort"):
        attempt()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("kohort")] == []


FILLINGS: Final = (b"a", b",", b"=", b"\0", b"\x01", b",r=", b"[", b'{"a":', b"=2C", b".", b"\xff")


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_the_largest_messages_of_a_login_take_little_memory(mechanism: str, logins: _Logins) -> None:
    """Put into the middle of what is right, and behind it."""
    for filling in FILLINGS:
        more = filling * ((LARGEST_MESSAGE - 1_000) // len(filling))

        def in_the_middle(right: bytes, more: bytes = more) -> bytes:
            return right[:5] + more + right[5:]

        def behind(right: bytes, more: bytes = more) -> bytes:
            return right + more

        for seed, spoil in enumerate((in_the_middle, behind)):
            with at_most(100 * LARGEST_MESSAGE):
                await logins.try_damaged(mechanism, random.Random(seed), spoil)
