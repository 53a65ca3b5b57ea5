"""Fetch answers, written by hand as a list of parts, so that records go from the file to the socket uncopied.

kafka-python's classes are the reference: the parts together are the frame that they write.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, Protocol, TypeAlias

from ._apis import ApiKey, api_for
from ._hot_fields import CLASSIC_WRITERS, COMPACT_WRITERS, INT32, uvarint_bytes


class Sendable(Protocol):
    """Bytes that lie somewhere else, such as a range of a file; ``len`` is how many."""

    def __len__(self) -> int: ...


#: A piece of a response frame.
Part: TypeAlias = bytes | bytearray | Sendable

#: Records shorter than this are copied into the part before them: it costs less than a part.
_INLINE_BYTES: Final = 4_096

_NO_TOPIC: Final = uuid.UUID(int=0)
_ABORTED = struct.Struct(">qq")
_TOP = struct.Struct(">ihi")
_DIVERGING_TAG: Final = b"\x01\x00\x0d"
_EPOCH_END = struct.Struct(">iqx")

_TO_BE_FILLED: Final = b"\x00\x00\x00\x00"


def fetch_answer(version: int, correlation_id: int, body: Any) -> Sequence[Part]:
    """The parts of a response frame, length included, for a body with the schema's field names.

    ``records`` may be any Part; it is passed on as it is. The fields of a broker among several
    (``preferred_read_replica`` and what is tagged, but for ``diverging_epoch``) have their defaults.
    """
    return _writer(version)(correlation_id, body)


def _compact_length(size: int) -> bytes:
    return uvarint_bytes(size + 1)


@cache
def _writer(version: int) -> Callable[[int, Any], Sequence[Part]]:
    flexible = api_for(ApiKey.FETCH).flexible(version)
    text, _, count, _, tags = COMPACT_WRITERS if flexible else CLASSIC_WRITERS
    length = _compact_length if flexible else INT32.pack
    null = b"\x00" if flexible else b"\xff\xff\xff\xff"
    starts = struct.Struct(">ihqqq" if version >= 5 else ">ihqq")

    def aborted(found: Sequence[Any] | None) -> bytes:
        if found is None:
            return null
        rows = [_ABORTED.pack(one.producer_id, one.first_offset) + tags for one in found]
        return count(len(rows)) + b"".join(rows)

    def fields(part: Any) -> bytes:
        begin = (part.partition_index, part.error_code, part.high_watermark, part.last_stable_offset)
        return (
            starts.pack(*begin, part.log_start_offset) if version >= 5 else starts.pack(*begin)
        ) + aborted(part.aborted_transactions)

    def end(part: Any) -> bytes:
        parted = getattr(part, "diverging_epoch", None)
        if not flexible or parted is None:
            return tags
        return _DIVERGING_TAG + _EPOCH_END.pack(parted.epoch, parted.end_offset)

    def write(correlation_id: int, body: Any) -> Sequence[Part]:
        parts: list[Part] = []
        out = bytearray(_TO_BE_FILLED) + INT32.pack(correlation_id) + tags
        out += (
            _TOP.pack(body.throttle_time_ms, body.error_code, body.session_id)
            if version >= 7
            else INT32.pack(body.throttle_time_ms)
        )
        out += count(len(body.responses))
        for topic in body.responses:
            out += (topic.topic_id or _NO_TOPIC).bytes if version >= 13 else text(topic.topic)
            out += count(len(topic.partitions))
            for part in topic.partitions:
                out += fields(part)
                if version >= 11:
                    out += INT32.pack(part.preferred_read_replica)
                records = part.records
                out += null if records is None else length(len(records))
                if records is None or (isinstance(records, bytes) and len(records) < _INLINE_BYTES):
                    out += records or b""
                else:
                    parts += (out, records)
                    out = bytearray()
                out += end(part)
            out += tags
        out += tags
        parts.append(out)
        first = parts[0]
        assert isinstance(first, bytearray)
        INT32.pack_into(first, 0, sum(map(len, parts)) - len(_TO_BE_FILLED))
        return parts

    return write
