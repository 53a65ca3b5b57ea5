"""AlterClientQuotas (49), v0-1: sets and removes quotas, in force with the response (KIP-546)."""

from __future__ import annotations

from collections import Counter

from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    RequestEntryData,
    ResponseEntryData,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.stopwatch import clock
from ..event_loop.time_slices import in_slices
from ..node import Node
from ..quotas import QuotaEntity, QuotaKey, QuotaTable, check_value, entity_of
from ._api import Request, ServedApi, always, make_result
from ._errors import Level, in_elements, same_fields
from ._guards import whole


async def handle(node: Node, request: Request[AlterClientQuotasRequest]) -> AlterClientQuotasResponse:
    """Change the quotas of each entity; entities that are named twice are refused."""
    times = Counter(_entity_parts(entry) for entry in request.body.entries)
    # an entity that is named twice gets one error, as in Apache Kafka
    entries = {_entity_parts(entry): entry for entry in request.body.entries}
    changed = QuotaTable(dict(node.quotas.table.values))
    answers = []
    async for parts, entry in in_slices(entries.items()):
        refused = None
        try:
            if times[parts] > 1:
                raise _refusal_for("each entity may be in the request once")
            changed.change(*_quota_changes(entry))
        except KafkaError as error:
            refused = error
        entity = [EntityData(part.entity_type, part.entity_name) for part in entry.entity]
        answers.append(make_result(ResponseEntryData, refused, entity=entity))
    if not request.body.validate_only and changed.values != node.quotas.table.values:
        await node.quotas_file.save(changed.to_stored())
        node.quotas.replace(changed, clock())
    return AlterClientQuotasResponse(entries=answers)


def _entity_parts(entry: RequestEntryData) -> frozenset[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in entry.entity)


def _quota_changes(entry: RequestEntryData) -> tuple[QuotaEntity, dict[QuotaKey, float | None]]:
    """The changes that an entry asks for, checked as a whole. Raises KafkaError INVALID_REQUEST."""
    entity = entity_of((part.entity_type, part.entity_name) for part in entry.entity)
    changes: dict[QuotaKey, float | None] = {}
    for op in entry.ops:
        if op.remove and op.key not in set(QuotaKey):
            continue  # as in Apache Kafka, removing a quota that does not exist succeeds
        key = QuotaKey(op.key) if op.remove else check_value(op.key, op.value)
        if key in changes:
            raise _refusal_for(f"{key} is in the entry twice: name it once")
        changes[key] = None if op.remove else op.value
    return entity, changes


def _refusal_for(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


API = ServedApi(
    key=ApiKey.ALTER_CLIENT_QUOTAS,
    versions=(0, 1),
    handler=handle,
    guard=whole(right(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, "all quotas")),
    errors=in_elements(Level("entries", "entries", same_fields("entity"))),
    by_controller=always,
    one_at_a_time=True,
)
