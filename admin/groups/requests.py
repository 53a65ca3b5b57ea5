"""ListGroups (16), DescribeGroups (15), DeleteGroups (42) and OffsetDelete (47) through a cluster.

A group's requests go to its coordinator, ListGroups to every broker, since each lists only the groups that
it coordinates. Errors 14, 15, 16 and lost connections are retried until the cluster's timeout.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ...client import LATEST, Cluster, CommittedOffset
from ...client.requests import error_of
from ...protocol import (
    ApiKey,
    ErrorCode,
    KafkaError,
    MalformedMessageError,
    TopicPartition,
    decode_assignment,
)
from ...protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ...protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ...protocol.messages.delete_groups import DeleteGroupsRequest
from ...protocol.messages.describe_group_history import DescribeGroupHistoryRequest
from ...protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from ...protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ...protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ..errors import Outcome, outcome_of
from ..topics.requests import log_offsets
from .coordinator import ask_coordinator, assigned_partitions, describe_one
from .results import (
    SHARE,
    Coordinator,
    GroupDescription,
    HistoryEntry,
    HoldUp,
    ListedGroup,
    MemberDescription,
    PartitionOffsets,
)
from .share_groups import describe_share_group

#: The only protocol type whose assignments are read (KIP-62).
CONSUMER: Final = "consumer"

_DEAD: Final = "Dead"
_CLASSIC: Final = "classic"


class KeptEvents(NamedTuple):
    """Events of a group that its coordinator has kept, and since when it does; None if it does not say."""

    entries: list[HistoryEntry]
    since_ms: int | None = None


async def ask_history(cluster: Cluster, group: str, limit: int, after: int) -> KeptEvents:
    """The coordinator's events. Raises UnsupportedVersionError if the broker keeps none."""
    body = DescribeGroupHistoryRequest(group_id=group, limit=limit, after=after)
    response = await ask_coordinator(cluster, group, body, f"the history of group {group!r}")
    entries = [
        HistoryEntry(
            row.sequence,
            row.timestamp_ms,
            row.kind,
            row.generation,
            row.cause,
            row.member,
            row.client_id,
            row.client_host,
            json.loads(row.details) if row.details else {},
        )
        for row in response.entries
    ]
    return KeptEvents(entries, response.kept_since_ms if response.kept_since_ms >= 0 else None)


async def list_groups(
    cluster: Cluster, states: Collection[str] = (), types: Collection[str] = ()
) -> list[ListedGroup]:
    """The groups of every broker, by name. Brokers filter where they can (v4 states, v5 types)."""
    known = await cluster.metadata([])
    answers = await asyncio.gather(
        *(_list_of(cluster, node, sorted(states), sorted(types)) for node in sorted(known.nodes))
    )
    rows = {row.group: row for answer in answers for row in answer}
    return [rows[group] for group in sorted(rows)]


async def _list_of(cluster: Cluster, node: int, states: list[str], types: list[str]) -> list[ListedGroup]:
    body = ListGroupsRequest(states_filter=states, types_filter=types)

    async def attempt() -> ListGroupsResponse:
        response = await cluster.request(node, ApiKey.LIST_GROUPS, body)
        if response.error_code:
            raise KafkaError(response.error_code, f"listing the groups of broker {node}")
        return response

    response = await cluster.retrying(attempt)
    return [
        ListedGroup(row.group_id, row.protocol_type, row.group_state or None, row.group_type or None, node)
        for row in response.groups
    ]


async def classic_group(cluster: Cluster, group: str) -> tuple[DescribedGroup, Coordinator]:
    """The group's row of DescribeGroups (error 69: no such group), and the broker that sent it."""
    body = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)

    async def attempt() -> tuple[DescribedGroup, Coordinator]:
        node = await cluster.coordinator(group)
        (row,) = (await cluster.request_coordinator(group, body)).groups
        if row.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            raise error_of(row, f"describing group {group!r}")
        return row, Coordinator(node.node_id, node.address.host, node.address.port)

    return await cluster.at_coordinator(group, attempt)


async def describe_group(cluster: Cluster, group: str) -> GroupDescription:
    """State and members; no offsets. A group the broker does not know is "Dead" (KIP-1043)."""
    row, where = await classic_group(cluster, group)
    if row.error_code:
        found = GroupDescription(group, _DEAD, "", "", None, where, ())
    else:
        found = _description_of(row, where)
    return found if found.exists else await _of_another_type(cluster, found)


async def consumer_group(cluster: Cluster, group: str) -> DescribedConsumerGroup | None:
    """The row of a ConsumerGroupDescribe (KIP-848); None where there is no such consumer group."""
    body = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    return await describe_one(cluster, group, body)


def _consumer_described(row: DescribedConsumerGroup, coordinator: Coordinator) -> GroupDescription:
    members = sorted(
        (
            MemberDescription(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                assigned_partitions(member.assignment.topic_partitions),
                member.member_epoch,
                assigned_partitions(member.target_assignment.topic_partitions),
                tuple(member.subscribed_topic_names),
                member.subscribed_topic_regex or None,
                member.rack_id,
                _CLASSIC if member.member_type == 0 else CONSUMER,
            )
            for member in row.members
        ),
        key=lambda member: (member.client_id, member.member_id),
    )
    return GroupDescription(
        row.group_id,
        row.group_state,
        CONSUMER,
        row.assignor_name,
        CONSUMER,
        coordinator,
        tuple(members),
        epoch=row.group_epoch,
        target_epoch=row.assignment_epoch,
        hold_ups=tuple(_hold_ups(members)),
    )


def _hold_ups(members: Sequence[MemberDescription]) -> Iterator[HoldUp]:
    """Members that wait for others: partitions of a member's target that another one still has."""
    owners = {partition: member.member_id for member in members for partition in member.assignment or ()}
    for member in members:
        found: dict[str, list[TopicPartition]] = defaultdict(list)
        for partition in member.target or ():
            owner = owners.get(partition, member.member_id)
            if owner != member.member_id:
                found[owner].append(partition)
        for owner, partitions in found.items():
            yield HoldUp(member.member_id, owner, tuple(partitions))


async def _of_another_type(cluster: Cluster, found: GroupDescription) -> GroupDescription:
    """Look the group up in the coordinator's ListGroups: DescribeGroups knows classic groups only."""
    node = found.coordinator.node_id
    if node not in cluster.known_metadata.nodes:
        return found
    for row in await _list_of(cluster, node, [], []):
        if row.group == found.group and row.group_type not in (None, _CLASSIC):
            if row.group_type == SHARE:
                shared = await describe_share_group(cluster, found.group, found.coordinator)
                if shared is not None:
                    return shared
            consumers = await consumer_group(cluster, found.group) if row.group_type == CONSUMER else None
            if consumers is not None:
                return _consumer_described(consumers, found.coordinator)
            note = f"a group of type {row.group_type!r}: members of such groups are not described"
            return replace(
                found,
                state=row.state or "",
                protocol_type=row.protocol_type,
                group_type=row.group_type,
                notes=(note,),
            )
    return found


def _description_of(row: DescribedGroup, coordinator: Coordinator) -> GroupDescription:
    readable = row.protocol_type == CONSUMER
    members = [
        MemberDescription(
            member.member_id,
            member.group_instance_id or None,
            member.client_id,
            member.client_host,
            read_assignment(member.member_assignment) if readable else None,
        )
        for member in row.members
    ]
    members.sort(key=lambda member: (member.client_id, member.member_id))
    opaque = f"assignments of protocol type {row.protocol_type!r} are not read"
    kind = None if row.group_state == _DEAD else _CLASSIC
    return GroupDescription(
        row.group_id,
        row.group_state,
        row.protocol_type,
        row.protocol_data,
        kind,
        coordinator,
        tuple(members),
        notes=() if readable or not members else (opaque,),
    )


def read_assignment(data: bytes | None) -> tuple[TopicPartition, ...] | None:
    """The partitions of a consumer's assignment, in order; None if the bytes are none."""
    try:
        return tuple(sorted(decode_assignment(data or b"").partitions))
    except MalformedMessageError:
        return None


async def delete_group(cluster: Cluster, group: str) -> Outcome:
    """Delete one group with its offsets."""
    body = DeleteGroupsRequest(groups_names=[group])

    async def attempt() -> None:
        response = await cluster.request_coordinator(group, body)
        (row,) = response.results
        if row.error_code:
            raise KafkaError(row.error_code, f"deleting group {group!r}")

    try:
        await cluster.at_coordinator(group, attempt)
    except KafkaError as error:
        return outcome_of(error.code, error.message or "")
    return outcome_of(0)


async def delete_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Outcome]:
    """Delete committed offsets (KIP-496). Raises KafkaError if the whole request is refused."""
    by_topic: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, number in sorted(set(partitions)):
        by_topic.setdefault(topic, []).append(OffsetDeleteRequestPartition(number))
    rows = [OffsetDeleteRequestTopic(name=topic, partitions=numbers) for topic, numbers in by_topic.items()]
    body = OffsetDeleteRequest(group_id=group, topics=rows)
    response = await ask_coordinator(cluster, group, body, f"deleting offsets of group {group!r}")
    return {
        TopicPartition(topic.name, row.partition_index): outcome_of(row.error_code)
        for topic in response.topics
        for row in topic.partitions
    }


async def lag_rows(
    cluster: Cluster, description: GroupDescription, committed: Mapping[TopicPartition, CommittedOffset]
) -> tuple[PartitionOffsets, ...]:
    """A row for each partition that has an offset or an owner, by topic and number."""
    owners = {
        partition: member.member_id for member in description.members for partition in member.assignment or ()
    }
    partitions = sorted({*committed, *owners})
    ends = await log_offsets(cluster, partitions, LATEST)
    rows = []
    for partition in partitions:
        offset, end = committed.get(partition), ends.get(partition)
        rows.append(
            PartitionOffsets(
                partition.topic,
                partition.partition,
                offset.offset if offset else None,
                end,
                end - offset.offset if offset and end is not None else None,
                owners.get(partition),
                offset.metadata if offset else "",
            )
        )
    return tuple(rows)
