"""DescribeClientQuotas (48), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_T = Struct(">?")
_B = Struct(">b")
_D = Struct(">d")
_H = Struct(">h")
_I = Struct(">i")
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


def _read_request_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeClientQuotasRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 5 or left < 0:
            raise too_many("DescribeClientQuotasRequest.components", size, left)
        components_1 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                entity_type_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeClientQuotasRequest.entity_type")
            (match_type_4,) = _B.unpack_from(data, at)
            at += 1
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                match_5 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                match_5 = None
            else:
                raise malformed("a negative length")
            item2 = _new(ComponentData, (entity_type_3, match_type_4, match_5))
            components_1.append(item2)
    else:
        raise null_in("DescribeClientQuotasRequest.components")
    (strict_6,) = _T.unpack_from(data, at)
    at += 1
    return _new(DescribeClientQuotasRequest, (components_1, strict_6)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    components_1 = body.components
    if components_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(components_1))
        for item2 in components_1:
            value = item2.entity_type
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _B.pack(item2.match_type)
            value = item2.match
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
    out += _T.pack(body.strict)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeClientQuotasRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("DescribeClientQuotasRequest.components", size, left)
        components_1 = []
        for _ in range(size):
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                entity_type_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeClientQuotasRequest.entity_type")
            (match_type_4,) = _B.unpack_from(data, at)
            at += 1
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                match_5 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                match_5 = None
            else:
                raise malformed("a negative length")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(ComponentData, (entity_type_3, match_type_4, match_5))
            components_1.append(item2)
    else:
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
    if components_1 is None:
        out += b"\x00"
    else:
        size = len(components_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in components_1:
            value = item2.entity_type
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _B.pack(item2.match_type)
            value = item2.match
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out.append(0)
    out += _T.pack(body.strict)
    out.append(0)


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
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        error_message_3 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        error_message_3 = None
    else:
        raise malformed("a negative length")
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("DescribeClientQuotasResponse.entries", size, left)
        entries_4 = []
        for _ in range(size):
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("DescribeClientQuotasResponse.entity", size, left)
                entity_6 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        entity_type_8 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeClientQuotasResponse.entity_type")
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        entity_name_9 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        entity_name_9 = None
                    else:
                        raise malformed("a negative length")
                    item7 = _new(EntityData, (entity_type_8, entity_name_9))
                    entity_6.append(item7)
            else:
                raise null_in("DescribeClientQuotasResponse.entity")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 10 or left < 0:
                    raise too_many("DescribeClientQuotasResponse.values", size, left)
                values_10 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        key_12 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeClientQuotasResponse.key")
                    (value_13,) = _D.unpack_from(data, at)
                    at += 8
                    item11 = _new(ValueData, (key_12, value_13))
                    values_10.append(item11)
            else:
                raise null_in("DescribeClientQuotasResponse.values")
            item5 = _new(EntryData, (entity_6, values_10))
            entries_4.append(item5)
    elif size == -1:
        entries_4 = None
    else:
        raise malformed("a negative length")
    return _new(
        DescribeClientQuotasResponse, (throttle_time_ms_1, error_code_2, error_message_3, entries_4)
    ), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    value = body.error_message
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    entries_1 = body.entries
    if entries_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(entries_1))
        for item2 in entries_1:
            entity_3 = item2.entity
            if entity_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(entity_3))
                for item4 in entity_3:
                    value = item4.entity_type
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    value = item4.entity_name
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
            values_5 = item2.values
            if values_5 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(values_5))
                for item6 in values_5:
                    value = item6.key
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    out += _D.pack(item6.value)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeClientQuotasResponse, int]:
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
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("DescribeClientQuotasResponse.entries", size, left)
        entries_4 = []
        for _ in range(size):
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 3 or left < 0:
                    raise too_many("DescribeClientQuotasResponse.entity", size, left)
                entity_6 = []
                for _ in range(size):
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        entity_type_8 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeClientQuotasResponse.entity_type")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        entity_name_9 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        entity_name_9 = None
                    else:
                        raise malformed("a negative length")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item7 = _new(EntityData, (entity_type_8, entity_name_9))
                    entity_6.append(item7)
            else:
                raise null_in("DescribeClientQuotasResponse.entity")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 10 or left < 0:
                    raise too_many("DescribeClientQuotasResponse.values", size, left)
                values_10 = []
                for _ in range(size):
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        key_12 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeClientQuotasResponse.key")
                    (value_13,) = _D.unpack_from(data, at)
                    at += 8
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item11 = _new(ValueData, (key_12, value_13))
                    values_10.append(item11)
            else:
                raise null_in("DescribeClientQuotasResponse.values")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(EntryData, (entity_6, values_10))
            entries_4.append(item5)
    elif size == -1:
        entries_4 = None
    else:
        raise malformed("a negative length")
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
            entity_3 = item2.entity
            if entity_3 is None:
                out += b"\x00"
            else:
                size = len(entity_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in entity_3:
                    value = item4.entity_type
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    value = item4.entity_name
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out.append(0)
            values_5 = item2.values
            if values_5 is None:
                out += b"\x00"
            else:
                size = len(values_5) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item6 in values_5:
                    value = item6.key
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out += _D.pack(item6.value)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 1 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 1 else _write_response_classic
