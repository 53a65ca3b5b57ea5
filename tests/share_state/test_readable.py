"""Records of share partitions in words."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol import SharePartitionKey
from kohort.protocol.messages.read_share_group_state import StateBatch
from kohort.share_state.readable import readable_state
from kohort.share_state.records import ShareSnapshot, ShareStateDeleted, ShareUpdate, encode

KEY = SharePartitionKey("orders", UUID(int=1), 3)
PLACE = {"group": "orders", "topic_id": str(UUID(int=1)), "partition": 3}


def test_a_snapshot_has_all_of_a_state() -> None:
    record = ShareSnapshot(KEY, 1, 2, 3, 4, 5, 6, (StateBatch(4, 9, 2, 1),), 7)
    assert readable_state(*encode(record)) == (
        "share state",
        PLACE
        | {
            "snapshot_epoch": 1,
            "state_epoch": 2,
            "leader_epoch": 3,
            "start_offset": 4,
            "create_ms": 5,
            "write_ms": 6,
            "batches": [{"first": 4, "last": 9, "state": "acknowledged", "delivery_count": 1}],
            "delivery_complete_count": 7,
        },
    )


def test_an_update_and_a_tombstone() -> None:
    kind, fields = readable_state(*encode(ShareUpdate(KEY, 1, 3, -1, (StateBatch(4, 9, 7, 1),))))
    assert (kind, fields["start_offset"]) == ("share state update", -1)
    assert fields["batches"][0]["state"] == 7, "Apache Kafka writes any number"
    assert readable_state(*encode(ShareStateDeleted(KEY))) == ("share state tombstone", PLACE)


def test_what_is_none_of_them() -> None:
    assert readable_state(b"\x00\x07", None) == ("other", {})
    kind, fields = readable_state(b"\x00\x00", None)
    assert kind == "unreadable"
    assert "share partition" in fields["why"]
