"""FindCoordinator: this broker, at the address of this connection."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from kohort.protocol import ApiKey, ErrorCode, SharePartitionKey
from kohort.testing import RunningBroker
from tests.broker.wire import Wire
from tests.limits.prepared_broker import prepared_broker

GROUP, TRANSACTION, SHARE = 0, 1, 2


@pytest.mark.row("3.2/endpoint", "3.1/FindCoordinator")
@pytest.mark.parametrize("version", range(4))
def test_one_group(broker: RunningBroker, wire: Wire, version: int) -> None:
    answer = wire.call(ApiKey.FIND_COORDINATOR, version, key="billing", key_type=GROUP)
    assert (answer.error_code, answer.node_id) == (0, 1)
    assert (answer.host, answer.port) == (broker.host, broker.port)


@pytest.mark.row("3.1/FindCoordinator-v1")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_below_version_4_no_error_has_a_name(wire: Wire, version: int) -> None:
    answer = wire.call(ApiKey.FIND_COORDINATOR, version, key="billing", key_type=GROUP)
    assert answer.error_message == "NONE"


@pytest.mark.row("3.2/empty", "3.1/FindCoordinator-v4", "3.1/FindCoordinator")
@pytest.mark.parametrize("version", [4, 5, 6])
def test_many_groups(broker: RunningBroker, wire: Wire, version: int) -> None:
    keys = ["billing", "", "shipping"]
    answer = wire.call(ApiKey.FIND_COORDINATOR, version, key_type=GROUP, coordinator_keys=keys)
    assert [(one.key, one.error_code, one.node_id, one.port) for one in answer.coordinators] == [
        (key, 0, 1, broker.port) for key in keys
    ]


@pytest.mark.row("3.2/key-type")
@pytest.mark.parametrize("key_type", [SHARE, 9])
def test_other_coordinators_are_not_offered(wire: Wire, key_type: int) -> None:
    one = wire.call(ApiKey.FIND_COORDINATOR, 2, key="x", key_type=key_type)
    assert (one.error_code, one.node_id, one.host, one.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)
    (many,) = wire.call(ApiKey.FIND_COORDINATOR, 5, key_type=key_type, coordinator_keys=["x"]).coordinators
    assert (many.error_code, many.key) == (ErrorCode.INVALID_REQUEST, "x")
    assert "is not known in version 5" in many.error_message


def test_share_partitions_have_coordinators_by_keys_of_their_form(broker: RunningBroker, wire: Wire) -> None:
    good = str(SharePartitionKey("a:b", UUID(int=5), 7))
    answer = wire.call(ApiKey.FIND_COORDINATOR, 6, key_type=SHARE, coordinator_keys=[good, "x", good[:-2]])
    assert [(row.key, row.error_code, row.node_id) for row in answer.coordinators] == [
        (good, ErrorCode.NONE, 1),
        ("x", ErrorCode.INVALID_REQUEST, -1),
        (good[:-2], ErrorCode.INVALID_REQUEST, -1),
    ]
    assert answer.coordinators[0].port == broker.port


@pytest.mark.parametrize("in_cluster", [False, True])
@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION])
async def test_without_a_key_nothing_is_begun(tmp_path: Path, key_type: int, in_cluster: bool) -> None:
    """By anybody: the topics of coordinators are made for those who may use one."""
    async with prepared_broker(tmp_path, filled=False, in_cluster=in_cluster) as broker:
        before = {topic.name for topic in broker.node.topics.all()}
        answer = await broker.call(ApiKey.FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=[])
        assert list(answer.coordinators) == []
        assert {topic.name for topic in broker.node.topics.all()} == before
        (refused,) = (
            await broker.call(ApiKey.FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=["mine"])
        ).coordinators
        assert refused.error_code in (
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        )
        assert {topic.name for topic in broker.node.topics.all()} == before
