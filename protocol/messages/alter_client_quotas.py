"""AlterClientQuotas (49), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_T = Struct(">?")
_TX = Struct(">?x")
_DT = Struct(">d?")
_DTX = Struct(">d?x")
_H = Struct(">h")
_I = Struct(">i")


class EntityData(NamedTuple):
    """EntityData of AlterClientQuotas."""

    entity_type: str = ""
    entity_name: str | None = ""


class OpData(NamedTuple):
    """OpData of AlterClientQuotas."""

    key: str = ""
    value: float = 0.0
    remove: bool = False


class RequestEntryData(NamedTuple):
    """RequestEntryData of AlterClientQuotas."""

    entity: Sequence[EntityData] = ()
    ops: Sequence[OpData] = ()


class AlterClientQuotasRequest(NamedTuple):
    """AlterClientQuotas request, v0-1."""

    entries: Sequence[RequestEntryData] = ()
    validate_only: bool = False

    @staticmethod
    def response_type() -> type[AlterClientQuotasResponse]:
        return AlterClientQuotasResponse


AlterClientQuotasRequest.API_KEY = 49  # type: ignore[attr-defined]


class ResponseEntryData(NamedTuple):
    """ResponseEntryData of AlterClientQuotas."""

    error_code: int = 0
    error_message: str | None = ""
    entity: Sequence[EntityData] = ()


class AlterClientQuotasResponse(NamedTuple):
    """AlterClientQuotas response, v0-1."""

    throttle_time_ms: int = 0
    entries: Sequence[ResponseEntryData] = ()


AlterClientQuotasResponse.API_KEY = 49  # type: ignore[attr-defined]


def _read_request_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterClientQuotasRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 8, "AlterClientQuotasRequest.entries")
    entries_1: Any = None if size < 0 else []
    for _ in range(size):
        size, at, left = read_count(data, at, left, 4, "AlterClientQuotasRequest.entity")
        entity_3: Any = None if size < 0 else []
        for _ in range(size):
            entity_type_5, at = read_string(data, at)
            if entity_type_5 is None:
                raise null_in("AlterClientQuotasRequest.entity_type")
            entity_name_6, at = read_string(data, at)
            item4 = _new(EntityData, (entity_type_5, entity_name_6))
            entity_3.append(item4)
        if entity_3 is None:
            raise null_in("AlterClientQuotasRequest.entity")
        size, at, left = read_count(data, at, left, 11, "AlterClientQuotasRequest.ops")
        ops_7: Any = None if size < 0 else []
        for _ in range(size):
            key_9, at = read_string(data, at)
            if key_9 is None:
                raise null_in("AlterClientQuotasRequest.key")
            value_10, remove_11 = _DT.unpack_from(data, at)
            at += 9
            item8 = _new(OpData, (key_9, value_10, remove_11))
            ops_7.append(item8)
        if ops_7 is None:
            raise null_in("AlterClientQuotasRequest.ops")
        item2 = _new(RequestEntryData, (entity_3, ops_7))
        entries_1.append(item2)
    if entries_1 is None:
        raise null_in("AlterClientQuotasRequest.entries")
    (validate_only_12,) = _T.unpack_from(data, at)
    at += 1
    return _new(AlterClientQuotasRequest, (entries_1, validate_only_12)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    entries_1 = body.entries
    write_count(out, entries_1)
    for item2 in entries_1 or ():
        entity_3 = item2.entity
        write_count(out, entity_3)
        for item4 in entity_3 or ():
            write_string(out, item4.entity_type)
            write_string(out, item4.entity_name)
        ops_5 = item2.ops
        write_count(out, ops_5)
        for item6 in ops_5 or ():
            write_string(out, item6.key)
            out += _DT.pack(item6.value, item6.remove)
    out += _T.pack(body.validate_only)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterClientQuotasRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 3, "AlterClientQuotasRequest.entries")
    entries_1: Any = None if size < 0 else []
    for _ in range(size):
        size, at, left = read_compact_count(data, at, left, 3, "AlterClientQuotasRequest.entity")
        entity_3: Any = None if size < 0 else []
        for _ in range(size):
            entity_type_5, at = read_compact_string(data, at)
            if entity_type_5 is None:
                raise null_in("AlterClientQuotasRequest.entity_type")
            entity_name_6, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item4 = _new(EntityData, (entity_type_5, entity_name_6))
            entity_3.append(item4)
        if entity_3 is None:
            raise null_in("AlterClientQuotasRequest.entity")
        size, at, left = read_compact_count(data, at, left, 11, "AlterClientQuotasRequest.ops")
        ops_7: Any = None if size < 0 else []
        for _ in range(size):
            key_9, at = read_compact_string(data, at)
            if key_9 is None:
                raise null_in("AlterClientQuotasRequest.key")
            value_10, remove_11 = _DT.unpack_from(data, at)
            at += 9
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item8 = _new(OpData, (key_9, value_10, remove_11))
            ops_7.append(item8)
        if ops_7 is None:
            raise null_in("AlterClientQuotasRequest.ops")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(RequestEntryData, (entity_3, ops_7))
        entries_1.append(item2)
    if entries_1 is None:
        raise null_in("AlterClientQuotasRequest.entries")
    (validate_only_12,) = _T.unpack_from(data, at)
    at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterClientQuotasRequest, (entries_1, validate_only_12)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    entries_1 = body.entries
    write_compact_count(out, entries_1)
    for item2 in entries_1 or ():
        entity_3 = item2.entity
        write_compact_count(out, entity_3)
        for item4 in entity_3 or ():
            write_compact_string(out, item4.entity_type)
            write_compact_string(out, item4.entity_name)
            out.append(0)
        ops_5 = item2.ops
        write_compact_count(out, ops_5)
        for item6 in ops_5 or ():
            write_compact_string(out, item6.key)
            out += _DTX.pack(item6.value, item6.remove)
        out.append(0)
    out += _TX.pack(body.validate_only)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 1 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 1 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterClientQuotasResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 8, "AlterClientQuotasResponse.entries")
    entries_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_string(data, at)
        size, at, left = read_count(data, at, left, 4, "AlterClientQuotasResponse.entity")
        entity_6: Any = None if size < 0 else []
        for _ in range(size):
            entity_type_8, at = read_string(data, at)
            if entity_type_8 is None:
                raise null_in("AlterClientQuotasResponse.entity_type")
            entity_name_9, at = read_string(data, at)
            item7 = _new(EntityData, (entity_type_8, entity_name_9))
            entity_6.append(item7)
        if entity_6 is None:
            raise null_in("AlterClientQuotasResponse.entity")
        item3 = _new(ResponseEntryData, (error_code_4, error_message_5, entity_6))
        entries_2.append(item3)
    if entries_2 is None:
        raise null_in("AlterClientQuotasResponse.entries")
    return _new(AlterClientQuotasResponse, (throttle_time_ms_1, entries_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    entries_1 = body.entries
    write_count(out, entries_1)
    for item2 in entries_1 or ():
        out += _H.pack(item2.error_code)
        write_string(out, item2.error_message)
        entity_3 = item2.entity
        write_count(out, entity_3)
        for item4 in entity_3 or ():
            write_string(out, item4.entity_type)
            write_string(out, item4.entity_name)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterClientQuotasResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 5, "AlterClientQuotasResponse.entries")
    entries_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_compact_string(data, at)
        size, at, left = read_compact_count(data, at, left, 3, "AlterClientQuotasResponse.entity")
        entity_6: Any = None if size < 0 else []
        for _ in range(size):
            entity_type_8, at = read_compact_string(data, at)
            if entity_type_8 is None:
                raise null_in("AlterClientQuotasResponse.entity_type")
            entity_name_9, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(EntityData, (entity_type_8, entity_name_9))
            entity_6.append(item7)
        if entity_6 is None:
            raise null_in("AlterClientQuotasResponse.entity")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(ResponseEntryData, (error_code_4, error_message_5, entity_6))
        entries_2.append(item3)
    if entries_2 is None:
        raise null_in("AlterClientQuotasResponse.entries")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterClientQuotasResponse, (throttle_time_ms_1, entries_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    entries_1 = body.entries
    write_compact_count(out, entries_1)
    for item2 in entries_1 or ():
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        entity_3 = item2.entity
        write_compact_count(out, entity_3)
        for item4 in entity_3 or ():
            write_compact_string(out, item4.entity_type)
            write_compact_string(out, item4.entity_name)
            out.append(0)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 1 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 1 else _write_response_classic
