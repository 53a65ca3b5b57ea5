"""Records read field by field, for batches that compiled readers refuse though Java's clients read them.

Those are batches with header names that are not UTF-8: what is not is replaced, as Java does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..protocol import BatchHeader, CorruptBatchError

_MAX_VARINT_BYTES = 10


def read_records(header: BatchHeader, data: bytes | memoryview) -> Iterator[tuple[Any, ...]]:
    """Offset, time, key, value and headers of each record; ``data`` is not compressed.

    Raises CorruptBatchError, or IndexError, for bytes that are no records.
    """
    reader = _Reader(data)
    for _ in range(header.record_count):
        end = reader.varint() + reader.at
        reader.at += 1  # attributes, of which there are none
        timestamp = header.base_timestamp_ms + reader.varint()
        offset = header.base_offset + reader.varint()
        key, value = reader.piece(), reader.piece()
        headers = tuple(reader.header() for _ in range(reader.varint()))
        if reader.at != end:
            raise CorruptBatchError(f"the record at offset {offset} does not end where its length says")
        yield offset, header.max_timestamp_ms if header.log_append_time else timestamp, key, value, headers


class _Reader:
    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self.at = 0

    def varint(self) -> int:
        value = 0
        for nth in range(_MAX_VARINT_BYTES):
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << (7 * nth)
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise CorruptBatchError("a number of more than ten bytes")

    def piece(self) -> bytes | None:
        """Bytes behind their length; None for null."""
        size = self.varint()
        if size < 0:
            return None
        begin, self.at = self.at, self.at + size
        if self.at > len(self._data):
            raise CorruptBatchError(f"a field of {size} bytes with {len(self._data) - begin} left")
        return bytes(self._data[begin : self.at])

    def header(self) -> tuple[str, bytes | None]:
        return (self.piece() or b"").decode("utf-8", "replace"), self.piece()
