"""Records as a person reads them.

Covers: offsets_topic/group_records.py.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kohort.offsets_topic import (
    ConsumerGroupRecord,
    CurrentAssignment,
    GroupDeleted,
    GroupRecordType,
    GroupStored,
    OffsetCommitted,
    OffsetDeleted,
    Record,
    ResolvedRegex,
    StoredMember,
    TargetEpoch,
    UnknownRecord,
    encode,
)
from kohort.offsets_topic.readable import readable
from kohort.protocol import Subscription, TopicPartition, encode_assignment, encode_subscription

SUBSCRIPTION = encode_subscription(Subscription(("u", "t")), version=0)
ASSIGNMENT = encode_assignment([TopicPartition("t", 0), TopicPartition("u", 7)])


def group(type_: str, subscription: bytes, assignment: bytes) -> GroupStored:
    member = StoredMember("c-1", "i", "c", "/127.0.0.1", 300, 45, subscription, assignment)
    return GroupStored("g", type_, 2, "range", "c-1", 1_000, (member,))


def shown(type_: str, subscription: Any, assignment: Any) -> dict[str, Any]:
    return {
        "group": "g",
        "protocol_type": type_,
        "generation": 2,
        "protocol": "range",
        "leader": "c-1",
        "state_timestamp_ms": 1_000,
        "members": [
            {
                "member_id": "c-1",
                "instance_id": "i",
                "client_id": "c",
                "client_host": "/127.0.0.1",
                "rebalance_timeout_ms": 300,
                "session_timeout_ms": 45,
                "subscription": subscription,
                "assignment": assignment,
            }
        ],
    }


@pytest.mark.parametrize(
    ("record", "kind", "fields"),
    [
        (
            OffsetCommitted("g", "t", 3, 42, 7, "m", 1_000),
            "offset",
            {
                "group": "g",
                "topic": "t",
                "partition": 3,
                "committed_offset": 42,
                "leader_epoch": 7,
                "metadata": "m",
                "commit_timestamp_ms": 1_000,
                "expire_timestamp_ms": -1,
                "topic_id": None,
            },
        ),
        (
            OffsetCommitted("g", "t", 3, 42, 7, "m", 1_000, -1, bytes(15) + b"\x07"),
            "offset",
            {
                "group": "g",
                "topic": "t",
                "partition": 3,
                "committed_offset": 42,
                "leader_epoch": 7,
                "metadata": "m",
                "commit_timestamp_ms": 1_000,
                "expire_timestamp_ms": -1,
                "topic_id": "00000000-0000-0000-0000-000000000007",
            },
        ),
        (
            OffsetDeleted("g", "t", 3),
            "offset tombstone",
            {"group": "g", "topic": "t", "partition": 3},
        ),
        (GroupDeleted("g"), "group tombstone", {"group": "g"}),
        (
            group("consumer", SUBSCRIPTION, ASSIGNMENT),
            "group",
            shown("consumer", ["t", "u"], ["t-0", "u-7"]),
        ),
        (group("consumer", b"s?", b"a?"), "group", shown("consumer", b"s?", b"a?")),
        (
            group("connect", SUBSCRIPTION, ASSIGNMENT),
            "group",
            shown("connect", SUBSCRIPTION, ASSIGNMENT),
        ),
        (UnknownRecord(9, b"\x00\x09key", b"v"), "other", {"type": 9, "tombstone": False}),
        (UnknownRecord(9, b"\x00\x09key", None), "other", {"type": 9, "tombstone": True}),
        (
            ConsumerGroupRecord(GroupRecordType.MEMBER, "g", "m"),
            "consumer group member tombstone",
            {"group": "g", "member": "m"},
        ),
        (
            ConsumerGroupRecord(GroupRecordType.TARGET_EPOCH, "g", "", TargetEpoch(2, 1_000)),
            "consumer group target epoch",
            {"group": "g", "epoch": 2, "timestamp_ms": 1_000},
        ),
        (
            ConsumerGroupRecord(
                GroupRecordType.CURRENT, "g", "m", CurrentAssignment(3, 2, 0, {UUID(int=7): {4: 2}}, {})
            ),
            "consumer group current",
            {
                "group": "g",
                "member": "m",
                "epoch": 3,
                "previous_epoch": 2,
                "state": 0,
                "assigned": {"00000000-0000-0000-0000-000000000007": [4]},
                "revoking": {},
            },
        ),
        (
            ConsumerGroupRecord(GroupRecordType.REGEX, "g", "t.*", ResolvedRegex(("t1",), 5, 1_000)),
            "consumer group regex",
            {"group": "g", "regex": "t.*", "topics": ("t1",), "metadata_version": 5, "timestamp_ms": 1_000},
        ),
    ],
)
def test_each_kind_is_shown_with_its_fields(record: Record, kind: str, fields: dict[str, Any]) -> None:
    assert readable(*encode(record)) == (kind, fields)


def test_what_is_no_record_is_shown_with_the_reason() -> None:
    assert readable(None, b"") == ("unreadable", {"why": "a record without key in the offsets topic"})
    kind, fields = readable(b"\x00\x02\x00\x01g", b"\x00\x09")
    assert (kind, fields) == ("unreadable", {"why": "a record of type 2: version 9 is not known here"})
