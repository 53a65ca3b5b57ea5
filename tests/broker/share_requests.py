"""Requests of share groups, for tests over the wire."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from kohort.protocol import ApiKey
from tests.broker.wire import Wire

TIMEOUT_S = 60.0
#: Types of an update of features.
_UPGRADE, _SAFE_DOWNGRADE = 1, 2


def set_share_version(wire: Wire, level: int) -> None:
    """Switch share groups on (1) or off (0)."""
    kind = _UPGRADE if level else _SAFE_DOWNGRADE
    update = {"feature": "share.version", "max_version_level": level, "upgrade_type": kind}
    answer = wire.call(ApiKey.UPDATE_FEATURES, 1, timeout_ms=10_000, feature_updates=[update])
    assert answer.error_code == 0, answer


def share_beat(wire: Wire, group: str, member: str, epoch: int, *topics: str, rack: str | None = None) -> Any:
    """The answer to a heartbeat, which names topics or none."""
    return wire.call(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id=rack,
        subscribed_topic_names=list(topics) or None,
    )


def describe_share_group(wire: Wire, group: str) -> Any:
    """The description of one share group."""
    answer = wire.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=[group], include_authorized_operations=False)
    (described,) = answer.groups
    return described


@dataclass
class ShareMemberSeen:
    """A member as its client knows it."""

    epoch: int
    assignment: dict[str, list[int]]


def join_share_group(wire: Wire, group: str, member: str, *topics: str) -> ShareMemberSeen:
    """Join, and heartbeat until the partitions have come."""
    answer = share_beat(wire, group, member, 0, *topics)
    assert answer.error_code == 0, answer
    deadline = time.monotonic() + TIMEOUT_S
    while answer.assignment is None or len(answer.assignment.topic_partitions) < len(topics):
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
        answer = share_beat(wire, group, member, answer.member_epoch)
        assert answer.error_code == 0, answer
    told = wire.call(
        ApiKey.METADATA,
        12,
        topics=[{"name": name, "topic_id": None} for name in topics],
        include_topic_authorized_operations=False,
        allow_auto_topic_creation=False,
    )
    names = {row.topic_id: row.name for row in told.topics}
    found = {names[row.topic_id]: sorted(row.partitions) for row in answer.assignment.topic_partitions}
    return ShareMemberSeen(answer.member_epoch, found)
