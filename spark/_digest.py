"""A digest of a task's rows, by which a repeated task shows that it has the same ones."""

from __future__ import annotations

from zlib import crc32

from ..protocol import Headers

_MASK = (1 << 64) - 1


class RowDigest:
    """Sums up rows in any order: a shuffle gives a task the same rows in another one.

    Only what the caller gives counts: not the partition or time that the sink fills in.
    """

    def __init__(self) -> None:
        self._rows = 0
        self._sum = 0
        self._begun: dict[tuple[str, int | None], int] = {}

    def add(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        check = self._begun.get((topic, partition))
        if check is None:
            check = self._begun[topic, partition] = crc32(f"{topic}/{partition}".encode())
        for name, content in headers:
            check = crc32(b"h%d" % (-1 if content is None else len(content)), crc32(name.encode(), check))
            check = crc32(content or b"", check)
        if timestamp_ms is not None:
            check = crc32(b"t%d" % timestamp_ms, check)
        # the lengths tell ("ab", "c") from ("a", "bc"), and nothing from an empty text
        length = -1 if key is None else len(key)
        check = crc32(value or b"", crc32(key or b"", check)) ^ (value is None)
        self._sum = (self._sum + check + (length << 32)) & _MASK
        self._rows += 1

    @property
    def value(self) -> int:
        """The digest of all rows so far, of 32 bits."""
        return crc32(b"%d/%d" % (self._rows, self._sum))
