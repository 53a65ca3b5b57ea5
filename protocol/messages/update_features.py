"""UpdateFeatures (57), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_T = Struct(">?")
_B = Struct(">b")
_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class FeatureUpdateKey(NamedTuple):
    """FeatureUpdateKey of UpdateFeatures."""

    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1


class UpdateFeaturesRequest(NamedTuple):
    """UpdateFeatures request, v0-2."""

    timeout_ms: int = 60000
    feature_updates: Sequence[FeatureUpdateKey] = ()
    validate_only: bool = False


class UpdatableFeatureResult(NamedTuple):
    """UpdatableFeatureResult of UpdateFeatures."""

    feature: str = ""
    error_code: int = 0
    error_message: str | None = ""


class UpdateFeaturesResponse(NamedTuple):
    """UpdateFeatures response, v0-2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: Sequence[UpdatableFeatureResult] = ()


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[UpdateFeaturesRequest, int]:
    (timeout_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("UpdateFeaturesRequest.feature_updates", size, left)
        feature_updates_2 = []
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
                feature_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("UpdateFeaturesRequest.feature")
            (max_version_level_5,) = _H.unpack_from(data, at)
            at += 2
            allow_downgrade_6 = False
            if version <= 0:
                (allow_downgrade_6,) = _T.unpack_from(data, at)
                at += 1
            upgrade_type_7 = 1
            if version >= 1:
                (upgrade_type_7,) = _B.unpack_from(data, at)
                at += 1
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(
                FeatureUpdateKey, (feature_4, max_version_level_5, allow_downgrade_6, upgrade_type_7)
            )
            feature_updates_2.append(item3)
    else:
        raise null_in("UpdateFeaturesRequest.feature_updates")
    validate_only_8 = False
    if version >= 1:
        (validate_only_8,) = _T.unpack_from(data, at)
        at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(UpdateFeaturesRequest, (timeout_ms_1, feature_updates_2, validate_only_8)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.timeout_ms)
    feature_updates_1 = body.feature_updates
    if feature_updates_1 is None:
        out += b"\x00"
    else:
        size = len(feature_updates_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in feature_updates_1:
            value = item2.feature
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _H.pack(item2.max_version_level)
            if version <= 0:
                out += _T.pack(item2.allow_downgrade)
            if version >= 1:
                out += _B.pack(item2.upgrade_type)
            out.append(0)
    if version >= 1:
        out += _T.pack(body.validate_only)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[UpdateFeaturesResponse, int]:
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
    results_4 = ()
    if version <= 1:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 5 or left < 0:
                raise too_many("UpdateFeaturesResponse.results", size, left)
            results_4 = []
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
                    feature_6 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("UpdateFeaturesResponse.feature")
                (error_code_7,) = _H.unpack_from(data, at)
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
                    error_message_8 = str(data[at:end], "utf-8")
                    at = end
                elif size == -1:
                    error_message_8 = None
                else:
                    raise malformed("a negative length")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item5 = _new(UpdatableFeatureResult, (feature_6, error_code_7, error_message_8))
                results_4.append(item5)
        else:
            raise null_in("UpdateFeaturesResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(UpdateFeaturesResponse, (throttle_time_ms_1, error_code_2, error_message_3, results_4)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    value = body.error_message
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    if version <= 1:
        results_1 = body.results
        if results_1 is None:
            out += b"\x00"
        else:
            size = len(results_1) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item2 in results_1:
                value = item2.feature
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out += _H.pack(item2.error_code)
                value = item2.error_message
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
