"""Fields of the records of ``__consumer_offsets``, read one after another."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from ..protocol import KohortError

_NO_TAGS: Final[Mapping[int, Callable[[], Any]]] = {}


class CorruptRecordError(KohortError):
    """A record of the offsets topic that cannot be read; the text says which part."""


class Reader:
    """Reads one field after another; lengths are checked against what is there before they are believed."""

    __slots__ = ("_data", "_flexible", "_position", "_what")

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._position = 0
        self._flexible = False
        self._what = what

    def version(self, last: int, flexible_from: int) -> int:
        version = self.int16()
        if not 0 <= version <= last:
            raise CorruptRecordError(f"{self._what}: version {version} is not known here")
        self._flexible = version >= flexible_from
        return version

    def int8(self) -> int:
        return int.from_bytes(self._take(1), "big", signed=True)

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise CorruptRecordError(f"{self._what}: null at byte {self._position} where a string must be")
        return text

    def nullable_string(self) -> str | None:
        data = self._nullable(self.uvarint() - 1 if self._flexible else self.int16())
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise CorruptRecordError(f"{self._what}: not UTF-8 before byte {self._position}") from error

    def byte_string(self) -> bytes:
        data = self._nullable(self.uvarint() - 1 if self._flexible else self.int32())
        return b"" if data is None else data

    def count(self) -> int:
        count = self.uvarint() - 1 if self._flexible else self.int32()
        if not 0 <= count <= len(self._data) - self._position:
            raise CorruptRecordError(f"{self._what}: {count} elements before byte {self._position}")
        return count

    def int32s(self) -> tuple[int, ...]:
        count = self.count()
        return struct.unpack(f">{count}i", self._take(4 * count))

    def uuid(self) -> UUID:
        return UUID(bytes=self._take(16))

    def tags(self, known: Mapping[int, Callable[[], Any]] = _NO_TAGS) -> dict[int, Any]:
        """The tagged fields of a flexible struct that are ``known``; others are stepped over."""
        found: dict[int, Any] = {}
        if self._flexible:
            for _ in range(self.uvarint()):
                tag, size = self.uvarint(), self.uvarint()
                end = self._position + size
                if tag in known:
                    found[tag] = known[tag]()
                    if self._position != end:
                        raise CorruptRecordError(f"{self._what}: field {tag} does not end at byte {end}")
                else:
                    self._take(size)
        return found

    def _nullable(self, length: int) -> bytes | None:
        if length < -1:
            raise CorruptRecordError(f"{self._what}: length {length} before byte {self._position}")
        return None if length == -1 else self._take(length)

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CorruptRecordError(f"{self._what}: a number of more than five bytes at byte {self._position}")

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise CorruptRecordError(f"{self._what}: {len(self._data)} bytes end before byte {end}")
        data = self._data[self._position : end]
        self._position = end
        return data
