"""AlterClientQuotas (49), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_T = Struct(">?")
_DT = Struct(">d?")
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


class ResponseEntryData(NamedTuple):
    """ResponseEntryData of AlterClientQuotas."""

    error_code: int = 0
    error_message: str | None = ""
    entity: Sequence[EntityData] = ()


class AlterClientQuotasResponse(NamedTuple):
    """AlterClientQuotas response, v0-1."""

    throttle_time_ms: int = 0
    entries: Sequence[ResponseEntryData] = ()


def _read_request_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterClientQuotasRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("AlterClientQuotasRequest.entries", size, left)
        entries_1 = []
        for _ in range(size):
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("AlterClientQuotasRequest.entity", size, left)
                entity_3 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        entity_type_5 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("AlterClientQuotasRequest.entity_type")
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        entity_name_6 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        entity_name_6 = None
                    else:
                        raise malformed("a negative length")
                    item4 = _new(EntityData, (entity_type_5, entity_name_6))
                    entity_3.append(item4)
            else:
                raise null_in("AlterClientQuotasRequest.entity")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 11 or left < 0:
                    raise too_many("AlterClientQuotasRequest.ops", size, left)
                ops_7 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        key_9 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("AlterClientQuotasRequest.key")
                    value_10, remove_11 = _DT.unpack_from(data, at)
                    at += 9
                    item8 = _new(OpData, (key_9, value_10, remove_11))
                    ops_7.append(item8)
            else:
                raise null_in("AlterClientQuotasRequest.ops")
            item2 = _new(RequestEntryData, (entity_3, ops_7))
            entries_1.append(item2)
    else:
        raise null_in("AlterClientQuotasRequest.entries")
    (validate_only_12,) = _T.unpack_from(data, at)
    at += 1
    return _new(AlterClientQuotasRequest, (entries_1, validate_only_12)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
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
            ops_5 = item2.ops
            if ops_5 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(ops_5))
                for item6 in ops_5:
                    value = item6.key
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    out += _DT.pack(item6.value, item6.remove)
    out += _T.pack(body.validate_only)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterClientQuotasRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("AlterClientQuotasRequest.entries", size, left)
        entries_1 = []
        for _ in range(size):
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 3 or left < 0:
                    raise too_many("AlterClientQuotasRequest.entity", size, left)
                entity_3 = []
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
                        entity_type_5 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("AlterClientQuotasRequest.entity_type")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        entity_name_6 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        entity_name_6 = None
                    else:
                        raise malformed("a negative length")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item4 = _new(EntityData, (entity_type_5, entity_name_6))
                    entity_3.append(item4)
            else:
                raise null_in("AlterClientQuotasRequest.entity")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 11 or left < 0:
                    raise too_many("AlterClientQuotasRequest.ops", size, left)
                ops_7 = []
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
                        key_9 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("AlterClientQuotasRequest.key")
                    value_10, remove_11 = _DT.unpack_from(data, at)
                    at += 9
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item8 = _new(OpData, (key_9, value_10, remove_11))
                    ops_7.append(item8)
            else:
                raise null_in("AlterClientQuotasRequest.ops")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(RequestEntryData, (entity_3, ops_7))
            entries_1.append(item2)
    else:
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
            ops_5 = item2.ops
            if ops_5 is None:
                out += b"\x00"
            else:
                size = len(ops_5) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item6 in ops_5:
                    value = item6.key
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out += _DT.pack(item6.value, item6.remove)
                    out.append(0)
            out.append(0)
    out += _T.pack(body.validate_only)
    out.append(0)


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
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("AlterClientQuotasResponse.entries", size, left)
        entries_2 = []
        for _ in range(size):
            (error_code_4,) = _H.unpack_from(data, at)
            at += 2
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                error_message_5 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                error_message_5 = None
            else:
                raise malformed("a negative length")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("AlterClientQuotasResponse.entity", size, left)
                entity_6 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        entity_type_8 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("AlterClientQuotasResponse.entity_type")
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
                raise null_in("AlterClientQuotasResponse.entity")
            item3 = _new(ResponseEntryData, (error_code_4, error_message_5, entity_6))
            entries_2.append(item3)
    else:
        raise null_in("AlterClientQuotasResponse.entries")
    return _new(AlterClientQuotasResponse, (throttle_time_ms_1, entries_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    entries_1 = body.entries
    if entries_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(entries_1))
        for item2 in entries_1:
            out += _H.pack(item2.error_code)
            value = item2.error_message
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
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


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterClientQuotasResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 5 or left < 0:
            raise too_many("AlterClientQuotasResponse.entries", size, left)
        entries_2 = []
        for _ in range(size):
            (error_code_4,) = _H.unpack_from(data, at)
            at += 2
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                error_message_5 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                error_message_5 = None
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
                    raise too_many("AlterClientQuotasResponse.entity", size, left)
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
                        raise null_in("AlterClientQuotasResponse.entity_type")
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
                raise null_in("AlterClientQuotasResponse.entity")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(ResponseEntryData, (error_code_4, error_message_5, entity_6))
            entries_2.append(item3)
    else:
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
    if entries_1 is None:
        out += b"\x00"
    else:
        size = len(entries_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in entries_1:
            out += _H.pack(item2.error_code)
            value = item2.error_message
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
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
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 1 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 1 else _write_response_classic
