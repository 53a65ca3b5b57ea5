"""The group APIs reach the coordinator, whatever their version, and say who asked.

Covers: broker/apis/consumer_group_heartbeat.py, broker/apis/consumer_group_describe.py.
Covers: broker/apis/delete_groups.py, broker/apis/describe_groups.py.
Covers: broker/apis/heartbeat.py, broker/apis/join_group.py, broker/apis/leave_group.py.
Covers: broker/apis/list_groups.py, broker/apis/offset_commit.py, broker/apis/offset_delete.py.
Covers: broker/apis/offset_fetch.py, broker/apis/sync_group.py.
"""

from __future__ import annotations

import pytest

from kohort.broker.apis import served_apis
from kohort.broker.apis._api import hand_over
from kohort.coordinator.groups.shards import OFFSETS_TOPIC
from kohort.protocol import ApiKey
from tests.broker.wire import Wire, part

#: The APIs of groups, and those of offsets: all but those that ask transactions or share coordinators too.
GROUP_APIS = set(OFFSETS_TOPIC.apis) - {ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS}


def test_every_group_api_is_the_coordinators() -> None:
    assert {key for key, api in served_apis().items() if api.handler is hand_over} == GROUP_APIS


def test_what_members_send_most_takes_the_short_way_and_only_what_waits_for_members_parks() -> None:
    short = {ApiKey(key) for key, api in served_apis().items() if api.without_task}
    members = {ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.OFFSET_COMMIT}
    assert short == {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, *members}
    parking = {ApiKey(key) for key, api in served_apis().items() if api.parks}
    assert parking == {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.FETCH, ApiKey.SHARE_FETCH}


@pytest.mark.parametrize("version", range(10))
def test_a_member_is_told_apart_by_its_client_and_address(wire: Wire, name: str, version: int) -> None:
    protocol = part(ApiKey.JOIN_GROUP, version, "JoinGroupRequestProtocol", name="range", metadata=b"")
    fields = {
        "group_id": name,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [protocol],
        "group_instance_id": None,
    }
    member_id = ""
    if version >= 4:
        member_id = wire.call(ApiKey.JOIN_GROUP, version, member_id="", **fields).member_id
    joined = wire.call(ApiKey.JOIN_GROUP, version, member_id=member_id, **fields)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, joined.member_id)
    (group,) = wire.call(ApiKey.DESCRIBE_GROUPS, 4, groups=[name]).groups
    (member,) = group.members
    assert (member.client_id, member.client_host) == ("wire", "/127.0.0.1")
