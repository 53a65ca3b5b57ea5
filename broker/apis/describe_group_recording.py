"""DescribeGroupRecording (20003), v0: what this broker has recorded of a group, which may be gone or have
another coordinator by now. kohort's own, which no other broker offers.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable

from ...protocol import SHARE_EVENTS, ApiKey, ErrorCode
from ...protocol.messages.describe_group_recording import (
    DescribeGroupRecordingRequest,
    DescribeGroupRecordingResponse,
    LagAtTime,
    RecordedEntry,
    RecordingLoss,
    WatchedStretch,
)
from ...recording import END_OF_TIME, EventRow, GroupRecording, KeptRow, read_group
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi
from ._guards import by_handler, whole

_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic; the others are left out")

#: Most entries of one response, and most bytes of their texts, but for one entry.
_MOST_ENTRIES = 1_000
_MOST_BYTES = 8 << 20


async def handle(
    node: Node, request: Request[DescribeGroupRecordingRequest]
) -> DescribeGroupRecordingResponse:
    """Return the newest entries of a stretch of time, and what is known of the rest of it."""
    body = request.body
    if node.recorder is None:
        return DescribeGroupRecordingResponse(is_recording=False)
    try:
        if not node.recorder.is_begun:
            return DescribeGroupRecordingResponse(is_recording=True)
        found = await asyncio.to_thread(
            read_group,
            node.recorder.folder,
            body.group_id,
            body.from_ms,
            END_OF_TIME if body.until_ms < 0 else body.until_ms,
            # of a broker that is alone, and of one that has this group now and then
            scopes=("", str(node.coordinator.partition_of(body.group_id))),
            limit=min(_MOST_ENTRIES, body.limit) if body.limit >= 0 else _MOST_ENTRIES,
            before=None if body.before_ms < 0 else (body.before_ms, body.before_number),
            only_lasting=body.only_lasting,
        )
    except (sqlite3.Error, OSError) as error:
        words = f"the recording of this broker cannot be read: {error}"
        return DescribeGroupRecordingResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR, error_message=words)
    return _response_of(found, [row for row in found.rows if _may_be_shown(request, row.event)])


def _may_be_shown(request: Request[DescribeGroupRecordingRequest], event: EventRow) -> bool:
    if event.kind not in SHARE_EVENTS:
        return True
    return request.shows(_TOPIC_RIGHT, str(json.loads(event.details or "{}").get("topic", "")))


def _response_of(found: GroupRecording, rows: list[KeptRow]) -> DescribeGroupRecordingResponse:
    shown = _newest_that_fit(rows)
    return DescribeGroupRecordingResponse(
        is_recording=True,
        details_from_ms=found.details_from_ms,
        events_from_ms=found.events_from_ms,
        samples_from_ms=found.samples_from_ms,
        watched=[WatchedStretch(*each) for each in found.watched],
        losses=[
            RecordingLoss(bool(each.group), each.from_ms, each.until_ms, each.lost) for each in found.losses
        ],
        has_older=found.has_older or len(shown) < len(rows),
        entries=shown,
        samples=[
            LagAtTime(each.timestamp_ms, *(-1 if value is None else value for value in each[2:]))
            for each in found.samples
        ],
    )


def _newest_that_fit(rows: Iterable[KeptRow]) -> list[RecordedEntry]:
    entries: list[RecordedEntry] = []
    size = 0
    for number, event in reversed(list(rows)):
        size += len(event.cause) + len(event.details) + len(event.extras) + 1_000
        if entries and size > _MOST_BYTES:
            break
        entries.append(
            RecordedEntry(
                number,
                event.timestamp_ms,
                event.kind,
                event.generation,
                event.cause,
                event.member,
                event.client_id,
                event.client_host,
                event.details,
                event.extras,
            )
        )
    return entries[::-1]


API: ServedApi[DescribeGroupRecordingRequest, DescribeGroupRecordingResponse] = ServedApi(
    key=ApiKey.DESCRIBE_GROUP_RECORDING,
    versions=(0, 0),
    handler=handle,
    guard=whole(
        right(Operation.DESCRIBE, ResourceType.GROUP, "the group"),
        field="group_id",
        then=by_handler(_TOPIC_RIGHT),
    ),
    reads_only=True,
)
