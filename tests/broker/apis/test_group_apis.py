"""The group APIs reach the coordinator, whatever their version, and say who asked."""

from __future__ import annotations

import pytest

from kohort.broker.handlers import HANDLERS
from kohort.broker.handlers.groups import GROUP_APIS, handle
from kohort.protocol import ApiKey
from tests.broker.wire import Wire, part


def test_every_group_api_is_the_coordinators() -> None:
    assert all(HANDLERS[key] is handle for key in GROUP_APIS)


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
