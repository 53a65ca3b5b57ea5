"""Records of a batch byte by byte, and what their readers make of them: in Python, and compiled."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from unittest.mock import patch

from hypothesis import strategies as st

from kohort.protocol import (
    BatchHeader,
    CorruptBatchError,
    build_batch,
    parse_batch_header,
    records,
    write_varint,
)

T = TypeVar("T")
Header = tuple[bytes, bytes | None]

BYTES = st.binary(max_size=9) | st.sampled_from([63, 64, 127, 200, 8_192, 9_000]).map(bytes)
NUMBERS = st.integers(-70, 70) | st.sampled_from([2**31 - 1, -(2**31), 8_191, 8_192, 2**20])
#: Time delta, offset delta, key, value, headers: what batches have, and what they should not.
ROWS = st.tuples(
    st.integers(0, 200) | st.integers(-(2**63), 2**63 - 1),
    NUMBERS,
    st.none() | BYTES,
    st.none() | BYTES,
    st.lists(st.tuples(st.binary(max_size=5), st.none() | st.binary(max_size=9)), max_size=3),
)


def varint(number: int) -> bytes:
    out = bytearray()
    write_varint(out, number)
    return bytes(out)


def field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def record(
    time: int, delta: int, key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()
) -> bytes:
    body = b"\x00" + varint(time) + varint(delta) + field(key) + field(value) + varint(len(headers))
    body += b"".join(field(name) + field(content) for name, content in headers)
    return varint(len(body)) + body


def header_of(count: int, **fields: Any) -> BatchHeader:
    """The header of a batch of ``count`` records."""
    one = build_batch([(None, None)], timestamp_ms=1_000, base_offset=50)
    return parse_batch_header(one)._replace(record_count=count, **fields)


def read_all(data: bytes, header: BatchHeader) -> list[records.Record]:
    """All records, by columns."""
    columns = records.RecordColumns([7], [7], [b"before"], [None], [])
    try:
        records.read_records(data, header, columns)
    except CorruptBatchError:
        assert columns == ([7], [7], [b"before"], [None], [])
        raise
    headers = [*columns.headers, *[()] * (len(columns.keys) - len(columns.headers))]
    return list(zip(*columns[:4], headers, strict=True))[1:]


def rows_of(numbers: bytes, width: int) -> list[tuple[int, ...]]:
    """What ``locate_records`` returns, record by record."""
    columns = struct.unpack(f"={len(numbers) // 8}q", numbers)
    count = len(columns) // width
    return list(zip(*[columns[nth * count : (nth + 1) * count] for nth in range(width)], strict=True))


def locate_all(data: bytes, count: int) -> object:
    """Records and headers, by their positions."""
    located = records.locate_records(b"xyz" + data, 3, [(len(data), count)])
    at, ends = (located[nth * 8 * count : (nth + 1) * 8 * count] for nth in (6, 7))
    try:
        headers: object = records.locate_headers(b"xyz" + data, at, ends)
    except CorruptBatchError as error:
        headers = str(error)
    return rows_of(located, records.RECORD_NUMBERS), headers


def outcome_of(work: Callable[[], T]) -> T | str:
    """What ``work`` returns, or the text of its error."""
    try:
        return work()
    except CorruptBatchError as error:
        return str(error)


def require_same(work: Callable[[], T]) -> T | str:
    """What ``work`` makes of records, which must be the same in Python and compiled."""
    found = outcome_of(work)
    with patch.object(records, "NATIVE", False):
        assert found == outcome_of(work)
    return found


def require_same_readers(data: bytes, header: BatchHeader) -> object:
    """What the readers make of any bytes; all do the same."""
    for most in (header.record_count, 2):
        require_same(lambda most=most: records.check_records(data, 0, 0, most))  # type: ignore[misc]
    require_same(lambda: locate_all(data, header.record_count))
    return require_same(lambda: read_all(data, header))
