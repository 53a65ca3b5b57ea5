"""AlterUserScramCredentials (51), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_B = Struct(">b")
_BI = Struct(">bi")
_H = Struct(">h")
_I = Struct(">i")


class ScramCredentialDeletion(NamedTuple):
    """ScramCredentialDeletion of AlterUserScramCredentials."""

    name: str = ""
    mechanism: int = 0


class ScramCredentialUpsertion(NamedTuple):
    """ScramCredentialUpsertion of AlterUserScramCredentials."""

    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""


class AlterUserScramCredentialsRequest(NamedTuple):
    """AlterUserScramCredentials request, v0-0."""

    deletions: Sequence[ScramCredentialDeletion] = ()
    upsertions: Sequence[ScramCredentialUpsertion] = ()


class AlterUserScramCredentialsResult(NamedTuple):
    """AlterUserScramCredentialsResult of AlterUserScramCredentials."""

    user: str = ""
    error_code: int = 0
    error_message: str | None = ""


class AlterUserScramCredentialsResponse(NamedTuple):
    """AlterUserScramCredentials response, v0-0."""

    throttle_time_ms: int = 0
    results: Sequence[AlterUserScramCredentialsResult] = ()


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterUserScramCredentialsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("AlterUserScramCredentialsRequest.deletions", size, left)
        deletions_1 = []
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
                raise null_in("AlterUserScramCredentialsRequest.name")
            (mechanism_4,) = _B.unpack_from(data, at)
            at += 1
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(ScramCredentialDeletion, (name_3, mechanism_4))
            deletions_1.append(item2)
    else:
        raise null_in("AlterUserScramCredentialsRequest.deletions")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 9 or left < 0:
            raise too_many("AlterUserScramCredentialsRequest.upsertions", size, left)
        upsertions_5 = []
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
                name_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AlterUserScramCredentialsRequest.name")
            mechanism_8, iterations_9 = _BI.unpack_from(data, at)
            at += 5
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                end = at + size
                salt_10 = bytes(data[at:end])
                at = end
            else:
                raise null_in("AlterUserScramCredentialsRequest.salt")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                end = at + size
                salted_password_11 = bytes(data[at:end])
                at = end
            else:
                raise null_in("AlterUserScramCredentialsRequest.salted_password")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(
                ScramCredentialUpsertion, (name_7, mechanism_8, iterations_9, salt_10, salted_password_11)
            )
            upsertions_5.append(item6)
    else:
        raise null_in("AlterUserScramCredentialsRequest.upsertions")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterUserScramCredentialsRequest, (deletions_1, upsertions_5)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    deletions_1 = body.deletions
    if deletions_1 is None:
        out += b"\x00"
    else:
        size = len(deletions_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in deletions_1:
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _B.pack(item2.mechanism)
            out.append(0)
    upsertions_3 = body.upsertions
    if upsertions_3 is None:
        out += b"\x00"
    else:
        size = len(upsertions_3) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item4 in upsertions_3:
            value = item4.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _BI.pack(item4.mechanism, item4.iterations)
            value = item4.salt
            if value is None:
                out += b"\x00"
            else:
                data = value
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item4.salted_password
            if value is None:
                out += b"\x00"
            else:
                data = value
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
) -> tuple[AlterUserScramCredentialsResponse, int]:
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
            raise too_many("AlterUserScramCredentialsResponse.results", size, left)
        results_2 = []
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
                user_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AlterUserScramCredentialsResponse.user")
            (error_code_5,) = _H.unpack_from(data, at)
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
                error_message_6 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                error_message_6 = None
            else:
                raise malformed("a negative length")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(AlterUserScramCredentialsResult, (user_4, error_code_5, error_message_6))
            results_2.append(item3)
    else:
        raise null_in("AlterUserScramCredentialsResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterUserScramCredentialsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
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
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
