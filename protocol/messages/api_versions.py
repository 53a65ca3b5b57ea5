"""ApiVersions (18), versions 0 to 4. Written by scripts/generate_messages.py: do not edit."""

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
    read_count,
    read_tags,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_count,
    write_tags,
)

_T = Struct(">?")
_H = Struct(">h")
_HH = Struct(">hh")
_HHH = Struct(">hhh")
_HHHX = Struct(">hhhx")
_HHX = Struct(">hhx")
_I = Struct(">i")
_Q = Struct(">q")


class ApiVersionsRequest(NamedTuple):
    """ApiVersions request, v0-4."""

    client_software_name: str = ""
    client_software_version: str = ""

    @staticmethod
    def response_type() -> type[ApiVersionsResponse]:
        return ApiVersionsResponse


ApiVersionsRequest.API_KEY = 18  # type: ignore[attr-defined]


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


ApiVersionsResponse.API_KEY = 18  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[ApiVersionsRequest, int]:
    del version
    del left
    return _new(ApiVersionsRequest, ("", "")), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del out, body, version


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[ApiVersionsRequest, int]:
    del version
    del left
    client_software_name_1, at = read_compact_string(data, at)
    if client_software_name_1 is None:
        raise null_in("ApiVersionsRequest.client_software_name")
    client_software_version_2, at = read_compact_string(data, at)
    if client_software_version_2 is None:
        raise null_in("ApiVersionsRequest.client_software_version")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ApiVersionsRequest, (client_software_name_1, client_software_version_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.client_software_name)
    write_compact_string(out, body.client_software_version)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[ApiVersionsResponse, int]:
    (error_code_1,) = _H.unpack_from(data, at)
    at += 2
    size, at, left = read_count(data, at, left, 6, "ApiVersionsResponse.api_keys")
    api_keys_2: Any = None if size < 0 else []
    for _ in range(size):
        api_key_4, min_version_5, max_version_6 = _HHH.unpack_from(data, at)
        at += 6
        item3 = _new(ApiVersion, (api_key_4, min_version_5, max_version_6))
        api_keys_2.append(item3)
    if api_keys_2 is None:
        raise null_in("ApiVersionsResponse.api_keys")
    throttle_time_ms_7: Any = 0
    if version >= 1:
        (throttle_time_ms_7,) = _I.unpack_from(data, at)
        at += 4
    return _new(ApiVersionsResponse, (error_code_1, api_keys_2, throttle_time_ms_7, (), -1, (), False)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    out += _H.pack(body.error_code)
    api_keys_1 = body.api_keys
    write_count(out, api_keys_1)
    for item2 in api_keys_1 or ():
        out += _HHH.pack(item2.api_key, item2.min_version, item2.max_version)
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[ApiVersionsResponse, int]:
    del version
    (error_code_1,) = _H.unpack_from(data, at)
    at += 2
    size, at, left = read_compact_count(data, at, left, 7, "ApiVersionsResponse.api_keys")
    api_keys_2: Any = None if size < 0 else []
    for _ in range(size):
        api_key_4, min_version_5, max_version_6 = _HHH.unpack_from(data, at)
        at += 6
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(ApiVersion, (api_key_4, min_version_5, max_version_6))
        api_keys_2.append(item3)
    if api_keys_2 is None:
        raise null_in("ApiVersionsResponse.api_keys")
    (throttle_time_ms_7,) = _I.unpack_from(data, at)
    at += 4
    supported_features_8: Any = ()
    finalized_features_epoch_9: Any = -1
    finalized_features_10: Any = ()
    zk_migration_ready_11: Any = False
    if data[at]:
        tags, at = read_tags(data, at)
        for tag12, start, stop in tags:
            if tag12 == 0:
                at = start
                size, at, left = read_compact_count(
                    data, at, left, 6, "ApiVersionsResponse.supported_features"
                )
                supported_features_8 = None if size < 0 else []
                for _ in range(size):
                    name_14, at = read_compact_string(data, at)
                    if name_14 is None:
                        raise null_in("ApiVersionsResponse.name")
                    min_version_15, max_version_16 = _HH.unpack_from(data, at)
                    at += 4
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item13 = _new(SupportedFeatureKey, (name_14, min_version_15, max_version_16))
                    supported_features_8.append(item13)
                if supported_features_8 is None:
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
                size, at, left = read_compact_count(
                    data, at, left, 6, "ApiVersionsResponse.finalized_features"
                )
                finalized_features_10 = None if size < 0 else []
                for _ in range(size):
                    name_18, at = read_compact_string(data, at)
                    if name_18 is None:
                        raise null_in("ApiVersionsResponse.name")
                    max_version_level_19, min_version_level_20 = _HH.unpack_from(data, at)
                    at += 4
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item17 = _new(FinalizedFeatureKey, (name_18, max_version_level_19, min_version_level_20))
                    finalized_features_10.append(item17)
                if finalized_features_10 is None:
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
    else:
        at += 1
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
    write_compact_count(out, api_keys_1)
    for item2 in api_keys_1 or ():
        out += _HHHX.pack(item2.api_key, item2.min_version, item2.max_version)
    out += _I.pack(body.throttle_time_ms)
    tags3 = []
    supported_features_4 = getattr(body, "supported_features", ())
    if supported_features_4:
        whole5, out = out, bytearray()
        supported_features_6 = supported_features_4
        write_compact_count(out, supported_features_6)
        for item7 in supported_features_6 or ():
            write_compact_string(out, item7.name)
            out += _HHX.pack(item7.min_version, item7.max_version)
        tags3.append((0, out))
        out = whole5
    finalized_features_epoch_8 = getattr(body, "finalized_features_epoch", -1)
    if finalized_features_epoch_8 != -1:
        whole9, out = out, bytearray()
        out += _Q.pack(finalized_features_epoch_8)
        tags3.append((1, out))
        out = whole9
    finalized_features_10 = getattr(body, "finalized_features", ())
    if finalized_features_10:
        whole11, out = out, bytearray()
        finalized_features_12 = finalized_features_10
        write_compact_count(out, finalized_features_12)
        for item13 in finalized_features_12 or ():
            write_compact_string(out, item13.name)
            out += _HHX.pack(item13.max_version_level, item13.min_version_level)
        tags3.append((2, out))
        out = whole11
    zk_migration_ready_14 = getattr(body, "zk_migration_ready", False)
    if zk_migration_ready_14:
        whole15, out = out, bytearray()
        out += _T.pack(zk_migration_ready_14)
        tags3.append((3, out))
        out = whole15
    write_tags(out, tags3)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
