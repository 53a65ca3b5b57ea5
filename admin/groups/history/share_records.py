"""Records of a share group (KIP-932) as those of a consumer group, which they resemble: so past epochs of
both are read in one way. A member has its target with its next heartbeat; nothing is revoked before.
"""

from __future__ import annotations

from typing import Final

from ....offsets_topic import (
    ConsumerGroupRecord,
    CurrentAssignment,
    GroupEpoch,
    GroupRecordType,
    GroupRecordValue,
    MemberMetadata,
    ShareAssignment,
    ShareEpoch,
    ShareGroupRecord,
    ShareMemberMetadata,
    ShareRecordType,
    ShareRecordValue,
    TargetAssignment,
    TargetEpoch,
)
from ....statemachine import AssignmentState

_TYPES: Final = {
    ShareRecordType.MEMBER: GroupRecordType.MEMBER,
    ShareRecordType.EPOCH: GroupRecordType.EPOCH,
    ShareRecordType.TARGET_EPOCH: GroupRecordType.TARGET_EPOCH,
    ShareRecordType.TARGET: GroupRecordType.TARGET,
    ShareRecordType.CURRENT: GroupRecordType.CURRENT,
}


def as_consumer_record(record: ShareGroupRecord) -> ConsumerGroupRecord | None:
    """The record of a consumer group that says the same; None for what only share groups have."""
    kind = _TYPES.get(record.type)
    if kind is None:
        return None
    return ConsumerGroupRecord(kind, record.group, record.member_id, _as_consumer_value(record.value))


def _as_consumer_value(value: ShareRecordValue | None) -> GroupRecordValue | None:
    if isinstance(value, ShareMemberMetadata):
        return MemberMetadata(None, value.rack_id, value.client_id, value.client_host, value.topics, "", 0)
    if isinstance(value, ShareEpoch):
        return GroupEpoch(value.epoch, value.metadata_hash)
    if isinstance(value, ShareAssignment):
        stable = AssignmentState.STABLE.value
        return CurrentAssignment(value.epoch, value.previous_epoch, stable, {}, {})
    assert value is None or isinstance(value, (TargetAssignment, TargetEpoch)), "these are of both"
    return value
