"""Fetch (1), versions 4 to 18. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from .wire import (
    BYTES,
    NO_UUID,
    NamedTuple,
    _new,
    add_records,
    long_varint,
    malformed,
    null_in,
    pack,
    read_compact_string,
    read_tags,
    read_uuid,
    skip_tags,
    too_many,
    unpack_from,
    varint,
    write_tags,
)

_H = Struct(">h")
_HI = Struct(">hi")
_I = Struct(">i")
_IHI = Struct(">ihi")
_IHQQ = Struct(">ihqq")
_IHQQQ = Struct(">ihqqq")
_II = Struct(">ii")
_IIIBII = Struct(">iiibii")
_IIIIB = Struct(">iiiib")
_IIQIQI = Struct(">iiqiqi")
_IIQIQIX = Struct(">iiqiqix")
_IIX = Struct(">iix")
_IQ = Struct(">iq")
_IQX = Struct(">iqx")
_Q = Struct(">q")
_QI = Struct(">qi")
_QIX = Struct(">qix")
_QQ = Struct(">qq")
_QQX = Struct(">qqx")


class ReplicaState(NamedTuple):
    """ReplicaState of Fetch."""

    replica_id: int = -1
    replica_epoch: int = -1


class FetchPartition(NamedTuple):
    """FetchPartition of Fetch."""

    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: UUID | None = None
    high_watermark: int = 9223372036854775807


class FetchTopic(NamedTuple):
    """FetchTopic of Fetch."""

    topic: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[FetchPartition] = ()


class ForgottenTopic(NamedTuple):
    """ForgottenTopic of Fetch."""

    topic: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[int] = ()


class FetchRequest(NamedTuple):
    """Fetch request, v4-18."""

    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState | None = None
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Sequence[ForgottenTopic] = ()
    rack_id: str = ""

    @staticmethod
    def response_type() -> type[FetchResponse]:
        return FetchResponse


FetchRequest.API_KEY = 1  # type: ignore[attr-defined]


class EpochEndOffset(NamedTuple):
    """EpochEndOffset of Fetch."""

    epoch: int = -1
    end_offset: int = -1


class LeaderIdAndEpoch(NamedTuple):
    """LeaderIdAndEpoch of Fetch."""

    leader_id: int = -1
    leader_epoch: int = -1


class SnapshotId(NamedTuple):
    """SnapshotId of Fetch."""

    end_offset: int = -1
    epoch: int = -1


class AbortedTransaction(NamedTuple):
    """AbortedTransaction of Fetch."""

    producer_id: int = 0
    first_offset: int = 0


class PartitionData(NamedTuple):
    """PartitionData of Fetch."""

    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset | None = None
    current_leader: LeaderIdAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
    aborted_transactions: Sequence[AbortedTransaction] | None = ()
    preferred_read_replica: int = -1
    records: bytes | memoryview | None = b""


class FetchableTopicResponse(NamedTuple):
    """FetchableTopicResponse of Fetch."""

    topic: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    """NodeEndpoint of Fetch."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class FetchResponse(NamedTuple):
    """Fetch response, v4-18."""

    throttle_time_ms: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: Sequence[FetchableTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


FetchResponse.API_KEY = 1  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[FetchRequest, int]:
    replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5 = _IIIIB.unpack_from(data, at)
    at += 17
    session_id_6: Any = 0
    session_epoch_7: Any = -1
    if version >= 7:
        session_id_6, session_epoch_7 = _II.unpack_from(data, at)
        at += 8
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("FetchRequest.topics", size, left)
        topics_8: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                topic_10 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("FetchRequest.topic")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 16 or left < 0:
                    raise too_many("FetchRequest.partitions", size, left)
                partitions_11: Any = []
                for _ in range(size):
                    (partition_13,) = _I.unpack_from(data, at)
                    at += 4
                    current_leader_epoch_14: Any = -1
                    if version >= 9:
                        (current_leader_epoch_14,) = _I.unpack_from(data, at)
                        at += 4
                    (fetch_offset_15,) = _Q.unpack_from(data, at)
                    at += 8
                    log_start_offset_16: Any = -1
                    if version >= 5:
                        (log_start_offset_16,) = _Q.unpack_from(data, at)
                        at += 8
                    (partition_max_bytes_17,) = _I.unpack_from(data, at)
                    at += 4
                    item12 = _new(
                        FetchPartition,
                        (
                            partition_13,
                            current_leader_epoch_14,
                            fetch_offset_15,
                            -1,
                            log_start_offset_16,
                            partition_max_bytes_17,
                            None,
                            9223372036854775807,
                        ),
                    )
                    partitions_11.append(item12)
            else:
                raise null_in("FetchRequest.partitions")
            item9 = _new(FetchTopic, (topic_10, None, partitions_11))
            topics_8.append(item9)
    else:
        raise null_in("FetchRequest.topics")
    forgotten_topics_data_18: Any = ()
    if version >= 7:
        (size,) = _I.unpack_from(data, at)
        at += 4
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 6 or left < 0:
                raise too_many("FetchRequest.forgotten_topics_data", size, left)
            forgotten_topics_data_18 = []
            for _ in range(size):
                (size,) = _H.unpack_from(data, at)
                at += 2
                if size >= 0:
                    end = at + size
                    topic_20 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("FetchRequest.topic")
                (size,) = _I.unpack_from(data, at)
                at += 4
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 4 or left < 0:
                        raise too_many("FetchRequest.partitions", size, left)
                    partitions_21 = list(unpack_from(f">{size}i", data, at))
                    at += 4 * size
                else:
                    raise null_in("FetchRequest.partitions")
                item19 = _new(ForgottenTopic, (topic_20, None, partitions_21))
                forgotten_topics_data_18.append(item19)
        else:
            raise null_in("FetchRequest.forgotten_topics_data")
    rack_id_22: Any = ""
    if version >= 11:
        (size,) = _H.unpack_from(data, at)
        at += 2
        if size >= 0:
            end = at + size
            rack_id_22 = str(data[at:end], "utf-8")
            at = end
        else:
            raise null_in("FetchRequest.rack_id")
    return _new(
        FetchRequest,
        (
            None,
            replica_id_1,
            None,
            max_wait_ms_2,
            min_bytes_3,
            max_bytes_4,
            isolation_level_5,
            session_id_6,
            session_epoch_7,
            topics_8,
            forgotten_topics_data_18,
            rack_id_22,
        ),
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    out += _IIIIB.pack(
        body.replica_id, body.max_wait_ms, body.min_bytes, body.max_bytes, body.isolation_level
    )
    if version >= 7:
        out += _II.pack(body.session_id, body.session_epoch)
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topics_1))
        for item2 in topics_1:
            value = item2.topic
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(partitions_3))
                for item4 in partitions_3:
                    out += _I.pack(item4.partition)
                    if version >= 9:
                        out += _I.pack(item4.current_leader_epoch)
                    out += _Q.pack(item4.fetch_offset)
                    if version >= 5:
                        out += _Q.pack(item4.log_start_offset)
                    out += _I.pack(item4.partition_max_bytes)
    if version >= 7:
        forgotten_topics_data_5 = body.forgotten_topics_data
        if forgotten_topics_data_5 is None:
            out += b"\xff\xff\xff\xff"
        else:
            out += _I.pack(len(forgotten_topics_data_5))
            for item6 in forgotten_topics_data_5:
                value = item6.topic
                if value is None:
                    out += b"\xff\xff"
                else:
                    data = value.encode()
                    out += _H.pack(len(data))
                    out += data
                partitions_7 = item6.partitions
                if partitions_7 is None:
                    out += b"\xff\xff\xff\xff"
                else:
                    out += _I.pack(len(partitions_7))
                    out += pack(f">{len(partitions_7)}i", *partitions_7)
    if version >= 11:
        value = body.rack_id
        if value is None:
            out += b"\xff\xff"
        else:
            data = value.encode()
            out += _H.pack(len(data))
            out += data


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[FetchRequest, int]:
    replica_id_1: Any = -1
    if version <= 14:
        (replica_id_1,) = _I.unpack_from(data, at)
        at += 4
    max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7 = (
        _IIIBII.unpack_from(data, at)
    )
    at += 21
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("FetchRequest.topics", size, left)
        topics_8: Any = []
        for _ in range(size):
            topic_10: Any = ""
            if version <= 12:
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    topic_10 = data[at + 1 : end].decode()
                    at = end
                else:
                    topic_10, at = read_compact_string(data, at)
                    if topic_10 is None:
                        raise null_in("FetchRequest.topic")
            topic_id_11: Any = None
            if version >= 13:
                topic_id_11 = read_uuid(data[at : at + 16])
                at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 33 or left < 0:
                    raise too_many("FetchRequest.partitions", size, left)
                end = at + 33 * size
                if size > 1 and data[at + 32 : end : 33] == b"\x00" * size:
                    partitions_12: Any = [
                        _new(
                            FetchPartition,
                            (
                                partition_,
                                current_leader_epoch_,
                                fetch_offset_,
                                last_fetched_epoch_,
                                log_start_offset_,
                                partition_max_bytes_,
                                None,
                                9223372036854775807,
                            ),
                        )
                        for partition_, current_leader_epoch_, fetch_offset_, last_fetched_epoch_, log_start_offset_, partition_max_bytes_ in _IIQIQIX.iter_unpack(
                            data[at:end]
                        )
                    ]
                    at = end
                else:
                    partitions_12 = []
                    for _ in range(size):
                        (
                            partition_14,
                            current_leader_epoch_15,
                            fetch_offset_16,
                            last_fetched_epoch_17,
                            log_start_offset_18,
                            partition_max_bytes_19,
                        ) = _IIQIQI.unpack_from(data, at)
                        at += 32
                        replica_directory_id_20: Any = None
                        high_watermark_21: Any = 9223372036854775807
                        if data[at]:
                            tags, at = read_tags(data, at)
                            for tag22, start, stop in tags:
                                if tag22 == 0 and version >= 17:
                                    at = start
                                    replica_directory_id_20 = read_uuid(data[at : at + 16])
                                    at += 16
                                    if at != stop:
                                        raise malformed("a tagged field of another length than it says")
                                elif tag22 == 1 and version >= 18:
                                    at = start
                                    (high_watermark_21,) = _Q.unpack_from(data, at)
                                    at += 8
                                    if at != stop:
                                        raise malformed("a tagged field of another length than it says")
                                at = stop
                        else:
                            at += 1
                        item13 = _new(
                            FetchPartition,
                            (
                                partition_14,
                                current_leader_epoch_15,
                                fetch_offset_16,
                                last_fetched_epoch_17,
                                log_start_offset_18,
                                partition_max_bytes_19,
                                replica_directory_id_20,
                                high_watermark_21,
                            ),
                        )
                        partitions_12.append(item13)
            else:
                raise null_in("FetchRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item9 = _new(FetchTopic, (topic_10, topic_id_11, partitions_12))
            topics_8.append(item9)
    else:
        raise null_in("FetchRequest.topics")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("FetchRequest.forgotten_topics_data", size, left)
        forgotten_topics_data_23: Any = []
        for _ in range(size):
            topic_25: Any = ""
            if version <= 12:
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    topic_25 = data[at + 1 : end].decode()
                    at = end
                else:
                    topic_25, at = read_compact_string(data, at)
                    if topic_25 is None:
                        raise null_in("FetchRequest.topic")
            topic_id_26: Any = None
            if version >= 13:
                topic_id_26 = read_uuid(data[at : at + 16])
                at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("FetchRequest.partitions", size, left)
                partitions_27 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("FetchRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item24 = _new(ForgottenTopic, (topic_25, topic_id_26, partitions_27))
            forgotten_topics_data_23.append(item24)
    else:
        raise null_in("FetchRequest.forgotten_topics_data")
    size = data[at]
    if 0 < size < 128:
        end = at + size
        rack_id_28 = data[at + 1 : end].decode()
        at = end
    else:
        rack_id_28, at = read_compact_string(data, at)
        if rack_id_28 is None:
            raise null_in("FetchRequest.rack_id")
    cluster_id_29: Any = None
    replica_state_30: Any = None
    if data[at]:
        tags, at = read_tags(data, at)
        for tag31, start, stop in tags:
            if tag31 == 0:
                at = start
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    cluster_id_29 = data[at + 1 : end].decode()
                    at = end
                elif not size:
                    cluster_id_29 = None
                    at += 1
                else:
                    cluster_id_29, at = read_compact_string(data, at)
                if at != stop:
                    raise malformed("a tagged field of another length than it says")
            elif tag31 == 1 and version >= 15:
                at = start
                replica_id_32, replica_epoch_33 = _IQ.unpack_from(data, at)
                at += 12
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                replica_state_30 = _new(ReplicaState, (replica_id_32, replica_epoch_33))
                if at != stop:
                    raise malformed("a tagged field of another length than it says")
            at = stop
    else:
        at += 1
    return _new(
        FetchRequest,
        (
            cluster_id_29,
            replica_id_1,
            replica_state_30,
            max_wait_ms_2,
            min_bytes_3,
            max_bytes_4,
            isolation_level_5,
            session_id_6,
            session_epoch_7,
            topics_8,
            forgotten_topics_data_23,
            rack_id_28,
        ),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version <= 14:
        out += _I.pack(body.replica_id)
    out += _IIIBII.pack(
        body.max_wait_ms,
        body.min_bytes,
        body.max_bytes,
        body.isolation_level,
        body.session_id,
        body.session_epoch,
    )
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            if version <= 12:
                value = item2.topic
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            if version >= 13:
                uuid = item2.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\x00"
            else:
                size = len(partitions_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partitions_3:
                    out += _IIQIQI.pack(
                        item4.partition,
                        item4.current_leader_epoch,
                        item4.fetch_offset,
                        item4.last_fetched_epoch,
                        item4.log_start_offset,
                        item4.partition_max_bytes,
                    )
                    tags5 = []
                    replica_directory_id_6 = getattr(item4, "replica_directory_id", None)
                    if replica_directory_id_6 is not None and (version >= 17):
                        whole7, out = out, bytearray()
                        uuid = replica_directory_id_6
                        out += NO_UUID if uuid is None else uuid.bytes
                        tags5.append((0, out))
                        out = whole7
                    high_watermark_8 = getattr(item4, "high_watermark", 9223372036854775807)
                    if high_watermark_8 != 9223372036854775807 and (version >= 18):
                        whole9, out = out, bytearray()
                        out += _Q.pack(high_watermark_8)
                        tags5.append((1, out))
                        out = whole9
                    write_tags(out, tags5)
            out.append(0)
    forgotten_topics_data_10 = body.forgotten_topics_data
    if forgotten_topics_data_10 is None:
        out += b"\x00"
    else:
        size = len(forgotten_topics_data_10) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item11 in forgotten_topics_data_10:
            if version <= 12:
                value = item11.topic
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            if version >= 13:
                uuid = item11.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
            partitions_12 = item11.partitions
            if partitions_12 is None:
                out += b"\x00"
            else:
                size = len(partitions_12) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += pack(f">{len(partitions_12)}i", *partitions_12)
            out.append(0)
    value = body.rack_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    tags14 = []
    cluster_id_15 = getattr(body, "cluster_id", None)
    if cluster_id_15 is not None:
        whole16, out = out, bytearray()
        value = cluster_id_15
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
        tags14.append((0, out))
        out = whole16
    replica_state_17 = getattr(body, "replica_state", None)
    if replica_state_17 is not None and (version >= 15):
        whole18, out = out, bytearray()
        replica_state_19 = replica_state_17
        out += _IQX.pack(replica_state_19.replica_id, replica_state_19.replica_epoch)
        tags14.append((1, out))
        out = whole18
    write_tags(out, tags14)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 12 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 12 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[FetchResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    error_code_2: Any = 0
    session_id_3: Any = 0
    if version >= 7:
        error_code_2, session_id_3 = _HI.unpack_from(data, at)
        at += 6
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("FetchResponse.responses", size, left)
        responses_4: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                topic_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("FetchResponse.topic")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 30 or left < 0:
                    raise too_many("FetchResponse.partitions", size, left)
                partitions_7: Any = []
                for _ in range(size):
                    partition_index_9, error_code_10, high_watermark_11, last_stable_offset_12 = (
                        _IHQQ.unpack_from(data, at)
                    )
                    at += 22
                    log_start_offset_13: Any = -1
                    if version >= 5:
                        (log_start_offset_13,) = _Q.unpack_from(data, at)
                        at += 8
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 16 or left < 0:
                            raise too_many("FetchResponse.aborted_transactions", size, left)
                        end = at + 16 * size
                        if size > 1:
                            aborted_transactions_14: Any = [
                                _new(AbortedTransaction, (producer_id_, first_offset_))
                                for producer_id_, first_offset_ in _QQ.iter_unpack(data[at:end])
                            ]
                            at = end
                        else:
                            aborted_transactions_14 = []
                            for _ in range(size):
                                producer_id_16, first_offset_17 = _QQ.unpack_from(data, at)
                                at += 16
                                item15 = _new(AbortedTransaction, (producer_id_16, first_offset_17))
                                aborted_transactions_14.append(item15)
                    else:
                        aborted_transactions_14 = None
                    preferred_read_replica_18: Any = -1
                    if version >= 11:
                        (preferred_read_replica_18,) = _I.unpack_from(data, at)
                        at += 4
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        end = at + size
                        records_19 = data[at:end]
                        at = end
                    else:
                        records_19 = None
                    item8 = _new(
                        PartitionData,
                        (
                            partition_index_9,
                            error_code_10,
                            high_watermark_11,
                            last_stable_offset_12,
                            log_start_offset_13,
                            None,
                            None,
                            None,
                            aborted_transactions_14,
                            preferred_read_replica_18,
                            records_19,
                        ),
                    )
                    partitions_7.append(item8)
            else:
                raise null_in("FetchResponse.partitions")
            item5 = _new(FetchableTopicResponse, (topic_6, None, partitions_7))
            responses_4.append(item5)
    else:
        raise null_in("FetchResponse.responses")
    return _new(FetchResponse, (throttle_time_ms_1, error_code_2, session_id_3, responses_4, ())), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    if version >= 7:
        out += _HI.pack(body.error_code, body.session_id)
    responses_1 = body.responses
    if responses_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(responses_1))
        for item2 in responses_1:
            value = item2.topic
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(partitions_3))
                for item4 in partitions_3:
                    out += _IHQQ.pack(
                        item4.partition_index,
                        item4.error_code,
                        item4.high_watermark,
                        item4.last_stable_offset,
                    )
                    if version >= 5:
                        out += _Q.pack(item4.log_start_offset)
                    aborted_transactions_5 = item4.aborted_transactions
                    if aborted_transactions_5 is None:
                        out += b"\xff\xff\xff\xff"
                    else:
                        out += _I.pack(len(aborted_transactions_5))
                        out += b"".join(
                            [
                                _QQ.pack(item6.producer_id, item6.first_offset)
                                for item6 in aborted_transactions_5
                            ]
                        )
                    if version >= 11:
                        out += _I.pack(item4.preferred_read_replica)
                    value = item4.records
                    if value is None:
                        out += b"\xff\xff\xff\xff"
                    else:
                        data = value
                        out += _I.pack(len(data))
                        add_records(out, data)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[FetchResponse, int]:
    throttle_time_ms_1, error_code_2, session_id_3 = _IHI.unpack_from(data, at)
    at += 10
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("FetchResponse.responses", size, left)
        responses_4: Any = []
        for _ in range(size):
            topic_6: Any = ""
            if version <= 12:
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    topic_6 = str(data[at + 1 : end], "utf-8")
                    at = end
                else:
                    topic_6, at = read_compact_string(data, at)
                    if topic_6 is None:
                        raise null_in("FetchResponse.topic")
            topic_id_7: Any = None
            if version >= 13:
                topic_id_7 = read_uuid(data[at : at + 16])
                at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 37 or left < 0:
                    raise too_many("FetchResponse.partitions", size, left)
                partitions_8: Any = []
                for _ in range(size):
                    (
                        partition_index_10,
                        error_code_11,
                        high_watermark_12,
                        last_stable_offset_13,
                        log_start_offset_14,
                    ) = _IHQQQ.unpack_from(data, at)
                    at += 30
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 17 or left < 0:
                            raise too_many("FetchResponse.aborted_transactions", size, left)
                        end = at + 17 * size
                        if size > 1 and data[at + 16 : end : 17] == b"\x00" * size:
                            aborted_transactions_15: Any = [
                                _new(AbortedTransaction, (producer_id_, first_offset_))
                                for producer_id_, first_offset_ in _QQX.iter_unpack(data[at:end])
                            ]
                            at = end
                        else:
                            aborted_transactions_15 = []
                            for _ in range(size):
                                producer_id_17, first_offset_18 = _QQ.unpack_from(data, at)
                                at += 16
                                if data[at]:
                                    at = skip_tags(data, at)
                                else:
                                    at += 1
                                item16 = _new(AbortedTransaction, (producer_id_17, first_offset_18))
                                aborted_transactions_15.append(item16)
                    else:
                        aborted_transactions_15 = None
                    (preferred_read_replica_19,) = _I.unpack_from(data, at)
                    at += 4
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        end = at + size
                        records_20 = data[at:end]
                        at = end
                    else:
                        records_20 = None
                    diverging_epoch_21: Any = None
                    current_leader_22: Any = None
                    snapshot_id_23: Any = None
                    if data[at]:
                        tags, at = read_tags(data, at)
                        for tag24, start, stop in tags:
                            if tag24 == 0:
                                at = start
                                epoch_25, end_offset_26 = _IQ.unpack_from(data, at)
                                at += 12
                                if data[at]:
                                    at = skip_tags(data, at)
                                else:
                                    at += 1
                                diverging_epoch_21 = _new(EpochEndOffset, (epoch_25, end_offset_26))
                                if at != stop:
                                    raise malformed("a tagged field of another length than it says")
                            elif tag24 == 1:
                                at = start
                                leader_id_27, leader_epoch_28 = _II.unpack_from(data, at)
                                at += 8
                                if data[at]:
                                    at = skip_tags(data, at)
                                else:
                                    at += 1
                                current_leader_22 = _new(LeaderIdAndEpoch, (leader_id_27, leader_epoch_28))
                                if at != stop:
                                    raise malformed("a tagged field of another length than it says")
                            elif tag24 == 2:
                                at = start
                                end_offset_29, epoch_30 = _QI.unpack_from(data, at)
                                at += 12
                                if data[at]:
                                    at = skip_tags(data, at)
                                else:
                                    at += 1
                                snapshot_id_23 = _new(SnapshotId, (end_offset_29, epoch_30))
                                if at != stop:
                                    raise malformed("a tagged field of another length than it says")
                            at = stop
                    else:
                        at += 1
                    item9 = _new(
                        PartitionData,
                        (
                            partition_index_10,
                            error_code_11,
                            high_watermark_12,
                            last_stable_offset_13,
                            log_start_offset_14,
                            diverging_epoch_21,
                            current_leader_22,
                            snapshot_id_23,
                            aborted_transactions_15,
                            preferred_read_replica_19,
                            records_20,
                        ),
                    )
                    partitions_8.append(item9)
            else:
                raise null_in("FetchResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(FetchableTopicResponse, (topic_6, topic_id_7, partitions_8))
            responses_4.append(item5)
    else:
        raise null_in("FetchResponse.responses")
    node_endpoints_31: Any = ()
    if data[at]:
        tags, at = read_tags(data, at)
        for tag32, start, stop in tags:
            if tag32 == 0 and version >= 16:
                at = start
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 11 or left < 0:
                        raise too_many("FetchResponse.node_endpoints", size, left)
                    node_endpoints_31 = []
                    for _ in range(size):
                        (node_id_34,) = _I.unpack_from(data, at)
                        at += 4
                        size = data[at]
                        if 0 < size < 128:
                            end = at + size
                            host_35 = str(data[at + 1 : end], "utf-8")
                            at = end
                        else:
                            host_35, at = read_compact_string(data, at)
                            if host_35 is None:
                                raise null_in("FetchResponse.host")
                        (port_36,) = _I.unpack_from(data, at)
                        at += 4
                        size = data[at]
                        if 0 < size < 128:
                            end = at + size
                            rack_37 = str(data[at + 1 : end], "utf-8")
                            at = end
                        elif not size:
                            rack_37 = None
                            at += 1
                        else:
                            rack_37, at = read_compact_string(data, at)
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item33 = _new(NodeEndpoint, (node_id_34, host_35, port_36, rack_37))
                        node_endpoints_31.append(item33)
                else:
                    raise null_in("FetchResponse.node_endpoints")
                if at != stop:
                    raise malformed("a tagged field of another length than it says")
            at = stop
    else:
        at += 1
    return _new(
        FetchResponse, (throttle_time_ms_1, error_code_2, session_id_3, responses_4, node_endpoints_31)
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IHI.pack(body.throttle_time_ms, body.error_code, body.session_id)
    responses_1 = body.responses
    if responses_1 is None:
        out += b"\x00"
    else:
        size = len(responses_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in responses_1:
            if version <= 12:
                value = item2.topic
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            if version >= 13:
                uuid = item2.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\x00"
            else:
                size = len(partitions_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partitions_3:
                    out += _IHQQQ.pack(
                        item4.partition_index,
                        item4.error_code,
                        item4.high_watermark,
                        item4.last_stable_offset,
                        item4.log_start_offset,
                    )
                    aborted_transactions_5 = item4.aborted_transactions
                    if aborted_transactions_5 is None:
                        out += b"\x00"
                    else:
                        size = len(aborted_transactions_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += b"".join(
                            [
                                _QQX.pack(item6.producer_id, item6.first_offset)
                                for item6 in aborted_transactions_5
                            ]
                        )
                    out += _I.pack(item4.preferred_read_replica)
                    value = item4.records
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        add_records(out, data)
                    tags7 = []
                    diverging_epoch_8 = getattr(item4, "diverging_epoch", None)
                    if diverging_epoch_8 is not None:
                        whole9, out = out, bytearray()
                        diverging_epoch_10 = diverging_epoch_8
                        out += _IQX.pack(diverging_epoch_10.epoch, diverging_epoch_10.end_offset)
                        tags7.append((0, out))
                        out = whole9
                    current_leader_11 = getattr(item4, "current_leader", None)
                    if current_leader_11 is not None:
                        whole12, out = out, bytearray()
                        current_leader_13 = current_leader_11
                        out += _IIX.pack(current_leader_13.leader_id, current_leader_13.leader_epoch)
                        tags7.append((1, out))
                        out = whole12
                    snapshot_id_14 = getattr(item4, "snapshot_id", None)
                    if snapshot_id_14 is not None:
                        whole15, out = out, bytearray()
                        snapshot_id_16 = snapshot_id_14
                        out += _QIX.pack(snapshot_id_16.end_offset, snapshot_id_16.epoch)
                        tags7.append((2, out))
                        out = whole15
                    write_tags(out, tags7)
            out.append(0)
    tags17 = []
    node_endpoints_18 = getattr(body, "node_endpoints", ())
    if node_endpoints_18 and (version >= 16):
        whole19, out = out, bytearray()
        node_endpoints_20 = node_endpoints_18
        if node_endpoints_20 is None:
            out += b"\x00"
        else:
            size = len(node_endpoints_20) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item21 in node_endpoints_20:
                out += _I.pack(item21.node_id)
                value = item21.host
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out += _I.pack(item21.port)
                value = item21.rack
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out.append(0)
        tags17.append((0, out))
        out = whole19
    write_tags(out, tags17)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 12 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 12 else _write_response_classic
