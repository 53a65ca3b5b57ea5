"""What a log means: order, transactions, tombstones, and that compaction changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator import GroupSettings, Shard
from kohort.coordinator.consumer_groups.group import CONSUMER_TYPE
from kohort.coordinator.groups import durable as module
from kohort.coordinator.groups.durable import Durable
from kohort.coordinator.groups.shards import OFFSETS_TOPIC, new_groups
from kohort.offsets_topic import (
    NONE,
    ConsumerGroupRecord,
    GroupDeleted,
    GroupEpoch,
    GroupRecordType,
    GroupStored,
    OffsetCommitted,
    OffsetDeleted,
    Record,
    TargetAssignment,
    UnknownRecord,
    encode,
)
from kohort.protocol import TopicPartition

T0 = TopicPartition("t", 0)


def new_durable() -> Durable:
    return new_groups(GroupSettings(), str).durable


def apply(durable: Durable, what: Record | Sequence[Record], offset: int, producer_id: int = NONE) -> None:
    """Take a record in, or several in a row, as a shard does."""
    groups = new_groups(GroupSettings(), str)
    groups.durable = durable
    records = what if isinstance(what, list) else [what]
    Shard(OFFSETS_TOPIC, groups).apply(records, offset, producer_id)


def commit(offset: int, group: str = "g", partition: int = 0) -> OffsetCommitted:
    return OffsetCommitted(group, "t", partition, offset, -1, "", 1000)


def committed(durable: Durable, group: str = "g") -> int | None:
    entry = durable.offset(group, T0)
    return None if entry is None else entry.offset


@pytest.mark.row("5.7/order")
def test_the_last_word_on_a_partition_wins() -> None:
    durable = Durable()
    apply(durable, commit(1), 0)
    apply(durable, commit(2), 1)
    assert committed(durable) == 2
    apply(durable, OffsetDeleted("g", "t", 0), 2)
    assert committed(durable) is None
    assert not durable.knows("g")


def test_of_a_consumer_group_the_last_word_on_each_key_is_kept() -> None:
    durable, types = Durable(), GroupRecordType
    first = [
        ConsumerGroupRecord(types.EPOCH, "g", "", GroupEpoch(1)),
        ConsumerGroupRecord(types.TARGET, "g", "m", TargetAssignment({})),
        ConsumerGroupRecord(types.EPOCH, "g", "", GroupEpoch(2)),
        ConsumerGroupRecord(types.EPOCH, "h", "", GroupEpoch(7)),
    ]
    apply(durable, list(first), 0)
    assert durable.of_type(CONSUMER_TYPE) == {
        "g": {(types.EPOCH, ""): GroupEpoch(2), (types.TARGET, "m"): TargetAssignment({})},
        "h": {(types.EPOCH, ""): GroupEpoch(7)},
    }
    gone = [record._replace(value=None) for record in (*first, *first)]
    apply(durable, list(gone), 4)
    assert durable.of_type(CONSUMER_TYPE) == {}


@pytest.mark.row("5.7/any-order", "5.7/replace")
def test_a_group_and_its_offsets_come_in_any_order_kafka_20254_and_4704() -> None:
    stored = GroupStored("g", "consumer", 3, None, None, 0)
    durable, other = Durable(), Durable()
    apply(durable, commit(1), 0)
    apply(durable, stored, 1)
    apply(other, stored, 1)
    apply(other, commit(1), 0)
    assert durable == other
    apply(durable, GroupDeleted("g"), 2)
    assert committed(durable) == 1


@pytest.mark.row("5.2/3-15")
def test_records_of_unknown_types_are_stepped_over() -> None:
    durable = Durable()
    apply(durable, UnknownRecord(5, b"\x00\x05", b""), 0)
    assert durable == Durable()


class TestTransactions:
    @pytest.mark.row("5.5/pending", "5.5/commit")
    def test_pending_offsets_show_only_when_committed(self) -> None:
        durable = Durable()
        apply(durable, commit(5), 0, producer_id=7)
        assert committed(durable) is None
        assert durable.is_pending("g", T0)
        assert durable.knows("g")
        durable.end_transaction(7, committed=True)
        assert committed(durable) == 5
        assert not durable.is_pending("g", T0)

    @pytest.mark.row("5.5/abort")
    def test_aborted_ones_leave_nothing(self) -> None:
        durable = Durable()
        apply(durable, commit(5), 0, producer_id=7)
        durable.end_transaction(7, committed=False)
        assert durable == Durable()

    @pytest.mark.parametrize(
        "tombstone", [GroupDeleted("g"), ConsumerGroupRecord(GroupRecordType.EPOCH, "g")]
    )
    def test_their_group_is_there_until_it_is_removed(self, tombstone: Any) -> None:
        durable = Durable()
        apply(durable, commit(5), 0, producer_id=7)
        durable.end_transaction(7, committed=False)
        assert durable.knows("g")
        assert list(durable.group_ids()) == ["g"]
        apply(durable, tombstone, 2)
        assert not durable.knows("g")
        assert not durable.group_ids()

    @pytest.mark.row("5.5/commit", "1.5/record-offset")
    def test_a_plain_commit_later_in_the_log_wins_over_the_marker(self) -> None:
        durable = Durable()
        apply(durable, commit(5), 10, producer_id=7)
        apply(durable, commit(1), 11)
        durable.end_transaction(7, committed=True)
        assert committed(durable) == 1

    @pytest.mark.row("5.5/commit", "1.5/record-offset")
    def test_a_plain_commit_before_it_loses(self) -> None:
        durable = Durable()
        apply(durable, commit(1), 9)
        apply(durable, commit(5), 10, producer_id=7)
        durable.end_transaction(7, committed=True)
        assert committed(durable) == 5

    @pytest.mark.row("5.5/tombstone", "5.5/link")
    def test_a_tombstone_removes_pending_offsets_but_not_the_open_transaction_kafka_19164(self) -> None:
        durable = Durable()
        apply(durable, commit(5), 0, producer_id=7)
        apply(durable, OffsetDeleted("g", "t", 0), 1)
        assert not durable.is_pending("g", T0)
        assert durable.open_producers == {"g": {7: 1000}}
        durable.end_transaction(7, committed=True)
        assert durable == Durable()

    def test_producers_and_groups_do_not_mix(self) -> None:
        durable = Durable()
        apply(durable, commit(1, "g"), 0, producer_id=7)
        apply(durable, commit(2, "h"), 1, producer_id=7)
        apply(durable, commit(3, "g"), 2, producer_id=8)
        durable.end_transaction(7, committed=True)
        assert (committed(durable, "g"), committed(durable, "h")) == (1, 2)
        assert durable.is_pending("g", T0)
        durable.end_transaction(99, committed=True)
        durable.end_transaction(8, committed=True)
        assert committed(durable, "g") == 3


RECORDS: st.SearchStrategy[Record] = st.one_of(
    st.builds(commit, st.integers(0, 99), st.sampled_from("gh"), st.integers(0, 2)),
    st.builds(OffsetDeleted, st.sampled_from("gh"), st.just("t"), st.integers(0, 2)),
    st.builds(
        GroupStored,
        st.sampled_from("gh"),
        st.just("x"),
        st.integers(0, 9),
        st.none(),
        st.none(),
        st.just(0),
        st.just(()),
    ),
    st.builds(GroupDeleted, st.sampled_from("gh")),
)


@pytest.mark.row("5.7/any-order")
@given(st.lists(RECORDS, max_size=40), st.booleans())
def test_a_compacted_log_loads_to_the_same_state(records: list[Record], drop_tombstones: bool) -> None:
    full, compacted = new_durable(), new_durable()
    last = {encode(record)[0]: offset for offset, record in enumerate(records)}
    for offset, record in enumerate(records):
        apply(full, record, offset)
        key, value = encode(record)
        if last[key] == offset and not (drop_tombstones and value is None):
            apply(compacted, record, offset)
    assert compacted == full


@pytest.mark.parametrize("together", [False, True])
def test_partitions_of_topics_that_come_and_go_are_not_remembered_for_ever(
    monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    monkeypatch.setattr(module, "_KEYS", 100)
    durable = Durable(_most_keys=100)
    for number in range(1_000):
        records = [OffsetCommitted("g", f"t{number}", partition, 7, -1, "", 1000) for partition in range(5)]
        if together:
            apply(durable, records, number)
        else:
            for record in records:
                apply(durable, record, number)
        if number:
            for partition in range(5):
                apply(durable, OffsetDeleted("g", f"t{number - 1}", partition), number)
    assert len(durable._keys) <= 100
    assert [entry.offset for _, entry in durable.committed_offsets("g")] == [7] * 5


def test_an_offset_of_an_open_transaction_goes_with_its_topic_however_many_came_meanwhile() -> None:
    durable = Durable(_most_keys=1)
    apply(durable, OffsetCommitted("g", "orders", 0, 7, -1, "", 1000), 0, 5)
    apply(durable, OffsetCommitted("g", "other", 0, 7, -1, "", 1000), 1)
    assert durable.partitions_with({"orders"}) == {"g": {TopicPartition("orders", 0): None}}
