"""DescribeCluster: this broker and the cluster's id."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode, operation_bits
from kohort.testing import RunningBroker
from tests.broker.wire import Wire


def ask(wire: Wire, version: int, **fields: Any) -> Any:
    return wire.call(ApiKey.DESCRIBE_CLUSTER, version, **fields)


@pytest.mark.parametrize("version", range(3))
def test_the_broker_and_the_cluster(broker: RunningBroker, wire: Wire, version: int) -> None:
    answer = ask(wire, version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, broker.cluster_id, 1)
    assert [(one.broker_id, one.host, one.port) for one in answer.brokers] == [(1, broker.host, broker.port)]
    assert answer.cluster_authorized_operations == -(2**31)


def test_operations_are_told_when_asked_for(wire: Wire) -> None:
    answer = ask(wire, 0, include_cluster_authorized_operations=True)
    assert answer.cluster_authorized_operations == operation_bits({5, 7, 8, 9, 10, 11, 12})


@pytest.mark.parametrize(
    ("kind", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_controllers_are_asked_for_elsewhere(wire: Wire, kind: int, code: ErrorCode) -> None:
    assert ask(wire, 1, endpoint_type=kind).error_code == code
