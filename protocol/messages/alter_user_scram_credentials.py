"""AlterUserScramCredentials (51), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    read_compact_bytes,
    read_compact_count,
    read_compact_string,
    skip_tags,
    write_compact_bytes,
    write_compact_count,
    write_compact_string,
)

_B = Struct(">b")
_BI = Struct(">bi")
_BX = Struct(">bx")
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

    @staticmethod
    def response_type() -> type[AlterUserScramCredentialsResponse]:
        return AlterUserScramCredentialsResponse


AlterUserScramCredentialsRequest.API_KEY = 51  # type: ignore[attr-defined]


class AlterUserScramCredentialsResult(NamedTuple):
    """AlterUserScramCredentialsResult of AlterUserScramCredentials."""

    user: str = ""
    error_code: int = 0
    error_message: str | None = ""


class AlterUserScramCredentialsResponse(NamedTuple):
    """AlterUserScramCredentials response, v0-0."""

    throttle_time_ms: int = 0
    results: Sequence[AlterUserScramCredentialsResult] = ()


AlterUserScramCredentialsResponse.API_KEY = 51  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterUserScramCredentialsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 3, "AlterUserScramCredentialsRequest.deletions")
    deletions_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_compact_string(data, at)
        if name_3 is None:
            raise null_in("AlterUserScramCredentialsRequest.name")
        (mechanism_4,) = _B.unpack_from(data, at)
        at += 1
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(ScramCredentialDeletion, (name_3, mechanism_4))
        deletions_1.append(item2)
    if deletions_1 is None:
        raise null_in("AlterUserScramCredentialsRequest.deletions")
    size, at, left = read_compact_count(data, at, left, 9, "AlterUserScramCredentialsRequest.upsertions")
    upsertions_5: Any = None if size < 0 else []
    for _ in range(size):
        name_7, at = read_compact_string(data, at)
        if name_7 is None:
            raise null_in("AlterUserScramCredentialsRequest.name")
        mechanism_8, iterations_9 = _BI.unpack_from(data, at)
        at += 5
        salt_10, at = read_compact_bytes(data, at)
        if salt_10 is None:
            raise null_in("AlterUserScramCredentialsRequest.salt")
        salted_password_11, at = read_compact_bytes(data, at)
        if salted_password_11 is None:
            raise null_in("AlterUserScramCredentialsRequest.salted_password")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item6 = _new(
            ScramCredentialUpsertion, (name_7, mechanism_8, iterations_9, salt_10, salted_password_11)
        )
        upsertions_5.append(item6)
    if upsertions_5 is None:
        raise null_in("AlterUserScramCredentialsRequest.upsertions")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterUserScramCredentialsRequest, (deletions_1, upsertions_5)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    deletions_1 = body.deletions
    write_compact_count(out, deletions_1)
    for item2 in deletions_1 or ():
        write_compact_string(out, item2.name)
        out += _BX.pack(item2.mechanism)
    upsertions_3 = body.upsertions
    write_compact_count(out, upsertions_3)
    for item4 in upsertions_3 or ():
        write_compact_string(out, item4.name)
        out += _BI.pack(item4.mechanism, item4.iterations)
        write_compact_bytes(out, item4.salt)
        write_compact_bytes(out, item4.salted_password)
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
    size, at, left = read_compact_count(data, at, left, 5, "AlterUserScramCredentialsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        user_4, at = read_compact_string(data, at)
        if user_4 is None:
            raise null_in("AlterUserScramCredentialsResponse.user")
        (error_code_5,) = _H.unpack_from(data, at)
        at += 2
        error_message_6, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(AlterUserScramCredentialsResult, (user_4, error_code_5, error_message_6))
        results_2.append(item3)
    if results_2 is None:
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
    write_compact_count(out, results_1)
    for item2 in results_1 or ():
        write_compact_string(out, item2.user)
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
