"""Records of ``__consumer_offsets`` in readable form, for ``kohort log dump``."""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from uuid import UUID

from ..protocol import JsonObject, KohortError, decode_assignment, subscribed_topics
from .records import (
    CorruptRecordError,
    GroupDeleted,
    GroupStored,
    OffsetCommitted,
    OffsetDeleted,
    StoredMember,
    UnknownRecord,
    decode,
)

#: Members with this protocol type have metadata in the format of the consumer protocol (KIP-429).
_CONSUMER: Final = "consumer"


def readable(key: bytes | None, value: bytes | None) -> tuple[str, JsonObject]:
    """Return the kind of a record, and its fields by name.

    For a record that cannot be decoded the kind is "unreadable", with the reason as the field ``why``.
    """
    try:
        record = decode(key, value)
    except CorruptRecordError as error:
        return "unreadable", {"why": str(error)}
    if isinstance(record, OffsetCommitted):
        group, topic, partition, offset, *rest = record
        fields: dict[str, object] = {
            "group": group,
            "topic": topic,
            "partition": partition,
            "committed_offset": offset,
        }
        # named committed_offset because the dump uses "offset" for the record's own
        fields |= dict(zip(record._fields[4:], rest, strict=True))
        return "offset", fields | {"topic_id": str(UUID(bytes=record.topic_id)) if record.topic_id else None}
    if isinstance(record, OffsetDeleted):
        return "offset tombstone", record._asdict()
    if isinstance(record, GroupDeleted):
        return "group tombstone", record._asdict()
    if isinstance(record, GroupStored):
        members = [_member_fields(member, record.protocol_type) for member in record.members]
        return "group", {**record._asdict(), "members": members}
    if isinstance(record, UnknownRecord):
        return "other", {"type": record.type, "tombstone": record.value is None}
    return record.readable()


def _member_fields(member: StoredMember, protocol_type: str) -> JsonObject:
    fields = member._asdict()
    if protocol_type == _CONSUMER:
        topics = subscribed_topics(member.subscription)
        fields["subscription"] = member.subscription if topics is None else sorted(topics)
        with suppress(KohortError):  # a subscription that cannot be decoded is shown as bytes
            assigned = decode_assignment(member.assignment).partitions
            fields["assignment"] = [f"{topic}-{partition}" for topic, partition in assigned]
    return fields
