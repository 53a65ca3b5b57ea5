"""A live group for the workbench, from any broker: DescribeGroups (15) and Metadata (3)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ..assignors import Measure, Member, TopicInfo
from ..client import Cluster
from ..consumer.weights import measure_weights
from ..protocol import (
    ErrorCode,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
)
from ._errors import advised
from ._requests import CONSUMER, classic_group
from .workbench import GroupSnapshot, WorkbenchError

#: Members tell what they subscribe to in these states only.
_TELLING: Final = ("Stable", "Empty", "Dead")
_ASK_AGAIN_S: Final = 0.1


async def take_snapshot(cluster: Cluster, group: str, *, wait_s: float = 15.0) -> GroupSnapshot:
    """The group as it is once it is stable; waits for that. No weights.

    KafkaError 69 for a group that does not exist. WorkbenchError for one that is no classic group of
    consumers, or does not settle in time.
    """
    row = await _settled(cluster, group, wait_s)
    members: dict[str, Member] = {}
    owned: dict[str, tuple[TopicPartition, ...]] = {}
    for one in row.members:
        subscription = decode_subscription(bytes(one.member_metadata)) if one.member_metadata else None
        mine = decode_assignment(bytes(one.member_assignment)).partitions if one.member_assignment else ()
        subscribed = subscription or Subscription(())
        members[one.member_id] = Member(one.member_id, subscribed, one.group_instance_id or None)
        owned[one.member_id] = tuple(sorted(mine))
    topics = await read_topics(cluster, {t for member in members.values() for t in member.topics})
    return GroupSnapshot(group, topics, members, owned, row.protocol_data, names=_names(row.members))


async def _settled(cluster: Cluster, group: str, wait_s: float) -> Any:
    try:
        async with asyncio.timeout(wait_s):
            while True:
                row, _ = await classic_group(cluster, group)
                if row.group_state in _TELLING:
                    break
                await asyncio.sleep(_ASK_AGAIN_S)
    except TimeoutError:
        raise WorkbenchError(
            f"group {group!r} is rebalancing for {wait_s:g} s now: try again when it is stable"
        ) from None
    if row.group_state == "Dead" or row.error_code:
        raise advised(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no classic group {group!r}")
    if row.protocol_type not in ("", CONSUMER):
        raise WorkbenchError(
            f"group {group!r} is of protocol type {row.protocol_type!r}: only consumers have assignors"
        )
    return row


async def read_topics(cluster: Cluster, names: set[str]) -> dict[str, TopicInfo]:
    """The topics that exist, with the racks of their replicas where brokers have racks."""
    known = await cluster.metadata(names)
    infos = {}
    for name in sorted(names & known.topics.keys()):
        racks = []
        for partition in known.topics[name].partitions.values():
            nodes = (known.nodes.get(node) for node in partition.replicas)
            racks.append(frozenset(node.rack for node in nodes if node is not None and node.rack))
        infos[name] = TopicInfo(len(racks), tuple(racks) if any(racks) else ())
    return infos


async def weights_of(cluster: Cluster, group: GroupSnapshot, measure: Measure) -> dict[TopicPartition, float]:
    """Lag or throughput of the group's topics, as its leader would measure them."""
    partitions = [
        TopicPartition(t, n) for t, info in group.topics.items() for n in range(info.partition_count)
    ]
    return await measure_weights(cluster, group.group, measure, partitions)


def _names(rows: Any) -> dict[str, str]:
    """Instance ids; client ids where no two members have the same."""
    clients = [row.client_id for row in rows]
    return {
        row.member_id: row.group_instance_id or row.client_id
        for row in rows
        if row.group_instance_id or (row.client_id and clients.count(row.client_id) == 1)
    }
