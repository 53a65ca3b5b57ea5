"""DescribeUserScramCredentials (50), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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

_BI = Struct(">bi")
_BIX = Struct(">bix")
_H = Struct(">h")
_IH = Struct(">ih")


class UserName(NamedTuple):
    """UserName of DescribeUserScramCredentials."""

    name: str = ""


class DescribeUserScramCredentialsRequest(NamedTuple):
    """DescribeUserScramCredentials request, v0-0."""

    users: Sequence[UserName] | None = ()

    @staticmethod
    def response_type() -> type[DescribeUserScramCredentialsResponse]:
        return DescribeUserScramCredentialsResponse


DescribeUserScramCredentialsRequest.API_KEY = 50  # type: ignore[attr-defined]


class CredentialInfo(NamedTuple):
    """CredentialInfo of DescribeUserScramCredentials."""

    mechanism: int = 0
    iterations: int = 0


class DescribeUserScramCredentialsResult(NamedTuple):
    """DescribeUserScramCredentialsResult of DescribeUserScramCredentials."""

    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: Sequence[CredentialInfo] = ()


class DescribeUserScramCredentialsResponse(NamedTuple):
    """DescribeUserScramCredentials response, v0-0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: Sequence[DescribeUserScramCredentialsResult] = ()


DescribeUserScramCredentialsResponse.API_KEY = 50  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeUserScramCredentialsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 2, "DescribeUserScramCredentialsRequest.users")
    users_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_compact_string(data, at)
        if name_3 is None:
            raise null_in("DescribeUserScramCredentialsRequest.name")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(UserName, (name_3,))
        users_1.append(item2)
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeUserScramCredentialsRequest, (users_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    users_1 = body.users
    write_compact_count(out, users_1)
    for item2 in users_1 or ():
        write_compact_string(out, item2.name)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeUserScramCredentialsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 6, "DescribeUserScramCredentialsResponse.results")
    results_4: Any = None if size < 0 else []
    for _ in range(size):
        user_6, at = read_compact_string(data, at)
        if user_6 is None:
            raise null_in("DescribeUserScramCredentialsResponse.user")
        (error_code_7,) = _H.unpack_from(data, at)
        at += 2
        error_message_8, at = read_compact_string(data, at)
        size, at, left = read_compact_count(
            data, at, left, 6, "DescribeUserScramCredentialsResponse.credential_infos"
        )
        credential_infos_9: Any = None if size < 0 else []
        for _ in range(size):
            mechanism_11, iterations_12 = _BI.unpack_from(data, at)
            at += 5
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item10 = _new(CredentialInfo, (mechanism_11, iterations_12))
            credential_infos_9.append(item10)
        if credential_infos_9 is None:
            raise null_in("DescribeUserScramCredentialsResponse.credential_infos")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item5 = _new(
            DescribeUserScramCredentialsResult, (user_6, error_code_7, error_message_8, credential_infos_9)
        )
        results_4.append(item5)
    if results_4 is None:
        raise null_in("DescribeUserScramCredentialsResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DescribeUserScramCredentialsResponse, (throttle_time_ms_1, error_code_2, error_message_3, results_4)
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    results_1 = body.results
    write_compact_count(out, results_1)
    for item2 in results_1 or ():
        write_compact_string(out, item2.user)
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        credential_infos_3 = item2.credential_infos
        write_compact_count(out, credential_infos_3)
        for item4 in credential_infos_3 or ():
            out += _BIX.pack(item4.mechanism, item4.iterations)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
