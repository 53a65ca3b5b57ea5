"""DescribeGroupRecording (20003), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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
_TQQQ = Struct(">?qqq")
_TQQQX = Struct(">?qqqx")
_I = Struct(">i")
_IH = Struct(">ih")
_QQ = Struct(">qq")
_QQITQQ = Struct(">qqi?qq")
_QQITQQX = Struct(">qqi?qqx")
_QQQI = Struct(">qqqi")
_QQQIX = Struct(">qqqix")
_QQX = Struct(">qqx")


class DescribeGroupRecordingRequest(NamedTuple):
    """DescribeGroupRecording request, v0-0."""

    group_id: str = ""
    from_ms: int = 0
    until_ms: int = -1
    limit: int = -1
    only_lasting: bool = False
    before_ms: int = -1
    before_number: int = -1

    @staticmethod
    def response_type() -> type[DescribeGroupRecordingResponse]:
        return DescribeGroupRecordingResponse


DescribeGroupRecordingRequest.API_KEY = 20003  # type: ignore[attr-defined]


class WatchedStretch(NamedTuple):
    """WatchedStretch of DescribeGroupRecording."""

    from_ms: int = 0
    until_ms: int = 0


class RecordingLoss(NamedTuple):
    """RecordingLoss of DescribeGroupRecording."""

    of_group: bool = False
    from_ms: int = 0
    until_ms: int = 0
    lost: int = 0


class RecordedEntry(NamedTuple):
    """RecordedEntry of DescribeGroupRecording."""

    number: int = 0
    timestamp_ms: int = 0
    kind: str = ""
    generation: int = -1
    cause: str = ""
    member: str = ""
    client_id: str = ""
    client_host: str = ""
    details: str = ""
    extras: str = ""


class LagAtTime(NamedTuple):
    """LagAtTime of DescribeGroupRecording."""

    timestamp_ms: int = 0
    records: int = -1
    age_ms: int = -1
    members: int = -1


class DescribeGroupRecordingResponse(NamedTuple):
    """DescribeGroupRecording response, v0-0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    is_recording: bool = False
    details_from_ms: int = 0
    events_from_ms: int = 0
    samples_from_ms: int = 0
    watched: Sequence[WatchedStretch] = ()
    losses: Sequence[RecordingLoss] = ()
    has_older: bool = False
    entries: Sequence[RecordedEntry] = ()
    samples: Sequence[LagAtTime] = ()


DescribeGroupRecordingResponse.API_KEY = 20003  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeGroupRecordingRequest, int]:
    del version
    del left
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("DescribeGroupRecordingRequest.group_id")
    from_ms_2, until_ms_3, limit_4, only_lasting_5, before_ms_6, before_number_7 = _QQITQQ.unpack_from(
        data, at
    )
    at += 37
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DescribeGroupRecordingRequest,
        (group_id_1, from_ms_2, until_ms_3, limit_4, only_lasting_5, before_ms_6, before_number_7),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.group_id)
    out += _QQITQQX.pack(
        body.from_ms, body.until_ms, body.limit, body.only_lasting, body.before_ms, body.before_number
    )


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeGroupRecordingResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_compact_string(data, at)
    is_recording_4, details_from_ms_5, events_from_ms_6, samples_from_ms_7 = _TQQQ.unpack_from(data, at)
    at += 25
    size, at, left = read_compact_count(data, at, left, 17, "DescribeGroupRecordingResponse.watched")
    watched_8: Any = None if size < 0 else []
    for _ in range(size):
        from_ms_10, until_ms_11 = _QQ.unpack_from(data, at)
        at += 16
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item9 = _new(WatchedStretch, (from_ms_10, until_ms_11))
        watched_8.append(item9)
    if watched_8 is None:
        raise null_in("DescribeGroupRecordingResponse.watched")
    size, at, left = read_compact_count(data, at, left, 26, "DescribeGroupRecordingResponse.losses")
    losses_12: Any = None if size < 0 else []
    for _ in range(size):
        of_group_14, from_ms_15, until_ms_16, lost_17 = _TQQQ.unpack_from(data, at)
        at += 25
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item13 = _new(RecordingLoss, (of_group_14, from_ms_15, until_ms_16, lost_17))
        losses_12.append(item13)
    if losses_12 is None:
        raise null_in("DescribeGroupRecordingResponse.losses")
    (has_older_18,) = _T.unpack_from(data, at)
    at += 1
    size, at, left = read_compact_count(data, at, left, 28, "DescribeGroupRecordingResponse.entries")
    entries_19: Any = None if size < 0 else []
    for _ in range(size):
        number_21, timestamp_ms_22 = _QQ.unpack_from(data, at)
        at += 16
        kind_23, at = read_compact_string(data, at)
        if kind_23 is None:
            raise null_in("DescribeGroupRecordingResponse.kind")
        (generation_24,) = _I.unpack_from(data, at)
        at += 4
        cause_25, at = read_compact_string(data, at)
        if cause_25 is None:
            raise null_in("DescribeGroupRecordingResponse.cause")
        member_26, at = read_compact_string(data, at)
        if member_26 is None:
            raise null_in("DescribeGroupRecordingResponse.member")
        client_id_27, at = read_compact_string(data, at)
        if client_id_27 is None:
            raise null_in("DescribeGroupRecordingResponse.client_id")
        client_host_28, at = read_compact_string(data, at)
        if client_host_28 is None:
            raise null_in("DescribeGroupRecordingResponse.client_host")
        details_29, at = read_compact_string(data, at)
        if details_29 is None:
            raise null_in("DescribeGroupRecordingResponse.details")
        extras_30, at = read_compact_string(data, at)
        if extras_30 is None:
            raise null_in("DescribeGroupRecordingResponse.extras")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item20 = _new(
            RecordedEntry,
            (
                number_21,
                timestamp_ms_22,
                kind_23,
                generation_24,
                cause_25,
                member_26,
                client_id_27,
                client_host_28,
                details_29,
                extras_30,
            ),
        )
        entries_19.append(item20)
    if entries_19 is None:
        raise null_in("DescribeGroupRecordingResponse.entries")
    size, at, left = read_compact_count(data, at, left, 29, "DescribeGroupRecordingResponse.samples")
    samples_31: Any = None if size < 0 else []
    for _ in range(size):
        timestamp_ms_33, records_34, age_ms_35, members_36 = _QQQI.unpack_from(data, at)
        at += 28
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item32 = _new(LagAtTime, (timestamp_ms_33, records_34, age_ms_35, members_36))
        samples_31.append(item32)
    if samples_31 is None:
        raise null_in("DescribeGroupRecordingResponse.samples")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DescribeGroupRecordingResponse,
        (
            throttle_time_ms_1,
            error_code_2,
            error_message_3,
            is_recording_4,
            details_from_ms_5,
            events_from_ms_6,
            samples_from_ms_7,
            watched_8,
            losses_12,
            has_older_18,
            entries_19,
            samples_31,
        ),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    out += _TQQQ.pack(body.is_recording, body.details_from_ms, body.events_from_ms, body.samples_from_ms)
    watched_1 = body.watched
    write_compact_count(out, watched_1)
    for item2 in watched_1 or ():
        out += _QQX.pack(item2.from_ms, item2.until_ms)
    losses_3 = body.losses
    write_compact_count(out, losses_3)
    for item4 in losses_3 or ():
        out += _TQQQX.pack(item4.of_group, item4.from_ms, item4.until_ms, item4.lost)
    out += _T.pack(body.has_older)
    entries_5 = body.entries
    write_compact_count(out, entries_5)
    for item6 in entries_5 or ():
        out += _QQ.pack(item6.number, item6.timestamp_ms)
        write_compact_string(out, item6.kind)
        out += _I.pack(item6.generation)
        write_compact_string(out, item6.cause)
        write_compact_string(out, item6.member)
        write_compact_string(out, item6.client_id)
        write_compact_string(out, item6.client_host)
        write_compact_string(out, item6.details)
        write_compact_string(out, item6.extras)
        out.append(0)
    samples_7 = body.samples
    write_compact_count(out, samples_7)
    for item8 in samples_7 or ():
        out += _QQQIX.pack(item8.timestamp_ms, item8.records, item8.age_ms, item8.members)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
