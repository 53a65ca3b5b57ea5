"""ApiVersions (18), versions 0 to 4. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import (
    _new,
    BYTES,
    long_varint,
    malformed,
    null_in,
    read_tags,
    skip_tags,
    too_many,
    varint,
    write_tags,
)

_T = Struct(">?")
_H = Struct(">h")
_HH = Struct(">hh")
_HHH = Struct(">hhh")
_I = Struct(">i")
_Q = Struct(">q")


class ApiVersionsRequest(NamedTuple):
    """ApiVersions request, v0-4."""

    client_software_name: str = ""
    client_software_version: str = ""


class ApiVersion(NamedTuple):
    """ApiVersion of ApiVersions."""

    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


class SupportedFeatureKey(NamedTuple):
    """SupportedFeatureKey of ApiVersions."""

    name: str = ""
    min_version: int = 0
    max_version: int = 0


class FinalizedFeatureKey(NamedTuple):
    """FinalizedFeatureKey of ApiVersions."""

    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


class ApiVersionsResponse(NamedTuple):
    """ApiVersions response, v0-4."""

    error_code: int = 0
    api_keys: Sequence[ApiVersion] = ()
    throttle_time_ms: int = 0
    supported_features: Sequence[SupportedFeatureKey] = ()
    finalized_features_epoch: int = -1
    finalized_features: Sequence[FinalizedFeatureKey] = ()
    zk_migration_ready: bool = False


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[ApiVersionsRequest, int]:
    del version
    del left
    return _new(ApiVersionsRequest, ("", "")), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del out, body, version


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[ApiVersionsRequest, int]:
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
        client_software_name_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("ApiVersionsRequest.client_software_name")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        client_software_version_2 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("ApiVersionsRequest.client_software_version")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ApiVersionsRequest, (client_software_name_1, client_software_version_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    value = body.client_software_name
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    value = body.client_software_version
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[ApiVersionsResponse, int]:
    (error_code_1,) = _H.unpack_from(data, at)
    at += 2
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("ApiVersionsResponse.api_keys", size, left)
        api_keys_2 = []
        for _ in range(size):
            api_key_4, min_version_5, max_version_6 = _HHH.unpack_from(data, at)
            at += 6
            item3 = _new(ApiVersion, (api_key_4, min_version_5, max_version_6))
            api_keys_2.append(item3)
    else:
        raise null_in("ApiVersionsResponse.api_keys")
    throttle_time_ms_7 = 0
    if version >= 1:
        (throttle_time_ms_7,) = _I.unpack_from(data, at)
        at += 4
    return _new(ApiVersionsResponse, (error_code_1, api_keys_2, throttle_time_ms_7, (), -1, (), False)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    out += _H.pack(body.error_code)
    api_keys_1 = body.api_keys
    if api_keys_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(api_keys_1))
        for item2 in api_keys_1:
            out += _HHH.pack(item2.api_key, item2.min_version, item2.max_version)
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[ApiVersionsResponse, int]:
    del version
    (error_code_1,) = _H.unpack_from(data, at)
    at += 2
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 7 or left < 0:
            raise too_many("ApiVersionsResponse.api_keys", size, left)
        api_keys_2 = []
        for _ in range(size):
            api_key_4, min_version_5, max_version_6 = _HHH.unpack_from(data, at)
            at += 6
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(ApiVersion, (api_key_4, min_version_5, max_version_6))
            api_keys_2.append(item3)
    else:
        raise null_in("ApiVersionsResponse.api_keys")
    (throttle_time_ms_7,) = _I.unpack_from(data, at)
    at += 4
    supported_features_8 = ()
    finalized_features_epoch_9 = -1
    finalized_features_10 = ()
    zk_migration_ready_11 = False
    tags, at = read_tags(data, at)
    for tag12, start, stop in tags:
        if tag12 == 0:
            at = start
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("ApiVersionsResponse.supported_features", size, left)
                supported_features_8 = []
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
                        name_14 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("ApiVersionsResponse.name")
                    min_version_15, max_version_16 = _HH.unpack_from(data, at)
                    at += 4
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item13 = _new(SupportedFeatureKey, (name_14, min_version_15, max_version_16))
                    supported_features_8.append(item13)
            else:
                raise null_in("ApiVersionsResponse.supported_features")
            if at != stop:
                raise malformed("a tagged field of another length than it says")
        elif tag12 == 1:
            at = start
            (finalized_features_epoch_9,) = _Q.unpack_from(data, at)
            at += 8
            if at != stop:
                raise malformed("a tagged field of another length than it says")
        elif tag12 == 2:
            at = start
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("ApiVersionsResponse.finalized_features", size, left)
                finalized_features_10 = []
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
                        name_18 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("ApiVersionsResponse.name")
                    max_version_level_19, min_version_level_20 = _HH.unpack_from(data, at)
                    at += 4
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item17 = _new(FinalizedFeatureKey, (name_18, max_version_level_19, min_version_level_20))
                    finalized_features_10.append(item17)
            else:
                raise null_in("ApiVersionsResponse.finalized_features")
            if at != stop:
                raise malformed("a tagged field of another length than it says")
        elif tag12 == 3:
            at = start
            (zk_migration_ready_11,) = _T.unpack_from(data, at)
            at += 1
            if at != stop:
                raise malformed("a tagged field of another length than it says")
        at = stop
    return _new(
        ApiVersionsResponse,
        (
            error_code_1,
            api_keys_2,
            throttle_time_ms_7,
            supported_features_8,
            finalized_features_epoch_9,
            finalized_features_10,
            zk_migration_ready_11,
        ),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _H.pack(body.error_code)
    api_keys_1 = body.api_keys
    if api_keys_1 is None:
        out += b"\x00"
    else:
        size = len(api_keys_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in api_keys_1:
            out += _HHH.pack(item2.api_key, item2.min_version, item2.max_version)
            out.append(0)
    out += _I.pack(body.throttle_time_ms)
    tags3 = []
    supported_features_4 = getattr(body, "supported_features", ())
    if not (supported_features_4 is None or len(supported_features_4) == 0):
        whole5, out = out, bytearray()
        supported_features_6 = supported_features_4
        if supported_features_6 is None:
            out += b"\x00"
        else:
            size = len(supported_features_6) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item7 in supported_features_6:
                value = item7.name
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out += _HH.pack(item7.min_version, item7.max_version)
                out.append(0)
        tags3.append((0, out))
        out = whole5
    finalized_features_epoch_8 = getattr(body, "finalized_features_epoch", -1)
    if not (finalized_features_epoch_8 == -1):
        whole9, out = out, bytearray()
        out += _Q.pack(finalized_features_epoch_8)
        tags3.append((1, out))
        out = whole9
    finalized_features_10 = getattr(body, "finalized_features", ())
    if not (finalized_features_10 is None or len(finalized_features_10) == 0):
        whole11, out = out, bytearray()
        finalized_features_12 = finalized_features_10
        if finalized_features_12 is None:
            out += b"\x00"
        else:
            size = len(finalized_features_12) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item13 in finalized_features_12:
                value = item13.name
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out += _HH.pack(item13.max_version_level, item13.min_version_level)
                out.append(0)
        tags3.append((2, out))
        out = whole11
    zk_migration_ready_14 = getattr(body, "zk_migration_ready", False)
    if not (zk_migration_ready_14 == False):
        whole15, out = out, bytearray()
        out += _T.pack(zk_migration_ready_14)
        tags3.append((3, out))
        out = whole15
    write_tags(out, tags3)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
