"""A live group for the workbench: DescribeGroups (15) or ConsumerGroupDescribe (69), and Metadata (3)."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...assignors import Measure, Member, TopicInfo
from ...client import Cluster
from ...consumer.group.partition_weights import measure_weights
from ...protocol import (
    ErrorCode,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
)
from ..errors import advise_error
from ..groups.requests import CONSUMER, classic_group, consumer_group
from .workbench import GroupSnapshot, WorkbenchError

if TYPE_CHECKING:
    from ...protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
    from ...protocol.messages.describe_groups import DescribedGroup

#: States in which the subscriptions of members are known.
_TELLING: Final = ("Stable", "Empty", "Dead")
_ASK_AGAIN_S: Final = 0.1


async def take_snapshot(cluster: Cluster, group: str, *, wait_s: float = 15.0) -> GroupSnapshot:
    """Wait until the group is stable and return it, without weights.

    Raises KafkaError 69 for a group that does not exist, WorkbenchError for one that is not a group of
    consumers or does not become stable in time.
    """
    consumers = await consumer_group(cluster, group)
    if consumers is not None:
        return await _of_consumer_group(cluster, consumers)
    row = await _wait_until_settled(cluster, group, wait_s)
    members: dict[str, Member] = {}
    owned: dict[str, tuple[TopicPartition, ...]] = {}
    for one in row.members:
        subscription = decode_subscription(bytes(one.member_metadata)) if one.member_metadata else None
        mine = decode_assignment(bytes(one.member_assignment)).partitions if one.member_assignment else ()
        subscribed = subscription or Subscription(())
        members[one.member_id] = Member(one.member_id, subscribed, one.group_instance_id or None)
        owned[one.member_id] = tuple(sorted(mine))
    topics = await read_topics(cluster, {t for member in members.values() for t in member.topics})
    names = _member_names([(one.member_id, one.group_instance_id, one.client_id) for one in row.members])
    return GroupSnapshot(group, topics, members, owned, row.protocol_data, names=names)


async def _of_consumer_group(cluster: Cluster, row: DescribedConsumerGroup) -> GroupSnapshot:
    """A consumer group (KIP-848) as its assignor sees it: members own their part of the target.

    Brokers do not say which topics match a regular expression: the topics that the target gives to its
    subscribers are taken for them.
    """
    targets = {
        one.member_id: {each.topic_name: each.partitions for each in one.target_assignment.topic_partitions}
        for one in row.members
    }
    found: dict[str, set[str]] = defaultdict(set)
    for one in row.members:
        if one.subscribed_topic_regex:
            found[one.subscribed_topic_regex] |= targets[one.member_id].keys() - {*one.subscribed_topic_names}
    members: dict[str, Member] = {}
    owned: dict[str, tuple[TopicPartition, ...]] = {}
    for one in row.members:
        mine = targets[one.member_id]
        topics = tuple(
            sorted({*one.subscribed_topic_names, *found.get(one.subscribed_topic_regex or "", ())})
        )
        owned[one.member_id] = tuple(sorted(TopicPartition(t, n) for t, rest in mine.items() for n in rest))
        said = Subscription(
            topics, owned=owned[one.member_id], generation=row.assignment_epoch, rack=one.rack_id
        )
        members[one.member_id] = Member(one.member_id, said, one.instance_id, one.client_id)
    infos = await read_topics(cluster, {topic for member in members.values() for topic in member.topics})
    return GroupSnapshot(
        row.group_id,
        infos,
        members,
        owned,
        row.assignor_name,
        generation=row.assignment_epoch,
        names=_member_names([(one.member_id, one.instance_id, one.client_id) for one in row.members]),
    )


async def _wait_until_settled(cluster: Cluster, group: str, wait_s: float) -> DescribedGroup:
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
        raise advise_error(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no classic group {group!r}")
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
    """Lag or throughput of the group's partitions, as its leader would measure them."""
    partitions = [
        TopicPartition(t, n) for t, info in group.topics.items() for n in range(info.partition_count)
    ]
    return await measure_weights(cluster, group.group, measure, partitions)


def _member_names(rows: Sequence[tuple[str, str | None, str]]) -> dict[str, str]:
    """Instance ids; client ids where no two members have the same. Rows are member, instance, client id."""
    clients = Counter(client_id for _, _, client_id in rows)
    return {
        member_id: instance_id or client_id
        for member_id, instance_id, client_id in rows
        if instance_id or (client_id and clients[client_id] == 1)
    }
