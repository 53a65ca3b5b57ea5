"""DescribeCluster (60), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

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
_I = Struct(">i")
_IH = Struct(">ih")
_IX = Struct(">ix")


class DescribeClusterRequest(NamedTuple):
    """DescribeCluster request, v0-2."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False

    @staticmethod
    def response_type() -> type[DescribeClusterResponse]:
        return DescribeClusterResponse


DescribeClusterRequest.API_KEY = 60  # type: ignore[attr-defined]


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


DescribeClusterResponse.API_KEY = 60  # type: ignore[attr-defined]


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeClusterRequest, int]:
    del left
    (include_cluster_authorized_operations_1,) = _T.unpack_from(data, at)
    at += 1
    endpoint_type_2: Any = 1
    if version >= 1:
        (endpoint_type_2,) = _B.unpack_from(data, at)
        at += 1
    include_fenced_brokers_3: Any = False
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
    error_message_3, at = read_compact_string(data, at)
    endpoint_type_4: Any = 1
    if version >= 1:
        (endpoint_type_4,) = _B.unpack_from(data, at)
        at += 1
    cluster_id_5, at = read_compact_string(data, at)
    if cluster_id_5 is None:
        raise null_in("DescribeClusterResponse.cluster_id")
    (controller_id_6,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 11, "DescribeClusterResponse.brokers")
    brokers_7: Any = None if size < 0 else []
    for _ in range(size):
        (broker_id_9,) = _I.unpack_from(data, at)
        at += 4
        host_10, at = read_compact_string(data, at)
        if host_10 is None:
            raise null_in("DescribeClusterResponse.host")
        (port_11,) = _I.unpack_from(data, at)
        at += 4
        rack_12, at = read_compact_string(data, at)
        is_fenced_13: Any = False
        if version >= 2:
            (is_fenced_13,) = _T.unpack_from(data, at)
            at += 1
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item8 = _new(DescribeClusterBroker, (broker_id_9, host_10, port_11, rack_12, is_fenced_13))
        brokers_7.append(item8)
    if brokers_7 is None:
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
    write_compact_string(out, body.error_message)
    if version >= 1:
        out += _B.pack(body.endpoint_type)
    write_compact_string(out, body.cluster_id)
    out += _I.pack(body.controller_id)
    brokers_1 = body.brokers
    write_compact_count(out, brokers_1)
    for item2 in brokers_1 or ():
        out += _I.pack(item2.broker_id)
        write_compact_string(out, item2.host)
        out += _I.pack(item2.port)
        write_compact_string(out, item2.rack)
        if version >= 2:
            out += _T.pack(item2.is_fenced)
        out.append(0)
    out += _IX.pack(body.cluster_authorized_operations)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
