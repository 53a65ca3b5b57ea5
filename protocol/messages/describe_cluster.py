"""DescribeCluster (60), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_T = Struct(">?")
_B = Struct(">b")
_I = Struct(">i")
_IH = Struct(">ih")


class DescribeClusterRequest(NamedTuple):
    """DescribeCluster request, v0-2."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class DescribeClusterBroker(NamedTuple):
    """DescribeClusterBroker of DescribeCluster."""

    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


class DescribeClusterResponse(NamedTuple):
    """DescribeCluster response, v0-2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: Sequence[DescribeClusterBroker] = ()
    cluster_authorized_operations: int = -2147483648


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeClusterRequest, int]:
    del left
    (include_cluster_authorized_operations_1,) = _T.unpack_from(data, at)
    at += 1
    endpoint_type_2 = 1
    if version >= 1:
        (endpoint_type_2,) = _B.unpack_from(data, at)
        at += 1
    include_fenced_brokers_3 = False
    if version >= 2:
        (include_fenced_brokers_3,) = _T.unpack_from(data, at)
        at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DescribeClusterRequest,
        (include_cluster_authorized_operations_1, endpoint_type_2, include_fenced_brokers_3),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _T.pack(body.include_cluster_authorized_operations)
    if version >= 1:
        out += _B.pack(body.endpoint_type)
    if version >= 2:
        out += _T.pack(body.include_fenced_brokers)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeClusterResponse, int]:
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
    endpoint_type_4 = 1
    if version >= 1:
        (endpoint_type_4,) = _B.unpack_from(data, at)
        at += 1
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        cluster_id_5 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("DescribeClusterResponse.cluster_id")
    (controller_id_6,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 11 or left < 0:
            raise too_many("DescribeClusterResponse.brokers", size, left)
        brokers_7 = []
        for _ in range(size):
            (broker_id_9,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                host_10 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeClusterResponse.host")
            (port_11,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                rack_12 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                rack_12 = None
            else:
                raise malformed("a negative length")
            is_fenced_13 = False
            if version >= 2:
                (is_fenced_13,) = _T.unpack_from(data, at)
                at += 1
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item8 = _new(DescribeClusterBroker, (broker_id_9, host_10, port_11, rack_12, is_fenced_13))
            brokers_7.append(item8)
    else:
        raise null_in("DescribeClusterResponse.brokers")
    (cluster_authorized_operations_14,) = _I.unpack_from(data, at)
    at += 4
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DescribeClusterResponse,
        (
            throttle_time_ms_1,
            error_code_2,
            error_message_3,
            endpoint_type_4,
            cluster_id_5,
            controller_id_6,
            brokers_7,
            cluster_authorized_operations_14,
        ),
    ), at


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
    if version >= 1:
        out += _B.pack(body.endpoint_type)
    value = body.cluster_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _I.pack(body.controller_id)
    brokers_1 = body.brokers
    if brokers_1 is None:
        out += b"\x00"
    else:
        size = len(brokers_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in brokers_1:
            out += _I.pack(item2.broker_id)
            value = item2.host
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _I.pack(item2.port)
            value = item2.rack
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            if version >= 2:
                out += _T.pack(item2.is_fenced)
            out.append(0)
    out += _I.pack(body.cluster_authorized_operations)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
