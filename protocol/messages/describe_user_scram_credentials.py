"""DescribeUserScramCredentials (50), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_BI = Struct(">bi")
_H = Struct(">h")
_IH = Struct(">ih")


class UserName(NamedTuple):
    """UserName of DescribeUserScramCredentials."""

    name: str = ""


class DescribeUserScramCredentialsRequest(NamedTuple):
    """DescribeUserScramCredentials request, v0-0."""

    users: Sequence[UserName] | None = ()


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


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeUserScramCredentialsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("DescribeUserScramCredentialsRequest.users", size, left)
        users_1 = []
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
                name_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeUserScramCredentialsRequest.name")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(UserName, (name_3,))
            users_1.append(item2)
    elif size == -1:
        users_1 = None
    else:
        raise malformed("a negative length")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeUserScramCredentialsRequest, (users_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    users_1 = body.users
    if users_1 is None:
        out += b"\x00"
    else:
        size = len(users_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in users_1:
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
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
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("DescribeUserScramCredentialsResponse.results", size, left)
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
                user_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeUserScramCredentialsResponse.user")
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
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("DescribeUserScramCredentialsResponse.credential_infos", size, left)
                credential_infos_9 = []
                for _ in range(size):
                    mechanism_11, iterations_12 = _BI.unpack_from(data, at)
                    at += 5
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item10 = _new(CredentialInfo, (mechanism_11, iterations_12))
                    credential_infos_9.append(item10)
            else:
                raise null_in("DescribeUserScramCredentialsResponse.credential_infos")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(
                DescribeUserScramCredentialsResult,
                (user_6, error_code_7, error_message_8, credential_infos_9),
            )
            results_4.append(item5)
    else:
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
    value = body.error_message
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    results_1 = body.results
    if results_1 is None:
        out += b"\x00"
    else:
        size = len(results_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in results_1:
            value = item2.user
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
            credential_infos_3 = item2.credential_infos
            if credential_infos_3 is None:
                out += b"\x00"
            else:
                size = len(credential_infos_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in credential_infos_3:
                    out += _BI.pack(item4.mechanism, item4.iterations)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
