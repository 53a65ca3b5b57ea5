"""UpdateFeatures (57), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

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
    skip_tags,
    write_compact_count,
    write_compact_string,
)

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

    @staticmethod
    def response_type() -> type[UpdateFeaturesResponse]:
        return UpdateFeaturesResponse


UpdateFeaturesRequest.API_KEY = 57  # type: ignore[attr-defined]


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


UpdateFeaturesResponse.API_KEY = 57  # type: ignore[attr-defined]


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[UpdateFeaturesRequest, int]:
    (timeout_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 4, "UpdateFeaturesRequest.feature_updates")
    feature_updates_2: Any = None if size < 0 else []
    for _ in range(size):
        feature_4, at = read_compact_string(data, at)
        if feature_4 is None:
            raise null_in("UpdateFeaturesRequest.feature")
        (max_version_level_5,) = _H.unpack_from(data, at)
        at += 2
        allow_downgrade_6: Any = False
        if version <= 0:
            (allow_downgrade_6,) = _T.unpack_from(data, at)
            at += 1
        upgrade_type_7: Any = 1
        if version >= 1:
            (upgrade_type_7,) = _B.unpack_from(data, at)
            at += 1
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(FeatureUpdateKey, (feature_4, max_version_level_5, allow_downgrade_6, upgrade_type_7))
        feature_updates_2.append(item3)
    if feature_updates_2 is None:
        raise null_in("UpdateFeaturesRequest.feature_updates")
    validate_only_8: Any = False
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
    write_compact_count(out, feature_updates_1)
    for item2 in feature_updates_1 or ():
        write_compact_string(out, item2.feature)
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
    error_message_3, at = read_compact_string(data, at)
    results_4: Any = ()
    if version <= 1:
        size, at, left = read_compact_count(data, at, left, 5, "UpdateFeaturesResponse.results")
        results_4 = None if size < 0 else []
        for _ in range(size):
            feature_6, at = read_compact_string(data, at)
            if feature_6 is None:
                raise null_in("UpdateFeaturesResponse.feature")
            (error_code_7,) = _H.unpack_from(data, at)
            at += 2
            error_message_8, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(UpdatableFeatureResult, (feature_6, error_code_7, error_message_8))
            results_4.append(item5)
        if results_4 is None:
            raise null_in("UpdateFeaturesResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(UpdateFeaturesResponse, (throttle_time_ms_1, error_code_2, error_message_3, results_4)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    if version <= 1:
        results_1 = body.results
        write_compact_count(out, results_1)
        for item2 in results_1 or ():
            write_compact_string(out, item2.feature)
            out += _H.pack(item2.error_code)
            write_compact_string(out, item2.error_message)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
