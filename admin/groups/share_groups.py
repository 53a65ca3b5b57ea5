"""Share groups (KIP-932) through a cluster: ShareGroupDescribe (77), and where a group goes on:
DescribeShareGroupOffsets (90), AlterShareGroupOffsets (91) and DeleteShareGroupOffsets (92). Of records in
flight only kohort's brokers tell: DescribeSharePartitions (20002).

A share group has a *start offset* in each partition, below which all records are done, in place of a
committed offset.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ...client import LATEST, BrokerConnectionError, Cluster
from ...client.requests import error_of, partition_name, refusal_text
from ...protocol import ApiKey, KafkaError, TopicPartition, UnsupportedVersionError
from ...protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ...protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ...protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponseGroup,
)
from ...protocol.messages.describe_share_partitions import (
    DescribeSharePartitionsRequest,
    DescribeSharePartitionsResponse,
    SharePartitionInFlight,
)
from ...protocol.messages.share_group_describe import DescribedGroup, ShareGroupDescribeRequest
from ..errors import Outcome, outcome_of
from ..topics.requests import log_offsets
from .coordinator import ask_coordinator, assigned_partitions, describe_one
from .results import (
    SHARE,
    Coordinator,
    DeliveredRecords,
    GroupDescription,
    HeldRecords,
    HistoryEntry,
    MemberDescription,
    RecordsInFlight,
    ShareOffsets,
)


class ShareStart(NamedTuple):
    """Where a share group goes on in a partition, as it is stored; None if nothing was stored yet. ``lag`` is
    the number of records that are not done; None if unknown.
    """

    offset: int | None
    lag: int | None


async def describe_share_group(
    cluster: Cluster, group: str, coordinator: Coordinator
) -> GroupDescription | None:
    """State and members of a share group; None where there is no such group."""
    body = ShareGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    row = await describe_one(cluster, group, body)
    return None if row is None else _description_of(row, coordinator)


def _description_of(row: DescribedGroup, coordinator: Coordinator) -> GroupDescription:
    members = [
        MemberDescription(
            member.member_id,
            None,
            member.client_id,
            member.client_host,
            assigned_partitions(member.assignment.topic_partitions),
            member.member_epoch,
            topics=tuple(member.subscribed_topic_names),
            rack=member.rack_id,
            protocol=SHARE,
        )
        for member in row.members
    ]
    members.sort(key=lambda member: (member.client_id, member.member_id))
    return GroupDescription(
        row.group_id,
        row.group_state,
        SHARE,
        row.assignor_name,
        SHARE,
        coordinator,
        tuple(members),
        epoch=row.group_epoch,
        target_epoch=row.assignment_epoch,
    )


async def share_starts(cluster: Cluster, group: str) -> dict[TopicPartition, ShareStart]:
    """Where a share group goes on in every partition that it has state for; nothing for other groups."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    body = DescribeShareGroupOffsetsRequest(groups=[asked])

    async def attempt() -> DescribeShareGroupOffsetsResponseGroup:
        (row,) = (await cluster.request_coordinator(group, body)).groups
        if row.error_code:
            raise error_of(row, f"the start offsets of group {group!r}")
        return row

    return dict(starts_in(await cluster.at_coordinator(group, attempt)))


def starts_in(row: DescribeShareGroupOffsetsResponseGroup) -> Iterator[tuple[TopicPartition, ShareStart]]:
    """Where a share group goes on, as its coordinator answers."""
    for topic in row.topics:
        for each in topic.partitions:
            start = ShareStart(_known(each.start_offset), _known(each.lag))
            yield TopicPartition(topic.topic_name, each.partition_index), start


def _known(number: int) -> int | None:
    return None if number < 0 else number


async def share_rows(cluster: Cluster, description: GroupDescription) -> tuple[ShareOffsets, ...]:
    """A row for each partition that the group has state for, or a member, by topic and number."""
    readers: dict[TopicPartition, list[str]] = {}
    for member in description.members:
        for partition in member.assignment or ():
            readers.setdefault(partition, []).append(member.member_id)
    starts, told = await asyncio.gather(
        share_starts(cluster, description.group), ask_leaders(cluster, description.group)
    )
    partitions = sorted({*starts, *readers})
    ends = await log_offsets(cluster, partitions, LATEST)
    rows = []
    for partition in partitions:
        offset, lag = starts.get(partition, ShareStart(None, None))
        known = told.partitions.get(partition)
        # what a leader has in memory is not behind what is stored
        start = offset if known is None else known.start_offset
        end, members = ends.get(partition), tuple(readers.get(partition, ()))
        in_flight = None if known is None else _in_flight(known)
        rows.append(ShareOffsets(*partition, start, end, lag, members, in_flight))
    return tuple(rows)


class ToldByLeaders(NamedTuple):
    """What brokers tell of the share partitions that they lead, and what happened there, oldest first;
    ``displaced`` events have made way for newer ones. The brokers ``silent`` tell nothing, the others are
    ``answered``.
    """

    partitions: Mapping[TopicPartition, SharePartitionInFlight]
    entries: list[HistoryEntry]
    displaced: int
    answered: tuple[int, ...]
    silent: tuple[int, ...]


async def ask_leaders(cluster: Cluster, group: str) -> ToldByLeaders:
    """Ask every broker for a share group's records. Brokers that are no kohort brokers tell nothing, nor do
    those that do not answer.
    """
    body = DescribeSharePartitionsRequest(group_id=group)

    async def ask(node: int) -> DescribeSharePartitionsResponse | None:
        try:
            answer = await cluster.request(node, ApiKey.DESCRIBE_SHARE_PARTITIONS, body)
        except (UnsupportedVersionError, BrokerConnectionError):
            return None
        if answer.error_code:
            raise error_of(answer, f"records of group {group!r}")
        return answer

    nodes = sorted((await cluster.metadata([])).nodes)
    told = dict(zip(nodes, await asyncio.gather(*map(ask, nodes)), strict=True))
    answers = [answer for answer in told.values() if answer is not None]
    rows = {
        TopicPartition(topic.topic_name, row.partition_index): row
        for answer in answers
        for topic in answer.topics
        for row in topic.partitions
    }
    entries = [
        HistoryEntry(
            each.sequence,
            each.timestamp_ms,
            each.kind,
            -1,
            each.cause,
            each.member,
            "",
            "",
            json.loads(each.details) if each.details else {},
        )
        for answer in answers
        for each in answer.entries
    ]
    # a broker numbers the events of a group from 1 on
    displaced = sum(answer.entries[-1].sequence - len(answer.entries) for answer in answers if answer.entries)
    return ToldByLeaders(
        rows,
        sorted(entries, key=lambda entry: entry.timestamp_ms),
        displaced,
        tuple(node for node, answer in told.items() if answer is not None),
        tuple(node for node, answer in told.items() if answer is None),
    )


def _in_flight(row: SharePartitionInFlight) -> RecordsInFlight:
    return RecordsInFlight(
        row.end_offset,
        tuple(HeldRecords(*each) for each in row.held),
        row.available,
        row.done,
        tuple(DeliveredRecords(*each) for each in row.deliveries),
        row.rejected,
        row.exhausted,
        row.lost_locks,
        _known(row.stalled_since_ms),
    )


async def alter_share_offsets(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Let a share group without members go on at these offsets. A group that does not exist is made.

    Raises KafkaError, also if only some of the partitions were refused.
    """
    by_topic: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, []).append(AlterShareGroupOffsetsRequestPartition(number, offset))
    rows = [AlterShareGroupOffsetsRequestTopic(topic, numbers) for topic, numbers in by_topic.items()]
    body = AlterShareGroupOffsetsRequest(group_id=group, topics=rows)
    response = await ask_coordinator(cluster, group, body, f"resetting offsets of group {group!r}")
    for row in response.responses:
        for each in row.partitions:
            if each.error_code:
                name = partition_name(TopicPartition(row.topic_name, each.partition_index))
                text = f"resetting the offset of {name}: {each.error_message or 'it was refused'}"
                raise KafkaError(each.error_code, text)


async def delete_share_offsets(cluster: Cluster, group: str, topics: Iterable[str]) -> dict[str, Outcome]:
    """Forget where a share group without members goes on in whole topics; the outcome for each."""
    rows = [DeleteShareGroupOffsetsRequestTopic(topic) for topic in sorted(set(topics))]
    body = DeleteShareGroupOffsetsRequest(group_id=group, topics=rows)
    response = await ask_coordinator(cluster, group, body, f"deleting offsets of group {group!r}")
    return {row.topic_name: outcome_of(row.error_code, refusal_text(row, "")) for row in response.responses}
