"""Retention (KIP-211): which offsets expire, counted from when, and which groups go with them."""

from __future__ import annotations

import pytest

from kohort.coordinator import CommitRefused, GroupRemoved, OffsetsRemoved
from kohort.coordinator.offsets import expiry
from kohort.coordinator.offsets.commit import resolve_commit
from kohort.offsets_topic import NONE, GroupDeleted, OffsetCommitted, OffsetDeleted, decode
from kohort.protocol import ApiKey, ErrorCode
from tests.coordinator.bodies import DIRECTORY, commit_body, protocols, subscription
from tests.coordinator.driver import World, errors_of

MINUTE = 60_000
RETENTION = 10 * MINUTE
CHECK = MINUTE


def world() -> World:
    return World(offsets_retention_minutes=10, offsets_retention_check_interval_ms=CHECK)


def keep_alive(w: World, ms: int, *members: str) -> None:
    """Let time go by while these members heartbeat."""
    end = w.now + ms
    while w.now < end:
        w.advance(min(9_000, end - w.now))
        for member in members:
            w.heartbeat("g", member, w.groups["g"].generation)


class TestSimpleGroups:
    @pytest.mark.row("5.6/simple", "4/offsets.retention.minutes", "4/offsets.retention.check.interval.ms")
    def test_each_offset_lives_by_its_own_age(self) -> None:
        w = world()
        w.commit("s", {("t", 0): 1})
        w.advance(5 * MINUTE)
        w.commit("s", {("t", 1): 2})
        w.advance(5 * MINUTE)
        assert w.fetch("s") == {("t", 1): 2}
        w.advance(5 * MINUTE)
        assert w.fetch("s") == {}

    @pytest.mark.row("5.6/group", "5.4/tombstones")
    def test_the_group_goes_with_its_last_offset(self) -> None:
        w = world()
        w.commit("s")
        w.advance(RETENTION - 1)
        assert [g.group_id for g in w.list_groups()] == ["s"]
        before = len(w.log)
        w.advance(CHECK)
        assert w.list_groups() == []
        assert [decode(*pair) for pair in w.log[before:]] == [OffsetDeleted("s", "t", 0), GroupDeleted("s")]
        assert w.notes[-2:] == [
            OffsetsRemoved("s", cause="its offsets expired", count=1),
            GroupRemoved("s", cause="its offsets expired"),
        ]

    @pytest.mark.row("5.6/expire-ts")
    def test_an_expiry_of_its_own_replaces_the_retention(self) -> None:
        w = world()
        w.commit("s", {("t", 0): 1}, retention_ms=2 * MINUTE, version=2)
        w.commit("s", {("t", 1): 1}, retention_ms=30 * MINUTE, version=2)
        w.advance(2 * MINUTE)
        assert w.fetch("s") == {("t", 1): 1}
        w.advance(27 * MINUTE)
        assert w.fetch("s") == {("t", 1): 1}
        w.advance(MINUTE)
        assert w.fetch("s") == {}

    @pytest.mark.row("5.3/expiry-none")
    def test_an_expiry_of_minus_one_is_none_kafka_8069(self) -> None:
        w = world()
        w.shard.apply((OffsetCommitted("s", "t", 0, 1, NONE, "", w.now, NONE),), 0)
        w.advance(RETENTION - 1)
        assert w.fetch("s") == {("t", 0): 1}


class TestGroupsWithMembers:
    @pytest.mark.row("5.6/stable", "9/6")
    def test_topics_they_read_never_expire_others_do(self) -> None:
        w = world()
        (a,) = w.stable()
        w.commit("g", {("t", 0): 1, ("u", 0): 2}, a, 1)
        keep_alive(w, RETENTION + CHECK, a)
        assert w.fetch() == {("t", 0): 1}

    @pytest.mark.row("5.6/never", "9/35")
    def test_while_rebalancing_nothing_expires_kafka_13636(self) -> None:
        w = world()
        (a,) = w.stable(rebalance_ms=100 * MINUTE)
        w.commit("g", {("u", 0): 2}, a, 1)
        w.new_member(rebalance_ms=100 * MINUTE, session_ms=60_000)
        keep_alive(w, 4 * MINUTE, a)
        w.shard.timers.cancel(("session", "g", "c-2"))
        keep_alive(w, RETENTION, a)
        assert w.state() == "PreparingRebalance"
        assert w.fetch() == {("u", 0): 2}

    @pytest.mark.row("5.6/never", "1.2/subscribed-topics")
    @pytest.mark.parametrize(
        ("type_", "metadata"), [("connect", subscription("t")), ("consumer", b"no subscription")]
    )
    def test_when_it_is_not_known_what_they_read_nothing_expires(self, type_: str, metadata: bytes) -> None:
        w = world()
        (a,) = w.stable(type_=type_, offers=protocols(range=metadata))
        w.commit("g", {("u", 0): 2}, a, 1)
        keep_alive(w, RETENTION + CHECK, a)
        assert w.fetch() == {("u", 0): 2}


class TestEmptyGroups:
    @pytest.mark.row("5.6/empty", "1.2/state-time")
    def test_the_retention_counts_from_when_the_last_member_left(self) -> None:
        w = world()
        (a,) = w.stable()
        w.commit("g", {("t", 0): 1}, a, 1)
        keep_alive(w, RETENTION, a)
        w.leave("g", (a, None))
        w.advance(RETENTION - 1)
        assert w.fetch() == {("t", 0): 1}
        w.advance(CHECK)
        assert w.state() == "Dead"

    def test_a_reload_does_not_forget_when_the_last_member_left(self) -> None:
        w = world()
        (a,) = w.stable()
        w.commit("g", {("t", 0): 1}, a, 1)
        keep_alive(w, RETENTION - CHECK, a)
        w.leave("g", (a, None))
        w.crash()
        w.advance(2 * CHECK)
        assert w.fetch() == {("t", 0): 1}
        w.advance(RETENTION)
        assert w.state() == "Dead"

    @pytest.mark.row("5.6/empty")
    def test_a_later_commit_of_an_administrator_counts_from_itself(self) -> None:
        w = world()
        (a,) = w.stable()
        w.leave("g", (a, None))
        w.commit("g", {("t", 1): 1})
        w.advance(9 * MINUTE)
        w.commit("g", {("t", 0): 1})
        w.advance(2 * MINUTE)
        assert w.fetch() == {("t", 0): 1}

    @pytest.mark.row("2.10/empty")
    def test_a_group_without_offsets_goes_at_the_next_pass(self) -> None:
        w = world()
        (a,) = w.stable()
        w.leave("g", (a, None))
        w.advance(CHECK)
        assert w.state() == "Dead"
        assert w.reloaded().group_ids() == {}

    def test_but_not_while_an_id_it_handed_out_may_come_back(self) -> None:
        w = world()
        member = w.join(session_ms=1_000_000).reply.member_id
        w.advance(CHECK)
        assert w.join("g", member).parked


class TestTransactions:
    @pytest.mark.row("5.5/link", "9/36")
    def test_an_offset_under_an_open_transaction_stays_and_so_does_its_group_kafka_19163(self) -> None:
        w = world()
        w.commit("s", {("t", 0): 1, ("t", 1): 1})
        w.shard.apply((OffsetCommitted("s", "t", 0, 5, NONE, "", w.now),), 9, producer_id=7)
        w.advance(RETENTION + CHECK)
        assert w.fetch("s") == {("t", 0): 1}
        w.shard.end_transaction(7, committed=False)
        w.advance(CHECK)
        assert w.list_groups() == []

    @pytest.mark.row("5.5/link", "9/36")
    def test_a_group_with_nothing_but_an_open_transaction_stays_until_it_ends_kafka_19164(self) -> None:
        w = world()
        w.shard.apply((OffsetCommitted("s", "t", 0, 5, NONE, "", w.now),), 9, producer_id=7)
        w.advance(RETENTION + CHECK)
        assert [g.group_id for g in w.list_groups()] == ["s"]
        w.shard.end_transaction(7, committed=False)
        w.advance(CHECK)
        assert w.list_groups() == []


def test_a_failed_pass_is_made_up_for_by_the_next() -> None:
    w = world()
    w.commit("s")
    w.advance(RETENTION - CHECK)
    w.fail_next_write = ErrorCode.KAFKA_STORAGE_ERROR
    w.advance(CHECK)
    assert w.fetch("s") == {("t", 0): 1}
    assert w.commit_errors("s", {("t", 1): 2}) == [0]
    w.hold_writes = True
    w.commit("s", {("t", 1): 2})
    assert not w.join("s").parked, "nobody waits for its end any more"
    w.hold_writes = False
    w.write_all()
    w.advance(CHECK)
    assert w.fetch("s") == {("t", 1): 2}


@pytest.mark.parametrize("limit", ["_SLICE", "_WRITES"])
def test_a_pass_over_many_groups_is_made_in_slices(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(expiry, limit, 10)
    w = world()
    for number in range(25):
        w.commit(f"s{number}")
    left = [25]
    w.advance(RETENTION - 1)
    for _ in range(40):
        w.advance(1)
        left.append(len(w.list_groups()))
    assert list(dict.fromkeys(left)) == [25, 15, 5, 0]


class TestDeletedTopics:
    @pytest.mark.row("5.6/topic-deleted")
    def test_their_offsets_go_from_every_group(self) -> None:
        w = world()
        (a,) = w.stable()
        w.commit("g", {("t", 0): 1, ("u", 0): 1}, a, 1)
        w.commit("s", {("t", 0): 1})
        w.topics_deleted("t")
        assert (w.fetch("g"), w.fetch("s")) == ({("u", 0): 1}, {})
        assert w.state() == "Stable"
        assert OffsetsRemoved("g", cause="their topic was deleted", count=1) in w.notes

    def test_a_commit_that_is_being_written_is_removed_too(self) -> None:
        w = world()
        w.hold_writes = True
        committing = w.commit("s", {("t", 0): 1, ("u", 0): 2})
        w.topics_deleted("t")
        w.write_all()
        assert errors_of(committing) == [0, 0]
        assert w.fetch("s") == {("u", 0): 2}
        assert list(w.reloaded().partitions_of("s")) == [("u", 0)]

    def test_a_commit_to_the_new_topic_of_that_name_stays(self) -> None:
        w = world()
        w.hold_writes = True
        w.commit("s", {("t", 0): 1})
        w.topics_deleted("t")
        w.commit("s", {("t", 0): 7})
        w.write_all()
        assert w.fetch("s") == {("t", 0): 7}

    @pytest.mark.parametrize(("version", "error"), [(9, 3), (10, 100)])
    def test_a_commit_that_waits_for_the_end_of_its_group_is_refused(self, version: int, error: int) -> None:
        w = world()
        w.commit("s")
        w.hold_writes = True
        w.delete("s")
        mixed = w.commit("s", {("u", 0): 2, ("t", 0): 1}, version=version)
        alone = w.commit("s", {("t", 1): 1}, version=version)
        stranger = w.commit("s", {("t", 1): 1}, "nobody", 3, version=version)
        w.topics_deleted("t")
        w.hold_writes = False
        w.write_all()
        answered = [(topic.name, p.error_code) for topic in mixed.reply.topics for p in topic.partitions]
        assert answered == [("t", error), ("u", 0)]
        assert errors_of(alone) == errors_of(stranger) == [error]
        assert not [note for note in w.notes if isinstance(note, CommitRefused)], "nothing is left to refuse"
        assert w.fetch("s") == {("u", 0): 2}

    def test_so_is_one_that_came_again_and_its_first_is_as_it_was(self) -> None:
        w = world()
        w.commit("s")
        w.hold_writes = True
        w.delete("s")
        body = commit_body("s", {("t", 0): 1, ("u", 0): 1, ("u", 1): 1}, "", -1, None, "", -1)
        first = resolve_commit(9, body, DIRECTORY, 10)
        again = w.send(ApiKey.OFFSET_COMMIT, 9, first.again((7, -1, 8, 3, 9, 4)))
        w.topics_deleted("t")
        w.hold_writes = False
        w.write_all()
        assert errors_of(again) == [3, 0, 0]
        assert w.fetch("s") == {("u", 0): 8, ("u", 1): 9}
        assert errors_of(w.send(ApiKey.OFFSET_COMMIT, 9, first)) == [0, 0, 0]

    def test_what_could_not_be_removed_is_by_the_next_pass(self) -> None:
        w = world()
        w.commit("s", {("t", 0): 1, ("t", 1): 1, ("u", 0): 2})
        w.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
        w.topics_deleted("t")
        w.commit("s", {("t", 1): 9})
        w.advance(CHECK)
        assert w.fetch("s") == {("t", 1): 9, ("u", 0): 2}

    def test_when_neither_the_commit_nor_its_removal_is_written_nothing_is_left(self) -> None:
        w = world()
        w.hold_writes = True
        committing = w.commit("s", {("t", 0): 1})
        w.topics_deleted("t")
        for _ in range(2):
            w.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
            w.write()
        assert errors_of(committing) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert (w.fetch("s"), w.shard.state.orphans) == ({}, {})

    def test_the_second_deletion_finds_what_the_first_forgot_the_names_of(self) -> None:
        w = world()
        w.commit("s", {("t", 0): 1, ("u", 0): 2})
        w.crash()
        for _ in range(2):
            w.topics_deleted("t")
            w.commit("s", {("t", 0): 3})
        w.topics_deleted("t")
        assert w.fetch("s") == {("u", 0): 2}
        assert not any(key.topic == "t" for key in w.shard.state.durable._keys.values())

    def test_offsets_of_open_transactions_go_too(self) -> None:
        w = world()
        w.shard.apply((OffsetCommitted("s", "t", 0, 1, NONE, "", w.now, NONE),), 0, producer_id=7)
        w.topics_deleted("t")
        w.shard.end_transaction(7, committed=True)
        assert w.fetch("s") == {}
