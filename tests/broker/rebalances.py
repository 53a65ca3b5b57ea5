"""Rebalances of a classic group of one member, one after the other."""

from __future__ import annotations

from kohort.protocol import ApiKey, TopicPartition, encode_assignment
from tests.broker.wire import Wire, part


def rebalances_of_one(wire: Wire, group: str, count: int) -> list[str]:
    """A member joins, changes its metadata as often as it takes, and leaves; return the causes."""
    member = ""
    for number in range(count - 1):
        metadata = number.to_bytes(4, "big")
        protocol = part(ApiKey.JOIN_GROUP, 5, "JoinGroupRequestProtocol", name="range", metadata=metadata)
        joining = {
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [protocol],
            "group_instance_id": None,
        }
        answer = wire.call(ApiKey.JOIN_GROUP, 5, group_id=group, member_id=member, **joining)
        if not member:
            member = answer.member_id
            answer = wire.call(ApiKey.JOIN_GROUP, 5, group_id=group, member_id=member, **joining)
        share = part(
            ApiKey.SYNC_GROUP,
            3,
            "SyncGroupRequestAssignment",
            member_id=member,
            assignment=encode_assignment([TopicPartition("t", number % 7)]),
        )
        synced = wire.call(
            ApiKey.SYNC_GROUP,
            3,
            group_id=group,
            generation_id=answer.generation_id,
            member_id=member,
            group_instance_id=None,
            assignments=[share],
        )
        assert not synced.error_code
    assert not wire.call(ApiKey.LEAVE_GROUP, 1, group_id=group, member_id=member).error_code
    changed = [f"leader {member} changed its metadata"] * (count - 2)
    return [f"member {member} joined", *changed, f"member {member} left"]
