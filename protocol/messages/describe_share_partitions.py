"""DescribeSharePartitions (20002), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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
    read_tags,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_tags,
)

_HQ = Struct(">hq")
_HQX = Struct(">hqx")
_I = Struct(">i")
_IH = Struct(">ih")
_IQQQQ = Struct(">iqqqq")
_Q = Struct(">q")
_QQ = Struct(">qq")
_QQQQ = Struct(">qqqq")
_QX = Struct(">qx")


class DescribeSharePartitionsRequest(NamedTuple):
    """DescribeSharePartitions request, v0-0."""

    group_id: str = ""

    @staticmethod
    def response_type() -> type[DescribeSharePartitionsResponse]:
        return DescribeSharePartitionsResponse


DescribeSharePartitionsRequest.API_KEY = 20002  # type: ignore[attr-defined]


class HeldRecords(NamedTuple):
    """HeldRecords of DescribeSharePartitions."""

    member_id: str = ""
    records: int = 0


class DeliveredRecords(NamedTuple):
    """DeliveredRecords of DescribeSharePartitions."""

    delivery_count: int = 0
    records: int = 0


class SharePartitionInFlight(NamedTuple):
    """SharePartitionInFlight of DescribeSharePartitions."""

    partition_index: int = 0
    start_offset: int = 0
    end_offset: int = 0
    available: int = 0
    done: int = 0
    held: Sequence[HeldRecords] = ()
    deliveries: Sequence[DeliveredRecords] = ()
    rejected: int = 0
    exhausted: int = 0
    lost_locks: int = 0
    stalled_since_ms: int = -1
    last_delivery: int = 0


class SharePartitionTopic(NamedTuple):
    """SharePartitionTopic of DescribeSharePartitions."""

    topic_name: str = ""
    partitions: Sequence[SharePartitionInFlight] = ()


class SharePartitionEvent(NamedTuple):
    """SharePartitionEvent of DescribeSharePartitions."""

    sequence: int = 0
    timestamp_ms: int = 0
    kind: str = ""
    cause: str = ""
    member: str = ""
    topic_name: str = ""
    partition_index: int = 0
    details: str | None = None


class DescribeSharePartitionsResponse(NamedTuple):
    """DescribeSharePartitions response, v0-0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    topics: Sequence[SharePartitionTopic] = ()
    entries: Sequence[SharePartitionEvent] = ()


DescribeSharePartitionsResponse.API_KEY = 20002  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeSharePartitionsRequest, int]:
    del version
    del left
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("DescribeSharePartitionsRequest.group_id")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeSharePartitionsRequest, (group_id_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.group_id)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeSharePartitionsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 3, "DescribeSharePartitionsResponse.topics")
    topics_4: Any = None if size < 0 else []
    for _ in range(size):
        topic_name_6, at = read_compact_string(data, at)
        if topic_name_6 is None:
            raise null_in("DescribeSharePartitionsResponse.topic_name")
        size, at, left = read_compact_count(data, at, left, 71, "DescribeSharePartitionsResponse.partitions")
        partitions_7: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_9, start_offset_10, end_offset_11, available_12, done_13 = _IQQQQ.unpack_from(
                data, at
            )
            at += 36
            size, at, left = read_compact_count(data, at, left, 10, "DescribeSharePartitionsResponse.held")
            held_14: Any = None if size < 0 else []
            for _ in range(size):
                member_id_16, at = read_compact_string(data, at)
                if member_id_16 is None:
                    raise null_in("DescribeSharePartitionsResponse.member_id")
                (records_17,) = _Q.unpack_from(data, at)
                at += 8
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item15 = _new(HeldRecords, (member_id_16, records_17))
                held_14.append(item15)
            if held_14 is None:
                raise null_in("DescribeSharePartitionsResponse.held")
            size, at, left = read_compact_count(
                data, at, left, 11, "DescribeSharePartitionsResponse.deliveries"
            )
            deliveries_18: Any = None if size < 0 else []
            for _ in range(size):
                delivery_count_20, records_21 = _HQ.unpack_from(data, at)
                at += 10
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item19 = _new(DeliveredRecords, (delivery_count_20, records_21))
                deliveries_18.append(item19)
            if deliveries_18 is None:
                raise null_in("DescribeSharePartitionsResponse.deliveries")
            rejected_22, exhausted_23, lost_locks_24, stalled_since_ms_25 = _QQQQ.unpack_from(data, at)
            at += 32
            last_delivery_26: Any = 0
            if data[at]:
                tags, at = read_tags(data, at)
                for tag27, start, stop in tags:
                    if tag27 == 0:
                        at = start
                        (last_delivery_26,) = _Q.unpack_from(data, at)
                        at += 8
                        if at != stop:
                            raise malformed("a tagged field of another length than it says")
                    at = stop
            else:
                at += 1
            item8 = _new(
                SharePartitionInFlight,
                (
                    partition_index_9,
                    start_offset_10,
                    end_offset_11,
                    available_12,
                    done_13,
                    held_14,
                    deliveries_18,
                    rejected_22,
                    exhausted_23,
                    lost_locks_24,
                    stalled_since_ms_25,
                    last_delivery_26,
                ),
            )
            partitions_7.append(item8)
        if partitions_7 is None:
            raise null_in("DescribeSharePartitionsResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item5 = _new(SharePartitionTopic, (topic_name_6, partitions_7))
        topics_4.append(item5)
    if topics_4 is None:
        raise null_in("DescribeSharePartitionsResponse.topics")
    size, at, left = read_compact_count(data, at, left, 26, "DescribeSharePartitionsResponse.entries")
    entries_28: Any = None if size < 0 else []
    for _ in range(size):
        sequence_30, timestamp_ms_31 = _QQ.unpack_from(data, at)
        at += 16
        kind_32, at = read_compact_string(data, at)
        if kind_32 is None:
            raise null_in("DescribeSharePartitionsResponse.kind")
        cause_33, at = read_compact_string(data, at)
        if cause_33 is None:
            raise null_in("DescribeSharePartitionsResponse.cause")
        member_34, at = read_compact_string(data, at)
        if member_34 is None:
            raise null_in("DescribeSharePartitionsResponse.member")
        topic_name_35, at = read_compact_string(data, at)
        if topic_name_35 is None:
            raise null_in("DescribeSharePartitionsResponse.topic_name")
        (partition_index_36,) = _I.unpack_from(data, at)
        at += 4
        details_37, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item29 = _new(
            SharePartitionEvent,
            (
                sequence_30,
                timestamp_ms_31,
                kind_32,
                cause_33,
                member_34,
                topic_name_35,
                partition_index_36,
                details_37,
            ),
        )
        entries_28.append(item29)
    if entries_28 is None:
        raise null_in("DescribeSharePartitionsResponse.entries")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DescribeSharePartitionsResponse,
        (throttle_time_ms_1, error_code_2, error_message_3, topics_4, entries_28),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.topic_name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IQQQQ.pack(
                item4.partition_index, item4.start_offset, item4.end_offset, item4.available, item4.done
            )
            held_5 = item4.held
            write_compact_count(out, held_5)
            for item6 in held_5 or ():
                write_compact_string(out, item6.member_id)
                out += _QX.pack(item6.records)
            deliveries_7 = item4.deliveries
            write_compact_count(out, deliveries_7)
            for item8 in deliveries_7 or ():
                out += _HQX.pack(item8.delivery_count, item8.records)
            out += _QQQQ.pack(item4.rejected, item4.exhausted, item4.lost_locks, item4.stalled_since_ms)
            tags9 = []
            last_delivery_10 = getattr(item4, "last_delivery", 0)
            if last_delivery_10 != 0:
                whole11, out = out, bytearray()
                out += _Q.pack(last_delivery_10)
                tags9.append((0, out))
                out = whole11
            write_tags(out, tags9)
        out.append(0)
    entries_12 = body.entries
    write_compact_count(out, entries_12)
    for item13 in entries_12 or ():
        out += _QQ.pack(item13.sequence, item13.timestamp_ms)
        write_compact_string(out, item13.kind)
        write_compact_string(out, item13.cause)
        write_compact_string(out, item13.member)
        write_compact_string(out, item13.topic_name)
        out += _I.pack(item13.partition_index)
        write_compact_string(out, item13.details)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
