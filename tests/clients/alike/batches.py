"""Record batches drawn by chance: good ones, and each with something wrong that a client may send."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable
from functools import partial
from random import Random

import cramjam

from kohort.protocol import Codec, compress, write_varint
from kohort.protocol._batch import _write_crc
from tests.codecs import CODECS, xerial

HEADER = struct.Struct(">qiibIhiqqqhii")
YEAR_MS = 365 * 86_400_000
#: Codec number and how: without, and every way in which clients compress.
PACKINGS: list[tuple[int, Callable[[bytes], bytes]]] = [
    *[(0, bytes)] * 2,
    *CODECS.values(),
    (Codec.LZ4, partial(compress, Codec.LZ4)),
    (Codec.LZ4, partial(compress, Codec.LZ4)),
]
#: What else a number of a record may be.
WRONG = (-1, -2, 1, 7, 63, 64, 8_191, 2**31 - 1, -(2**31), 2**31, 2**40)


def varint(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


def overlong(value: int, size: int) -> bytes:
    """A number in more bytes than it needs."""
    zigzag, out = value << 1, bytearray()
    for _ in range(size - 1):
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes(out) + b"\x00"


class DrawnBatch:
    """A batch, and in words what is wrong with it."""

    def __init__(self, random: Random, now_ms: int) -> None:
        self.random, self.now_ms = random, now_ms
        self.wrong: list[str] = []
        self.count = random.choice([1, 1, 2, 3, 5, 70])
        self.base_ms = now_ms + random.choice([0, 0, 0, -5, -YEAR_MS])
        self.codec, self.pack = random.choice(PACKINGS)
        self.keys = random.choice([True, True, False])
        at = random.randrange(self.count) if random.random() < 0.4 else -1
        records = b"".join(self._record(number, odd=number == at) for number in range(self.count))
        self.data = self._sealed(self._packed(self._cut(records)))

    def _pick(self, what: str, usual: int, *others: int) -> int:
        """Mostly the usual, else one of the others, which is noted."""
        found = self.random.choice(others)
        self.wrong.append(f"{what} {found}, not {usual}")
        return found

    def _record(self, number: int, *, odd: bool) -> bytes:
        random = self.random
        fields: dict[str, int] = {}
        fault = random.choice(["delta", "time", "key", "value", "headers", "length", "attributes", "long"])
        if not odd:
            fault = ""
        fields["time"] = random.choice([0, 1, 70, -3, 9_000])
        key = b"key-%d" % number if self.keys and random.random() < 0.95 else None
        value = random.choice([None, b"", b"v" * random.choice([3, 90, 9_000])])
        some: list[list[tuple[bytes, bytes | None]]] = [
            [],
            [(b"h", b"x")],
            [(b"", None), (b"name", b"y" * 200)],
        ]
        headers = random.choice([[], *some])
        if fault == "time":
            fields["time"] = self._pick(
                "time", 0, 10 * YEAR_MS, -(50 * YEAR_MS), -self.base_ms - 1, 2**62, -(2**62)
            )
        delta = self._pick("delta", number, *WRONG) if fault == "delta" else number
        attributes = self._pick("attributes", 0, 1, 8, 255) if fault == "attributes" else 0
        body = bytearray([attributes])
        write = varint
        if fault == "long":
            size = self._pick("bytes of numbers", 1, 4, 5, 6, 10, 11)
            write = lambda value: overlong(max(value, 0), size)  # noqa: E731
        body += write(fields["time"]) + write(delta)
        key_size = -1 if key is None else len(key)
        body += write(self._pick("key size", key_size, *WRONG) if fault == "key" else key_size) + (key or b"")
        size = -1 if value is None else len(value)
        body += write(self._pick("value size", size, *WRONG) if fault == "value" else size) + (value or b"")
        body += self._headers(headers, odd=fault == "headers")
        length = len(body)
        if fault == "length":
            length = self._pick("length", length, length - 1, length + 1, 0, *WRONG)
        return varint(length) + bytes(body)

    def _headers(self, headers: list[tuple[bytes, bytes | None]], *, odd: bool) -> bytes:
        count = self._pick("headers", len(headers), *WRONG) if odd and not headers else len(headers)
        out = varint(count)
        wrong = self.random.choice(["name", "content"]) if odd else ""
        for name, content in headers:
            out += varint(self._pick("name", len(name), *WRONG) if wrong == "name" else len(name)) + name
            size = -1 if content is None else len(content)
            out += varint(self._pick("content", size, *WRONG) if wrong == "content" else size) + (
                content or b""
            )
            wrong = ""
        return out

    def _cut(self, records: bytes) -> bytes:
        """Mostly all of them; else some bytes less, more, or other ones."""
        random = self.random
        match random.choices(["", "cut", "more", "noise", "byte", "none"], [30, 2, 2, 1, 3, 1])[0]:
            case "cut":
                self.wrong.append("records cut short")
                return records[: random.randrange(len(records))]
            case "more":
                self.wrong.append("bytes behind the records")
                return records + bytes(random.choice([[0], [0] * 10, [14, 0, 0, 0, 1, 1, 0], [255] * 12]))
            case "noise":
                self.wrong.append("noise for records")
                return bytes([255] * 40) if random.random() < 0.5 else random.randbytes(40)
            case "byte":
                at = random.randrange(len(records))
                self.wrong.append(f"byte {at} of the records")
                return records[:at] + random.randbytes(1) + records[at + 1 :]
            case "none":
                self.wrong.append("no records")
                return b""
        return records

    def _packed(self, records: bytes) -> bytes:
        random = self.random
        packed = self.pack(records)
        # of two faults either may be found first
        if not self.codec or self.wrong or random.random() < 0.75:
            return packed
        match random.choice(["other", "cut", "byte", "behind", "empty", "plain", "double"]):
            case "other":
                self.codec = self._pick("codec", self.codec, *(n for n in range(8) if n != self.codec))
            case "cut":
                self.wrong.append("packed bytes cut short")
                return packed[: random.randrange(len(packed))]
            case "byte":
                at = random.randrange(len(packed))
                self.wrong.append(f"packed byte {at} of {len(packed)}")
                return packed[:at] + random.randbytes(1) + packed[at + 1 :]
            case "behind":
                self.wrong.append("bytes behind the packed ones")
                return packed + random.choice([b"\0", b"garbage", packed])
            case "empty":
                self.wrong.append("no packed bytes")
                return b""
            case "plain":
                self.wrong.append("not packed")
                return records
        return packed

    def _sealed(self, payload: bytes) -> bytes:
        random = self.random
        newest = self.base_ms + 9_000
        fields = [0, 0, 0, 2, 0, self.codec, self.count - 1, self.base_ms, newest, -1, -1, -1, self.count]
        packing = any("packed" in wrong or "codec" in wrong for wrong in self.wrong)
        if not packing and random.random() < 0.3:
            for at in random.sample(range(8), random.choice([1, 1, 2])):
                self._disturb(fields, at)
        fields[1] = HEADER.size - 12 + len(payload)
        data = bytearray(HEADER.pack(*fields) + payload)
        if fields[3] == 2:
            _write_crc(data, 0)
        if random.random() < 0.04:
            return self._torn(bytes(data))
        return bytes(data)

    def _disturb(self, fields: list[int], at: int) -> None:
        match at:
            case 0:
                fields[0] = self._pick("base offset", 0, 1, -1, 77)
            case 1:
                fields[5] |= self._pick("attributes", 0, 0x08, 0x08, 0x20, 0x40, 0x80, 0x4000, -0x8000)
            case 2:
                fields[6] = self._pick(
                    "last delta", fields[6], -1, 0, min(fields[6] + 1, 2**31 - 1), 2**31 - 1
                )
            case 3:
                fields[12] = self._pick("count", fields[12], -1, 0, min(fields[12] + 1, 2**31 - 1), 2**31 - 1)
            case 4:
                fields[12] = self._pick(
                    "records claimed",
                    fields[12],
                    min(fields[12] + 1, 2**31 - 1),
                    max(fields[12] - 1, 1),
                    1_000,
                )
                fields[6] = fields[12] - 1
            case 5:
                fields[8] = self._pick(
                    "newest", fields[8], -1, 0, self.now_ms + 10 * YEAR_MS, 2**63 - 1, -(2**63)
                )
            case 6:
                others = (-1, 0, self.now_ms + 10 * YEAR_MS, self.now_ms + 3_595_000, 2**63 - 1, -(2**63), -2)
                fields[7] = self._pick("base time", fields[7], *others)
            case 7:
                fields[9] = self._pick("producer", -1, -2, 2**40)
                fields[10], fields[11] = random_pair(self.random)

    def _torn(self, data: bytes) -> bytes:
        random = self.random
        match random.choice(["cut", "twice", "more", "crc", "magic", "length"]):
            case "cut":
                self.wrong.append("batch cut short")
                return data[: random.randrange(len(data))]
            case "twice":
                self.wrong.append("two batches")
                return data + data
            case "more":
                self.wrong.append("bytes behind the batch")
                return data + random.choice([b"\0", bytes(14), data[:30], data[:16] + b"\1", data[:-1]])
            case "crc":
                self.wrong.append("checksum")
                return data[:17] + bytes(4) + data[21:]
            case "magic":
                magic = self._pick("magic", 2, 0, 1, 3, 127)
                return data[:16] + bytes([magic]) + data[17:]
        length = self._pick("length", len(data) - 12, 0, -1, 13, 14, 48, 49, len(data) - 13, len(data) - 11)
        return data[:8] + length.to_bytes(4, "big", signed=True) + data[12:]


def random_pair(random: Random) -> tuple[int, int]:
    """Epoch and first sequence number of a producer."""
    return random.choice([-1, 0, 5]), random.choice([-1, 0, 0, 2**31 - 1, -2])


def message_set(random: Random, now_ms: int) -> bytes:
    """Messages as clients before 0.11 sent them, magic 0 or 1, maybe packed in one."""
    magic = random.choice([0, 1])
    inner = b"".join(
        _message(magic, 0, n, b"k", b"value-%d" % n, now_ms) for n in range(random.choice([1, 3]))
    )
    packings: list[tuple[int, Callable[[bytes], bytes]]]
    packings = [(0, bytes), (1, gzip.compress), (2, xerial), (3, _lz4)]
    codec, pack = random.choice(packings)
    if not codec:
        return inner
    return _message(magic, codec, 0, None, pack(inner), now_ms)


def _lz4(data: bytes) -> bytes:
    return bytes(cramjam.lz4.compress(data))


def _message(magic: int, codec: int, offset: int, key: bytes | None, value: bytes, now_ms: int) -> bytes:
    body = struct.pack(">bb", magic, codec)
    if magic:
        body += struct.pack(">q", now_ms)
    body += struct.pack(">i", -1 if key is None else len(key)) + (key or b"")
    body += struct.pack(">i", len(value)) + value
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body
