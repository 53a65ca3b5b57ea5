"""DescribeGroupHistory (20001), v0: the events of a group. kohort's own, which no other broker offers.

As for DescribeGroups, a client needs the right to DESCRIBE the group.
"""

from __future__ import annotations

from ...coordinator.groups.event_data import details_json
from ...protocol import ApiKey, KafkaError
from ...protocol.messages.describe_group_history import (
    DescribeGroupHistoryRequest,
    DescribeGroupHistoryResponse,
    HistoryEntry,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi
from ._guards import whole


async def handle(node: Node, request: Request[DescribeGroupHistoryRequest]) -> DescribeGroupHistoryResponse:
    """Return a group's kept events, kohort's own API."""
    body = request.body
    try:
        entries = node.coordinator.history(body.group_id, body.limit, body.after)
    except KafkaError as error:
        return DescribeGroupHistoryResponse(error_code=error.code, error_message=error.message)
    same = ("sequence", "timestamp_ms", "generation", "cause", "member", "client_id", "client_host")
    rows = [
        HistoryEntry(
            kind=entry.event.name,
            details=details_json(entry),
            **{name: getattr(entry.event, name) for name in same},
        )
        for entry in entries
    ]
    return DescribeGroupHistoryResponse(
        entries=rows, kept_since_ms=node.coordinator.kept_since_ms(body.group_id)
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_GROUP_HISTORY,
    versions=(0, 0),
    handler=handle,
    guard=whole(right(Operation.DESCRIBE, ResourceType.GROUP, "the group"), field="group_id"),
)
