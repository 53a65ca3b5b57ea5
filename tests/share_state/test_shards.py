"""A shard of the share coordinator: who may read and write, what is kept, and when the log is cut."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.protocol import ErrorCode, SharePartitionKey
from kohort.protocol.messages.read_share_group_state import StateBatch
from kohort.share_state.records import ShareSnapshot, ShareStateDeleted, ShareUpdate, decode
from kohort.share_state.shards import StateWriteRefused
from tests.share_state.driver import KEY, OTHER_TOPIC, START_MS, TOPIC, Bottle

_E = ErrorCode
READ_FIRST = "Read operation on uninitialized share partition not allowed."
WRITE_FIRST = "Write operation on uninitialized share partition not allowed."


def records(bottle: Bottle) -> list[object]:
    return [decode(*each) for each in bottle.log]


def state(bottle: Bottle, key: SharePartitionKey = KEY) -> ShareSnapshot:
    return bottle.shard.state.by_key[key].now


def test_what_is_not_initialized_is_neither_read_nor_written() -> None:
    bottle = Bottle()
    assert bottle.read(0)[:3] == (0, _E.INVALID_REQUEST, READ_FIRST)
    assert bottle.summarize() == (0, _E.NONE, None, 0, 0, -1, -1), "that is no error here"
    assert bottle.write(0, 0) == (0, _E.INVALID_REQUEST, WRITE_FIRST)
    assert bottle.log == []


def test_initialized_state_is_read_with_its_start_and_without_batches() -> None:
    bottle = Bottle()
    assert bottle.initialize(5, 7) == (0, 0, None)
    assert bottle.read(0) == (0, 0, None, 5, 7, (), START_MS)
    assert records(bottle) == [ShareSnapshot(KEY, 0, 5, 0, 7, START_MS, START_MS, (), 0)]


def test_state_without_a_start_has_no_count_of_what_is_done() -> None:
    bottle = Bottle()
    bottle.initialize(5)
    assert bottle.summarize() == (0, 0, None, 5, 0, -1, -1)


def test_a_lower_state_epoch_replaces_nothing_an_equal_one_does() -> None:
    bottle = Bottle()
    bottle.initialize(5, 0)
    bottle.write(5, 0, (0, 9, 2, 1), start=0)
    assert bottle.initialize(4, 3).error_code == _E.FENCED_STATE_EPOCH
    assert state(bottle).batches == (StateBatch(0, 9, 2, 1),)
    assert bottle.initialize(5, 3).error_code == _E.NONE
    assert (state(bottle).start_offset, state(bottle).batches) == (3, ())


def test_an_initialization_that_comes_late_does_not_replace_a_state_that_is_used() -> None:
    bottle = Bottle()
    bottle.initialize(5)
    bottle.write(5, 0, (0, 2, 2, 1), start=3)
    assert bottle.initialize(5) == (0, 0, None)
    assert state(bottle).start_offset == 3
    assert bottle.initialize(6, keeps_state=True) == (0, 0, None)
    assert state(bottle).start_offset == 3, "its coordinator was replaced before it noted that there is one"
    assert bottle.initialize(6) == (0, 0, None)
    assert state(bottle).start_offset == -1


def test_a_write_that_comes_late_does_not_take_the_start_offset_back() -> None:
    bottle = Bottle()
    bottle.initialize(5)
    bottle.write(5, 0, (0, 2, 2, 1), start=3)
    assert bottle.write(5, 0, (0, 1, 2, 1), start=0).error_code == _E.NONE
    assert (state(bottle).start_offset, state(bottle).batches) == (3, ())


def test_a_leader_that_reads_fences_those_before_it() -> None:
    bottle = Bottle()
    bottle.initialize(1, 0)
    assert bottle.read(7).error_code == _E.NONE
    assert bottle.read(6).error_code == _E.FENCED_LEADER_EPOCH
    assert bottle.write(1, 6, (0, 1, 2, 1)).error_code == _E.FENCED_LEADER_EPOCH
    assert bottle.write(1, 7, (0, 1, 2, 1)).error_code == _E.NONE
    bottle.restart()
    assert bottle.read(6).error_code == _E.FENCED_LEADER_EPOCH, "it is in the log"


def test_a_read_in_the_same_epoch_writes_nothing() -> None:
    bottle = Bottle()
    bottle.initialize(1, 0)
    bottle.read(7)
    length = len(bottle.log)
    bottle.read(7)
    assert len(bottle.log) == length


def test_a_read_in_a_cluster_writes_as_another_coordinator_may_have_a_newer_state() -> None:
    bottle = Bottle()
    bottle.shard.state.is_replicated = True
    bottle.initialize(1, 0)
    for epoch in (7, 7, -1):
        length = len(bottle.log)
        bottle.write(1, epoch, (0, 1, 2, 1), start=2)
        before = state(bottle)
        assert bottle.read(epoch).start_offset == 2
        assert len(bottle.log) == length + 2
        assert state(bottle) == before._replace(leader_epoch=max(epoch, before.leader_epoch))
    bottle.failing = _E.NOT_LEADER_OR_FOLLOWER
    assert bottle.read(7).error_code == _E.NOT_COORDINATOR


def test_a_write_does_not_raise_the_leader_epoch_nor_does_a_summary_fence() -> None:
    bottle = Bottle()
    bottle.initialize(1, 0)
    assert bottle.write(1, 9, (0, 1, 2, 1)).error_code == _E.NONE
    assert bottle.summarize()[3:6] == (1, 0, 0)
    assert bottle.write(1, 3, (2, 3, 2, 1)).error_code == _E.NONE


def test_a_leader_keeps_its_fence_when_the_state_is_replaced() -> None:
    bottle = Bottle()
    bottle.initialize(1, 0)
    bottle.read(7)
    bottle.initialize(2, 0)
    assert bottle.summarize()[3:5] == (2, 0)
    assert bottle.read(6).error_code == _E.FENCED_LEADER_EPOCH
    assert bottle.write(2, 6).error_code == _E.FENCED_LEADER_EPOCH
    assert bottle.read(7).error_code == _E.NONE
    bottle.restart()
    assert bottle.read(6).error_code == _E.FENCED_LEADER_EPOCH, "the read has written it again"


def test_epochs_of_minus_one_are_not_compared() -> None:
    bottle = Bottle()
    bottle.initialize(3, 0)
    bottle.read(7)
    assert bottle.read(-1).error_code == _E.NONE
    assert bottle.write(-1, -1, (0, 1, 2, 1)).error_code == _E.NONE
    assert bottle.initialize(-1, 0).error_code == _E.NONE


def test_a_write_that_arrives_late_takes_nothing_back() -> None:
    bottle = Bottle()
    bottle.initialize(1, 0)
    bottle.write(1, 0, (0, 9, 2, 1))
    bottle.write(1, 0, (0, 9, 0, 1))
    assert state(bottle).batches == (StateBatch(0, 9, 2, 1),)


def test_a_write_that_arrives_late_does_not_take_back_how_much_is_done() -> None:
    bottle = Bottle()
    bottle.initialize(1, 0)
    bottle.write(1, 0, (0, 1, 2, 1), start=0, done=2)
    bottle.write(1, 0, (2, 3, 4, 1), start=0, done=4)
    bottle.write(1, 0, (0, 1, 2, 1), start=0, done=2)
    assert state(bottle).delivery_complete_count == 4


def test_a_write_for_a_state_that_was_replaced_is_fenced() -> None:
    bottle = Bottle()
    bottle.initialize(2, 0)
    assert bottle.write(1, 0, (0, 1, 2, 1)).error_code == _E.FENCED_STATE_EPOCH
    assert bottle.write(2, 0, (0, 1, 2, 1)).error_code == _E.NONE


def test_a_write_into_the_state_of_a_deleted_group_is_fenced_when_the_name_is_in_use_again() -> None:
    bottle = Bottle()
    bottle.initialize(5, 0)
    before = bottle.read(1).created_ms
    assert bottle.write(5, 1, (0, 7, 2, 1), start=0, done=8, created_ms=before).error_code == _E.NONE
    bottle.delete()
    bottle.now += 1
    bottle.initialize(2, 0)
    late = bottle.write(5, 1, (8, 9, 2, 1), start=8, done=2, created_ms=before)
    assert late.error_code == _E.FENCED_STATE_EPOCH
    assert (state(bottle).start_offset, state(bottle).batches) == (0, ())
    assert bottle.write(2, 1, (0, 0, 2, 1), created_ms=bottle.read(1).created_ms).error_code == _E.NONE
    # of a leader that names no state, as Apache Kafka's
    assert bottle.write(2, 1, (1, 1, 2, 1)).error_code == _E.NONE


@pytest.mark.parametrize("passed_ms", [0, -1])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_state_is_another_one_though_the_clock_stands_still_or_goes_back(
    passed_ms: int, restarts: bool
) -> None:
    bottle = Bottle()
    times = set[int]()
    for _ in range(4):
        bottle.initialize(5, 0)
        times.add(bottle.read(1).created_ms)
        bottle.delete()
        bottle.now += passed_ms
        passed_ms = -passed_ms
        if restarts:
            bottle.restart()
    assert len(times) == 4


def test_a_state_is_the_same_after_a_repeated_initialization_snapshots_and_a_restart() -> None:
    bottle = Bottle()
    bottle.initialize(5)
    before = bottle.read(1).created_ms
    bottle.now += 1
    bottle.initialize(5)
    for offset in range(600):
        assert (
            bottle.write(5, 1, (offset, offset, 2, 1), start=offset, created_ms=before).error_code == _E.NONE
        )
    bottle.restart()
    assert bottle.write(5, 1, (600, 600, 2, 1), start=600, created_ms=before).error_code == _E.NONE


def test_a_write_moves_the_start_only_if_it_says_so() -> None:
    bottle = Bottle()
    bottle.initialize(1, 0)
    bottle.write(1, 0, (0, 4, 2, 1), (5, 9, 0, 1), start=0, done=5)
    bottle.write(1, 0, (5, 5, 2, 2), done=6)
    assert (state(bottle).start_offset, state(bottle).delivery_complete_count) == (0, 6)
    bottle.write(1, 0, (6, 6, 4, 1), start=6, done=1)
    assert state(bottle).batches == (StateBatch(6, 6, 4, 1), StateBatch(7, 9, 0, 1))


@pytest.mark.parametrize("batch", [(4, 3, 0, 1), (-1, 3, 0, 1), (0, 3, 1, 1), (0, 3, 7, 1)])
def test_a_batch_that_cannot_be_is_refused_with_all_of_its_write(batch: tuple[int, int, int, int]) -> None:
    bottle = Bottle()
    bottle.initialize(1, 0)
    assert bottle.write(1, 0, (0, 1, 2, 1), batch).error_code == _E.INVALID_REQUEST
    assert state(bottle).batches == ()


def test_after_so_many_updates_the_whole_state_is_written() -> None:
    bottle = Bottle(share_coordinator_snapshot_update_records_per_snapshot=2)
    bottle.initialize(3, 0)
    for offset in range(6):
        bottle.write(3, 0, (2 * offset, 2 * offset, 2, 1), start=0)
    kinds = [type(each) for each in records(bottle)]
    assert kinds == [ShareSnapshot, *[ShareUpdate, ShareUpdate, ShareSnapshot] * 2]
    last = records(bottle)[-1]
    assert isinstance(last, ShareSnapshot)
    assert (last.snapshot_epoch, len(last.batches)) == (2, 6)


def test_a_restart_finds_what_was_there() -> None:
    bottle = Bottle(share_coordinator_snapshot_update_records_per_snapshot=3)
    other = KEY._replace(partition=1)
    bottle.initialize(3, 0)
    bottle.initialize(1, 5, other)
    bottle.read(4)
    for offset in range(5):
        bottle.write(3, 4, (3 * offset, 3 * offset + 1, 2, 1), start=offset, done=offset)
    bottle.delete(other)
    before = state(bottle)
    bottle.restart()
    assert bottle.shard.state.by_key.keys() == {KEY}
    assert state(bottle) == before


def test_deleted_state_is_gone_and_may_be_deleted_again() -> None:
    bottle = Bottle()
    bottle.initialize(3, 0)
    assert bottle.delete() == (0, 0, None)
    assert bottle.delete() == (0, 0, None)
    assert records(bottle)[1:] == [ShareStateDeleted(KEY)]
    assert bottle.read(0).error_code == _E.INVALID_REQUEST
    bottle.restart()
    assert not bottle.shard.state.by_key


def test_what_the_log_refuses_did_not_happen() -> None:
    bottle = Bottle()
    bottle.initialize(1, 0)
    bottle.failing = _E.NOT_ENOUGH_REPLICAS
    assert bottle.write(1, 0, (0, 1, 2, 1)).error_code == _E.COORDINATOR_NOT_AVAILABLE
    assert bottle.initialize(2, 9).error_code == _E.COORDINATOR_NOT_AVAILABLE
    bottle.failing = None
    assert bottle.read(0) == (0, 0, None, 1, 0, (), START_MS)
    assert isinstance(bottle.told[0], StateWriteRefused)


@pytest.mark.parametrize("key", [KEY._replace(topic_id=UUID(int=9)), KEY._replace(partition=50)])
def test_a_partition_that_does_not_exist_gets_no_state(key: SharePartitionKey) -> None:
    bottle = Bottle()
    assert bottle.initialize(1, 0, key).error_code == _E.UNKNOWN_TOPIC_OR_PARTITION
    assert bottle.initialize(1, 0, KEY._replace(partition=-1)).error_code == _E.INVALID_REQUEST
    assert bottle.initialize(1, -2).error_code == _E.INVALID_REQUEST
    assert not bottle.log


def test_state_goes_with_its_topic() -> None:
    bottle = Bottle()
    other = KEY._replace(topic_id=OTHER_TOPIC)
    for key in (KEY, KEY._replace(group_id="mail"), other):
        bottle.initialize(1, 0, key)
    bottle.delete_topics(TOPIC)
    assert bottle.shard.state.by_key.keys() == {other}
    bottle.restart()
    assert bottle.shard.state.by_key.keys() == {other}


def test_state_of_a_topic_that_went_unseen_is_found_later() -> None:
    bottle = Bottle(share_coordinator_cold_partition_snapshot_interval_ms=1_000)
    bottle.initialize(1, 0)
    bottle.topics.discard(TOPIC)
    bottle.restart()
    assert bottle.shard.state.by_key, "a broker that has just taken over may not know all topics yet"
    bottle.advance(1_000)
    assert not bottle.shard.state.by_key


def test_the_log_is_cut_below_the_oldest_snapshot_that_is_needed() -> None:
    bottle = Bottle(
        share_coordinator_snapshot_update_records_per_snapshot=1,
        share_coordinator_state_topic_prune_interval_ms=1_000,
    )
    other = KEY._replace(partition=1)
    bottle.initialize(1, 0)
    bottle.initialize(1, 0, other)
    bottle.advance(1_000)
    assert bottle.cuts == [], "both are needed"
    for offset in range(4):
        bottle.write(1, 0, (offset, offset, 2, 1), start=offset)
    bottle.advance(1_000)
    assert bottle.cuts == [1], "the other one holds it up"
    bottle.delete(other)
    bottle.advance(1_000)
    before = state(bottle)
    assert bottle.cuts == [1, 5]
    bottle.restart()
    assert state(bottle) == before


def test_a_cut_that_was_not_made_is_asked_for_as_it_was_and_then_the_next() -> None:
    bottle = Bottle(
        share_coordinator_snapshot_update_records_per_snapshot=0,
        share_coordinator_state_topic_prune_interval_ms=1_000,
    )
    bottle.may_cut = False
    bottle.initialize(1, 0)
    for offset in range(3):
        bottle.write(1, 0, (offset, offset, 2, 1), start=offset)
        bottle.advance(1_000)
    # a busy log is never whole at all replicas, but what was there a while ago is
    assert bottle.cuts == [1, 1, 1]
    bottle.may_cut = True
    bottle.advance(2_000)
    assert bottle.cuts[3:] == [1, 3]


def test_a_log_without_any_state_is_cut_to_its_end() -> None:
    bottle = Bottle(share_coordinator_state_topic_prune_interval_ms=1_000)
    bottle.initialize(1, 0)
    bottle.delete()
    bottle.advance(1_000)
    assert bottle.cuts == [2]


def test_a_share_partition_that_is_not_used_does_not_hold_the_log_up_for_ever() -> None:
    bottle = Bottle(
        share_coordinator_snapshot_update_records_per_snapshot=1,
        share_coordinator_state_topic_prune_interval_ms=1_000,
        share_coordinator_cold_partition_snapshot_interval_ms=1_000,
    )
    cold = KEY._replace(partition=1)
    bottle.initialize(1, 3, cold)
    bottle.initialize(1, 0)
    for offset in range(10):
        bottle.write(1, 0, (offset, offset, 2, 1), start=offset)
    bottle.advance(1_000)
    assert state(bottle, cold)._replace(write_ms=START_MS) == ShareSnapshot(
        cold, 1, 1, 0, 3, START_MS, START_MS, (), 0
    )
    bottle.advance(1_000)
    assert bottle.cuts[-1] >= 10
    length = len(bottle.log)
    bottle.advance(100_000)
    assert len(bottle.log) == length, "nothing is written where nothing is used"


def test_many_unused_share_partitions_are_written_in_slices() -> None:
    bottle = Bottle(share_coordinator_cold_partition_snapshot_interval_ms=1_000)
    keys = [KEY._replace(partition=each) for each in range(40)]
    for key in keys:
        bottle.initialize(1, 0, key)
    for _ in range(100):
        bottle.write(1, 0, (0, 0, 2, 1), start=0)
    length = len(bottle.log)
    bottle.advance(1_000)
    assert 0 < len(bottle.log) - length < 40
    bottle.advance(10)
    assert all(kept.snapshot_offset >= length for kept in bottle.shard.state.by_key.values())


def test_a_state_whose_record_would_be_too_large_is_refused() -> None:
    bottle = Bottle()
    bottle.max_bytes = 1_000
    bottle.initialize(1, 0)
    for offset in range(100):
        answer = bottle.write(1, 0, (2 * offset, 2 * offset, 2, 1), start=0)
        if answer.error_code:
            break
    assert answer.error_code == _E.UNKNOWN_SERVER_ERROR
    assert "max.message.bytes" in answer.error_message
    assert 30 < len(state(bottle).batches) < 50
    assert isinstance(bottle.told[-1], StateWriteRefused)
    assert bottle.write(1, 0, (1, 400, 2, 1), start=0).error_code == _E.NONE, "it becomes one batch"
