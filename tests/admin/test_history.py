"""Past generations, from events and from records."""

from __future__ import annotations

from kohort.admin import PartitionMove
from kohort.admin._history import from_records, moved
from kohort.admin._stored import StoredGeneration, StoredPast
from kohort.offsets_topic import GroupDeleted, GroupStored, StoredMember
from kohort.protocol import TopicPartition, encode_assignment

OFFSETS = TopicPartition("__consumer_offsets", 7)


def holding(*numbers: int) -> bytes:
    return encode_assignment([TopicPartition("orders", number) for number in numbers])


def member(name: str, assignment: bytes, instance_id: str | None = None) -> StoredMember:
    return StoredMember(name, instance_id, "app", "/127.0.0.1", 60_000, 10_000, b"", assignment)


def stored(generation: int, *members: StoredMember, protocol_type: str = "consumer") -> StoredGeneration:
    leader = members[0].member_id if members else None
    record = GroupStored("billing", protocol_type, generation, "range", leader, 0, members)
    return StoredGeneration(1_000 * generation, record)


def past(*rows: StoredGeneration, complete: bool = True) -> StoredPast:
    return StoredPast(OFFSETS, rows, complete)


def test_records_tell_who_came_who_left_and_what_moved() -> None:
    history = from_records(
        "billing",
        past(
            stored(1, member("a", holding(0, 1, 2))),
            stored(2, member("a", holding(0, 1)), member("b", holding(2))),
            stored(3, member("b", holding(0, 1, 2))),
            stored(4),
        ),
        limit=3,
    )
    assert history.source == "offsets topic"
    second, third, fourth = history.generations
    assert (second.generation, second.timestamp_ms, second.state) == (2, 2_000, "Stable")
    assert (second.members_before, second.members, second.leader) == (1, 2, "a")
    assert (second.joined, second.left) == (("b",), ())
    assert second.moves == (PartitionMove("orders", 2, "a", "b"),)
    assert (second.cause, second.duration_ms) == (None, None)
    assert (third.joined, third.left, third.partitions_moved) == ((), ("a",), 2)
    assert (fourth.state, fourth.members, fourth.partitions_moved) == ("Empty", 0, 0)
    assert fourth.moves == tuple(PartitionMove("orders", number, "b", None) for number in range(3))


def test_a_static_member_is_known_by_its_instance_id() -> None:
    rows = past(
        stored(1, member("a-1", holding(0), "pod-a")),
        stored(1, member("a-2", holding(0), "pod-a")),
    )
    [_, again] = from_records("billing", rows, limit=5).generations
    assert (again.joined, again.left, again.moves) == ((), (), ())


def test_nothing_is_said_of_moves_where_nothing_earlier_is_known() -> None:
    [only] = from_records("billing", past(stored(9, member("a", holding(0)))), limit=5).generations
    assert (only.moves, only.joined, only.members_before, only.members) == (None, None, None, 1)


def test_other_protocol_types_are_counted_and_not_read() -> None:
    rows = past(
        stored(1, member("a", b"\xff\xff", None), protocol_type="connect"),
        stored(2, member("a", b"\xff"), member("b", b"\x00"), protocol_type="connect"),
    )
    [_, second] = from_records("billing", rows, limit=5).generations
    assert (second.members, second.joined, second.moves) == (2, ("b",), None)


def test_a_group_that_was_removed_starts_from_nothing() -> None:
    rows = past(
        stored(5, member("a", holding(0))),
        StoredGeneration(6_000, GroupDeleted("billing")),
        stored(1, member("b", holding(0))),
    )
    _, removed, again = from_records("billing", rows, limit=5).generations
    assert (removed.state, removed.generation, removed.left) == ("Dead", 5, ("a",))
    assert again.moves == (PartitionMove("orders", 0, None, "b"),)


def test_a_read_that_stopped_early_is_said() -> None:
    whole = from_records("billing", past(stored(1)), limit=5).unknown
    cut = from_records("billing", past(stored(1), complete=False), limit=5).unknown
    assert len(cut) == len(whole) + 1
    assert "there may be older generations" in cut[-1]
    assert "cannot be known" in whole[0]


def test_moves_are_not_guessed_from_assignments_that_cannot_be_read() -> None:
    assert moved({"a": None}, {"a": frozenset()}) is None
    assert moved({}, {}) == ()
