"""What went wrong in other coordinators, and has no other test that is called by its name."""

from __future__ import annotations

from kohort.coordinator import Unready
from kohort.coordinator.groups.shards import OFFSETS_TOPIC
from kohort.protocol import ApiKey, ErrorCode
from kohort.statemachine import GroupState
from tests.coordinator.driver import World


def test_memory_and_log_agree_when_a_write_fails_behind_one_under_way_kafka_20845() -> None:
    world = World()
    world.hold_writes = True
    first = world.commit(offsets={("t", 0): 1})
    second = world.commit(offsets={("t", 0): 2, ("t", 1): 2})
    world.fail_next_write = ErrorCode.NOT_ENOUGH_REPLICAS
    world.write()
    world.write()
    errors = [
        [row.error_code for topic in call.reply.topics for row in topic.partitions]
        for call in (first, second)
    ]
    assert errors == [[ErrorCode.COORDINATOR_NOT_AVAILABLE], [0, 0]]
    assert world.fetch() == {("t", 0): 2, ("t", 1): 2}
    assert world.reloaded() == world.shard.state.durable


def test_a_round_ends_for_those_who_joined_though_others_never_do_kop_380() -> None:
    world = World()
    one, other = world.stable(2, rebalance_ms=60_000)
    _, newcomer = world.new_member(rebalance_ms=60_000)
    mine = world.join(member=one, rebalance_ms=60_000)
    for _ in range(12):
        # alive, as its heartbeats say, but it does not join
        assert (mine.parked, newcomer.parked) == (True, True)
        world.heartbeat(member=other)
        world.advance(5_000)
    assert mine.error == newcomer.error == 0
    assert len(world.groups["g"].members) == 2
    assert world.groups["g"].state is GroupState.COMPLETING_REBALANCE


def test_an_offset_is_never_missing_while_its_commit_is_being_written_seaweedfs() -> None:
    world = World()
    world.hold_writes = True
    commit = world.commit(offsets={("t", 0): 7})
    fetch = world.fetch_call("g", [("t", 0)])
    assert (commit.parked, fetch.parked) == (True, True)
    world.write()
    (topic,) = fetch.reply.topics
    assert [row.committed_offset for row in topic.partitions] == [7]


def test_a_fetch_of_offsets_is_not_sent_elsewhere_while_we_coordinate_librdkafka_5586() -> None:
    # it is held while the shard loads, and what it is told after that is to try again here
    told = OFFSETS_TOPIC.unready_error(ApiKey.OFFSET_FETCH, Unready.LOADING)
    assert told is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
