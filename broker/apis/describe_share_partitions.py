"""DescribeSharePartitions (20002), v0: records in flight of a share group in the partitions that this broker
leads, and what happened to records. kohort's own, which no other broker offers.

A share partition that nobody fetches from is not in memory, and left out: where it goes on is in
DescribeShareGroupOffsets.
"""

from __future__ import annotations

from ...coordinator.groups.event_data import details_json
from ...protocol import ApiKey
from ...protocol.messages.describe_share_partitions import (
    DeliveredRecords,
    DescribeSharePartitionsRequest,
    DescribeSharePartitionsResponse,
    HeldRecords,
    SharePartitionEvent,
    SharePartitionInFlight,
    SharePartitionTopic,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ..share.led_partition import InFlight
from ..share.share_events import ShareEvent
from ._api import Request, ServedApi
from ._guards import by_handler, whole

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "the group")
_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic; the others are left out")

#: Most members of a share partition that are named, those with the most records.
_MOST_NAMED = 100


async def handle(
    node: Node, request: Request[DescribeSharePartitionsRequest]
) -> DescribeSharePartitionsResponse:
    """Return what the leader knows, looked at just now."""
    group, shares = request.body.group_id, node.shares
    now_ms = node.now_ms()
    topics: dict[str, list[SharePartitionInFlight]] = {}
    async for found in shares.in_flight(group):
        if request.shows(_TOPIC_RIGHT, found.topic):
            topics.setdefault(found.topic, []).append(_row_of(found, now_ms))
    events = [
        SharePartitionEvent(
            entry.event.sequence,
            entry.event.timestamp_ms,
            entry.event.name,
            entry.event.cause,
            entry.event.member,
            entry.event.topic,
            entry.event.partition,
            details_json(entry),
        )
        for entry in shares.history.of(group)
        if isinstance(entry.event, ShareEvent) and request.shows(_TOPIC_RIGHT, entry.event.topic)
    ]
    rows = [SharePartitionTopic(name, partitions) for name, partitions in sorted(topics.items())]
    return DescribeSharePartitionsResponse(topics=rows, entries=events)


def _row_of(found: InFlight, now_ms: int) -> SharePartitionInFlight:
    records = found.records
    summary, tallies = records.summarize(), records.tallies
    held = sorted(summary.held.items(), key=lambda item: (-item[1], item[0]))[:_MOST_NAMED]
    return SharePartitionInFlight(
        found.partition,
        records.start_offset,
        records.end_offset,
        summary.available,
        summary.done,
        [HeldRecords(member, count) for member, count in held],
        [DeliveredRecords(times, count) for times, count in sorted(summary.deliveries.items())],
        tallies.rejected.records,
        tallies.exhausted.records,
        tallies.lost_locks.records,
        -1 if found.stalled_ms is None else now_ms - found.stalled_ms,
        found.last_delivery,
    )


API: ServedApi[DescribeSharePartitionsRequest, DescribeSharePartitionsResponse] = ServedApi(
    key=ApiKey.DESCRIBE_SHARE_PARTITIONS,
    versions=(0, 0),
    handler=handle,
    guard=whole(_GROUP_RIGHT, field="group_id", then=by_handler(_TOPIC_RIGHT)),
    reads_only=True,
)
