"""DescribeGroupHistory (20001), v0: the events of a group. kohort's own, which no other broker offers.

As for DescribeGroups, who asks must be allowed to DESCRIBE the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...coordinator.details import details_json
from ...protocol import ApiKey, KafkaError
from ..authorizer import Operation, ResourceType, right
from ._api import Request, ServedApi
from ._errors import AT_TOP
from ._guards import whole

if TYPE_CHECKING:
    from .._node import Node


async def handle(node: Node, request: Request) -> Any:
    body = request.body
    make = request.part("HistoryEntry")
    try:
        entries = node.coordinator.history(body.group_id, body.limit, body.after)
    except KafkaError as error:
        return request.answer(error_code=error.code, error_message=error.message)
    rows = [
        make(
            sequence=entry.event.sequence,
            timestamp_ms=entry.event.timestamp_ms,
            kind=entry.event.name,
            generation=entry.event.generation,
            cause=entry.event.cause,
            member=entry.event.member,
            client_id=entry.event.client_id,
            client_host=entry.event.client_host,
            details=details_json(entry),
        )
        for entry in entries
    ]
    return request.answer(entries=rows)


_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "the group")

API = ServedApi(
    key=ApiKey.DESCRIBE_GROUP_HISTORY,
    versions=(0, 0),
    handler=handle,
    access=(_GROUP_RIGHT,),
    guard=whole(_GROUP_RIGHT, field="group_id"),
    errors=AT_TOP,
)
