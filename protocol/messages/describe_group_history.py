"""DescribeGroupHistory (20001), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    malformed,
    null_in,
    read_compact_count,
    read_compact_string,
    read_tags,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_tags,
)

_I = Struct(">i")
_IH = Struct(">ih")
_IQ = Struct(">iq")
_IQX = Struct(">iqx")
_Q = Struct(">q")
_QQ = Struct(">qq")


class DescribeGroupHistoryRequest(NamedTuple):
    """DescribeGroupHistory request, v0-0."""

    group_id: str = ""
    limit: int = -1
    after: int = -1

    @staticmethod
    def response_type() -> type[DescribeGroupHistoryResponse]:
        return DescribeGroupHistoryResponse


DescribeGroupHistoryRequest.API_KEY = 20001  # type: ignore[attr-defined]


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
    kept_since_ms: int = -1


DescribeGroupHistoryResponse.API_KEY = 20001  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeGroupHistoryRequest, int]:
    del version
    del left
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
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
    write_compact_string(out, body.group_id)
    out += _IQX.pack(body.limit, body.after)


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
    error_message_3, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 27, "DescribeGroupHistoryResponse.entries")
    entries_4: Any = None if size < 0 else []
    for _ in range(size):
        sequence_6, timestamp_ms_7 = _QQ.unpack_from(data, at)
        at += 16
        kind_8, at = read_compact_string(data, at)
        if kind_8 is None:
            raise null_in("DescribeGroupHistoryResponse.kind")
        (generation_9,) = _I.unpack_from(data, at)
        at += 4
        cause_10, at = read_compact_string(data, at)
        if cause_10 is None:
            raise null_in("DescribeGroupHistoryResponse.cause")
        member_11, at = read_compact_string(data, at)
        if member_11 is None:
            raise null_in("DescribeGroupHistoryResponse.member")
        client_id_12, at = read_compact_string(data, at)
        if client_id_12 is None:
            raise null_in("DescribeGroupHistoryResponse.client_id")
        client_host_13, at = read_compact_string(data, at)
        if client_host_13 is None:
            raise null_in("DescribeGroupHistoryResponse.client_host")
        details_14, at = read_compact_string(data, at)
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
    if entries_4 is None:
        raise null_in("DescribeGroupHistoryResponse.entries")
    kept_since_ms_15: Any = -1
    if data[at]:
        tags, at = read_tags(data, at)
        for tag16, start, stop in tags:
            if tag16 == 0:
                at = start
                (kept_since_ms_15,) = _Q.unpack_from(data, at)
                at += 8
                if at != stop:
                    raise malformed("a tagged field of another length than it says")
            at = stop
    else:
        at += 1
    return _new(
        DescribeGroupHistoryResponse,
        (throttle_time_ms_1, error_code_2, error_message_3, entries_4, kept_since_ms_15),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    entries_1 = body.entries
    write_compact_count(out, entries_1)
    for item2 in entries_1 or ():
        out += _QQ.pack(item2.sequence, item2.timestamp_ms)
        write_compact_string(out, item2.kind)
        out += _I.pack(item2.generation)
        write_compact_string(out, item2.cause)
        write_compact_string(out, item2.member)
        write_compact_string(out, item2.client_id)
        write_compact_string(out, item2.client_host)
        write_compact_string(out, item2.details)
        out.append(0)
    tags3 = []
    kept_since_ms_4 = getattr(body, "kept_since_ms", -1)
    if kept_since_ms_4 != -1:
        whole5, out = out, bytearray()
        out += _Q.pack(kept_since_ms_4)
        tags3.append((0, out))
        out = whole5
    write_tags(out, tags3)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
