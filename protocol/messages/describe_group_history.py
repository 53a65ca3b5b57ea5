"""DescribeGroupHistory (20001), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_I = Struct(">i")
_IH = Struct(">ih")
_IQ = Struct(">iq")
_QQ = Struct(">qq")


class DescribeGroupHistoryRequest(NamedTuple):
    """DescribeGroupHistory request, v0-0."""

    group_id: str = ""
    limit: int = -1
    after: int = -1


class HistoryEntry(NamedTuple):
    """HistoryEntry of DescribeGroupHistory."""

    sequence: int = 0
    timestamp_ms: int = 0
    kind: str = ""
    generation: int = -1
    cause: str = ""
    member: str = ""
    client_id: str = ""
    client_host: str = ""
    details: str | None = None


class DescribeGroupHistoryResponse(NamedTuple):
    """DescribeGroupHistory response, v0-0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    entries: Sequence[HistoryEntry] = ()


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeGroupHistoryRequest, int]:
    del version
    del left
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        group_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("DescribeGroupHistoryRequest.group_id")
    limit_2, after_3 = _IQ.unpack_from(data, at)
    at += 12
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeGroupHistoryRequest, (group_id_1, limit_2, after_3)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    value = body.group_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _IQ.pack(body.limit, body.after)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeGroupHistoryResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        error_message_3 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        error_message_3 = None
    else:
        raise malformed("a negative length")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 27 or left < 0:
            raise too_many("DescribeGroupHistoryResponse.entries", size, left)
        entries_4 = []
        for _ in range(size):
            sequence_6, timestamp_ms_7 = _QQ.unpack_from(data, at)
            at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                kind_8 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupHistoryResponse.kind")
            (generation_9,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                cause_10 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupHistoryResponse.cause")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                member_11 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupHistoryResponse.member")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                client_id_12 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupHistoryResponse.client_id")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                client_host_13 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupHistoryResponse.client_host")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                details_14 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                details_14 = None
            else:
                raise malformed("a negative length")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(
                HistoryEntry,
                (
                    sequence_6,
                    timestamp_ms_7,
                    kind_8,
                    generation_9,
                    cause_10,
                    member_11,
                    client_id_12,
                    client_host_13,
                    details_14,
                ),
            )
            entries_4.append(item5)
    else:
        raise null_in("DescribeGroupHistoryResponse.entries")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DescribeGroupHistoryResponse, (throttle_time_ms_1, error_code_2, error_message_3, entries_4)
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    value = body.error_message
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    entries_1 = body.entries
    if entries_1 is None:
        out += b"\x00"
    else:
        size = len(entries_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in entries_1:
            out += _QQ.pack(item2.sequence, item2.timestamp_ms)
            value = item2.kind
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _I.pack(item2.generation)
            value = item2.cause
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.member
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.client_id
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.client_host
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.details
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
