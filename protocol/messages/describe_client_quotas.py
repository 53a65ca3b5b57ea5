"""DescribeClientQuotas (48), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

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
_B = Struct(">b")
_D = Struct(">d")
_DX = Struct(">dx")
_IH = Struct(">ih")


class ComponentData(NamedTuple):
    """ComponentData of DescribeClientQuotas."""

    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""


class DescribeClientQuotasRequest(NamedTuple):
    """DescribeClientQuotas request, v0-1."""

    components: Sequence[ComponentData] = ()
    strict: bool = False

    @staticmethod
    def response_type() -> type[DescribeClientQuotasResponse]:
        return DescribeClientQuotasResponse


DescribeClientQuotasRequest.API_KEY = 48  # type: ignore[attr-defined]


class EntityData(NamedTuple):
    """EntityData of DescribeClientQuotas."""

    entity_type: str = ""
    entity_name: str | None = ""


class ValueData(NamedTuple):
    """ValueData of DescribeClientQuotas."""

    key: str = ""
    value: float = 0.0


class EntryData(NamedTuple):
    """EntryData of DescribeClientQuotas."""

    entity: Sequence[EntityData] = ()
    values: Sequence[ValueData] = ()


class DescribeClientQuotasResponse(NamedTuple):
    """DescribeClientQuotas response, v0-1."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: Sequence[EntryData] | None = ()


DescribeClientQuotasResponse.API_KEY = 48  # type: ignore[attr-defined]


def _read_request_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeClientQuotasRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 5, "DescribeClientQuotasRequest.components")
    components_1: Any = None if size < 0 else []
    for _ in range(size):
        entity_type_3, at = read_string(data, at)
        if entity_type_3 is None:
            raise null_in("DescribeClientQuotasRequest.entity_type")
        (match_type_4,) = _B.unpack_from(data, at)
        at += 1
        match_5, at = read_string(data, at)
        item2 = _new(ComponentData, (entity_type_3, match_type_4, match_5))
        components_1.append(item2)
    if components_1 is None:
        raise null_in("DescribeClientQuotasRequest.components")
    (strict_6,) = _T.unpack_from(data, at)
    at += 1
    return _new(DescribeClientQuotasRequest, (components_1, strict_6)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    components_1 = body.components
    write_count(out, components_1)
    for item2 in components_1 or ():
        write_string(out, item2.entity_type)
        out += _B.pack(item2.match_type)
        write_string(out, item2.match)
    out += _T.pack(body.strict)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeClientQuotasRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 4, "DescribeClientQuotasRequest.components")
    components_1: Any = None if size < 0 else []
    for _ in range(size):
        entity_type_3, at = read_compact_string(data, at)
        if entity_type_3 is None:
            raise null_in("DescribeClientQuotasRequest.entity_type")
        (match_type_4,) = _B.unpack_from(data, at)
        at += 1
        match_5, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(ComponentData, (entity_type_3, match_type_4, match_5))
        components_1.append(item2)
    if components_1 is None:
        raise null_in("DescribeClientQuotasRequest.components")
    (strict_6,) = _T.unpack_from(data, at)
    at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeClientQuotasRequest, (components_1, strict_6)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    components_1 = body.components
    write_compact_count(out, components_1)
    for item2 in components_1 or ():
        write_compact_string(out, item2.entity_type)
        out += _B.pack(item2.match_type)
        write_compact_string(out, item2.match)
        out.append(0)
    out += _TX.pack(body.strict)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 1 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 1 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeClientQuotasResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_string(data, at)
    size, at, left = read_count(data, at, left, 8, "DescribeClientQuotasResponse.entries")
    entries_4: Any = None if size < 0 else []
    for _ in range(size):
        size, at, left = read_count(data, at, left, 4, "DescribeClientQuotasResponse.entity")
        entity_6: Any = None if size < 0 else []
        for _ in range(size):
            entity_type_8, at = read_string(data, at)
            if entity_type_8 is None:
                raise null_in("DescribeClientQuotasResponse.entity_type")
            entity_name_9, at = read_string(data, at)
            item7 = _new(EntityData, (entity_type_8, entity_name_9))
            entity_6.append(item7)
        if entity_6 is None:
            raise null_in("DescribeClientQuotasResponse.entity")
        size, at, left = read_count(data, at, left, 10, "DescribeClientQuotasResponse.values")
        values_10: Any = None if size < 0 else []
        for _ in range(size):
            key_12, at = read_string(data, at)
            if key_12 is None:
                raise null_in("DescribeClientQuotasResponse.key")
            (value_13,) = _D.unpack_from(data, at)
            at += 8
            item11 = _new(ValueData, (key_12, value_13))
            values_10.append(item11)
        if values_10 is None:
            raise null_in("DescribeClientQuotasResponse.values")
        item5 = _new(EntryData, (entity_6, values_10))
        entries_4.append(item5)
    return _new(
        DescribeClientQuotasResponse, (throttle_time_ms_1, error_code_2, error_message_3, entries_4)
    ), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_string(out, body.error_message)
    entries_1 = body.entries
    write_count(out, entries_1)
    for item2 in entries_1 or ():
        entity_3 = item2.entity
        write_count(out, entity_3)
        for item4 in entity_3 or ():
            write_string(out, item4.entity_type)
            write_string(out, item4.entity_name)
        values_5 = item2.values
        write_count(out, values_5)
        for item6 in values_5 or ():
            write_string(out, item6.key)
            out += _D.pack(item6.value)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeClientQuotasResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 3, "DescribeClientQuotasResponse.entries")
    entries_4: Any = None if size < 0 else []
    for _ in range(size):
        size, at, left = read_compact_count(data, at, left, 3, "DescribeClientQuotasResponse.entity")
        entity_6: Any = None if size < 0 else []
        for _ in range(size):
            entity_type_8, at = read_compact_string(data, at)
            if entity_type_8 is None:
                raise null_in("DescribeClientQuotasResponse.entity_type")
            entity_name_9, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(EntityData, (entity_type_8, entity_name_9))
            entity_6.append(item7)
        if entity_6 is None:
            raise null_in("DescribeClientQuotasResponse.entity")
        size, at, left = read_compact_count(data, at, left, 10, "DescribeClientQuotasResponse.values")
        values_10: Any = None if size < 0 else []
        for _ in range(size):
            key_12, at = read_compact_string(data, at)
            if key_12 is None:
                raise null_in("DescribeClientQuotasResponse.key")
            (value_13,) = _D.unpack_from(data, at)
            at += 8
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item11 = _new(ValueData, (key_12, value_13))
            values_10.append(item11)
        if values_10 is None:
            raise null_in("DescribeClientQuotasResponse.values")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item5 = _new(EntryData, (entity_6, values_10))
        entries_4.append(item5)
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DescribeClientQuotasResponse, (throttle_time_ms_1, error_code_2, error_message_3, entries_4)
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    entries_1 = body.entries
    write_compact_count(out, entries_1)
    for item2 in entries_1 or ():
        entity_3 = item2.entity
        write_compact_count(out, entity_3)
        for item4 in entity_3 or ():
            write_compact_string(out, item4.entity_type)
            write_compact_string(out, item4.entity_name)
            out.append(0)
        values_5 = item2.values
        write_compact_count(out, values_5)
        for item6 in values_5 or ():
            write_compact_string(out, item6.key)
            out += _DX.pack(item6.value)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 1 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 1 else _write_response_classic
