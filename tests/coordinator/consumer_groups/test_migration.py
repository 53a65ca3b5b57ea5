"""Groups with members turn from one protocol to the other, and members of both share a group.

Covers: coordinator/consumer_groups/classic_members.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kohort.coordinator.classic_groups.group import ClassicGroup
from kohort.coordinator.consumer_groups.migration import turns_back
from kohort.offsets_topic import NONE, ClassicMetadata, GroupDeleted, GroupStored, OffsetCommitted
from kohort.protocol import (
    ApiKey,
    ErrorCode,
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from tests.coordinator.consumer_groups.group_world import Classic, World, partitions
from tests.limits.growing import Lines

INTERVAL_MS, SESSION_MS, REBALANCE_MS = 1_000, 10_000, 30_000


def mixed() -> tuple[World, Classic]:
    """A consumer, and a classic member that has joined after it."""
    world = World({"t": 6}, group_initial_rebalance_delay_ms=0)
    world.join("m")
    world.advance(INTERVAL_MS)
    classic = Classic(world)
    assert classic.join().generation_id == 3
    assert classic.sync().error_code == 0
    for _ in range(2):
        world.live("m")
        classic.live()
    return world, classic


def test_a_classic_member_shares_the_partitions() -> None:
    world, classic = mixed()
    assert len(classic.owned) == 3
    mine = [tuple(each) for each in classic.owned]
    assert sorted([*partitions([world.has("m")]), *mine]) == [("t", number) for number in range(6)]
    assert classic.beat() == ErrorCode.NONE


def test_it_is_told_to_rejoin_and_gives_up_before_others_get_what_it_had() -> None:
    world, classic = mixed()
    world.advance(INTERVAL_MS)
    world.join("n")
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    before = classic.generation
    classic.join()
    assert classic.generation == before
    assert len(decode_assignment(classic.sync().assignment).partitions) == 2
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.join()
    assert classic.generation == 4


def test_one_that_does_not_rejoin_in_time_is_removed() -> None:
    world, classic = mixed()
    world.advance(INTERVAL_MS)
    world.join("n")
    for _ in range(7):
        classic.beat()
        world.live("m")
        world.advance(REBALANCE_MS // 6)
    assert classic.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_join_that_arrives_once_more_when_its_sender_has_synced_does_not_remove_it() -> None:
    world, classic = mixed()
    assert classic.join().generation_id == classic.generation
    for _ in range(REBALANCE_MS // 5_000 + 1):
        assert classic.beat() == ErrorCode.NONE
        world.live("m")
        world.advance(5_000)
    assert classic.id in world.group().members


def test_one_that_joins_once_more_before_it_syncs_has_its_whole_time_again() -> None:
    world, classic = mixed()
    world.advance(INTERVAL_MS)
    world.join("n")
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.join()
    classic.sync()
    classic.join()
    assert classic.generation == 4

    def live_for(duration_ms: int) -> None:
        for _ in range(duration_ms // 5_000):
            world.advance(5_000)
            classic.beat()
            for name in "mn":
                world.live(name)

    live_for(20_000)
    classic.join()
    live_for(25_000)
    assert classic.id in world.group().members
    live_for(5_000)
    assert classic.id not in world.group().members


def test_a_static_member_that_comes_back_and_does_not_sync_is_removed() -> None:
    world = World({"t": 6}, group_initial_rebalance_delay_ms=0)
    world.join("m")
    first = Classic(world, instance="i")
    first.join()
    first.sync()
    for _ in range(2):
        world.live("m")
        first.live()
    second = Classic(world, instance="i")
    assert second.join().generation_id == first.generation
    for _ in range(REBALANCE_MS // 5_000):
        world.advance(5_000)
        second.beat()
        world.live("m")
    assert list(world.group().members) == ["m"]


def test_one_that_falls_silent_is_removed_by_its_own_session() -> None:
    world, classic = mixed()
    world.advance(SESSION_MS)
    assert classic.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(world.group().members) == ["m"]


@pytest.mark.parametrize("fields", [{"type_": "connect"}, {"protocol": "other"}])
def test_what_does_not_fit_the_other_classic_members_is_refused(fields: dict[str, str]) -> None:
    world, _ = mixed()
    assert Classic(world).join(**fields).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_requests_of_an_older_generation_and_of_strangers_are_refused() -> None:
    _, classic = mixed()
    classic.generation -= 1
    assert classic.beat() == ErrorCode.ILLEGAL_GENERATION
    assert classic.sync().error_code == ErrorCode.ILLEGAL_GENERATION
    classic.id = "m"
    assert classic.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert classic.leave() == 0


def test_a_sync_that_names_no_protocol_is_refused_before_its_sender_is_looked_for() -> None:
    _, classic = mixed()
    classic.id = "nobody"
    fields = {"generation_id": 1, "member_id": "nobody", "group_instance_id": None, "assignments": []}
    (answer,) = classic.send(ApiKey.SYNC_GROUP, 5, protocol_type=None, protocol_name=None, **fields)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("member_id", "instance_id", "error"),
    [
        ("", "pod-1", ErrorCode.NONE),
        ("s", "pod-1", ErrorCode.NONE),
        ("m", "pod-1", ErrorCode.FENCED_INSTANCE_ID),
        ("s", "pod-2", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "pod-2", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_static_members_are_removed_by_their_instance_id(
    member_id: str, instance_id: str, error: ErrorCode
) -> None:
    world, classic = mixed()
    world.join("s", instance_id="pod-1")
    leaving = [SimpleNamespace(member_id=member_id, group_instance_id=instance_id, reason=None)]
    (answer,) = classic.send(ApiKey.LEAVE_GROUP, 5, members=leaving)
    assert [ErrorCode(each.error_code) for each in answer.members] == [error]
    assert ("s" in world.group().members) is (error is not ErrorCode.NONE)


def test_when_the_last_consumer_leaves_it_is_a_classic_group_again() -> None:
    world, classic = mixed()
    before = len(world.log)
    world.beat("m", -1)
    assert [kind for kind, *_ in world.written(before)] == [8, 8, 7, 7, 6, 5, 5, 4, 3]
    assert isinstance(world.log[-1], GroupStored)
    assert world.log[-1].generation == 3
    assert isinstance(world.shard.state.find("g"), ClassicGroup)
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert classic.join().generation_id == 4
    world.restart()
    assert isinstance(world.shard.state.find("g"), ClassicGroup)


def test_a_rebalance_that_follows_outlives_the_coordinator() -> None:
    world, classic = mixed()
    world.beat("m", -1)
    _, nobody = world.log[-1].members
    assert nobody.assignment == b""
    world.restart()
    for _ in range(2):
        assert classic.beat() == ErrorCode.NONE
        world.advance(SESSION_MS // 2)
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.send_join()
    group = world.shard.state.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert list(group.members) == [classic.id]


@pytest.mark.parametrize("policy", ["bidirectional", "downgrade", "upgrade"])
def test_a_classic_member_that_takes_the_place_of_the_last_consumer_turns_the_group_back(
    policy: str,
) -> None:
    world = World({"t": 6}, group_initial_rebalance_delay_ms=0, group_consumer_migration_policy=policy)
    world.join("m", instance_id="i")
    world.advance(INTERVAL_MS)
    classic = Classic(world)
    classic.join()
    classic.sync()
    for _ in range(2):
        world.live("m")
        classic.live()
    other = Classic(world, instance="i")
    assert other.join().error_code == 0
    found = world.shard.state.find("g")
    assert isinstance(found, ClassicGroup) == (policy != "upgrade")
    assert found.member_count == 2
    # nobody stops reading
    assert (classic.beat(), other.beat()) == (0, 0)
    assert other.sync().error_code == 0
    assert sorted([*classic.owned, *other.owned]) == [("t", number) for number in range(6)]
    world.restart()
    assert isinstance(world.shard.state.find("g"), ClassicGroup) == (policy != "upgrade")
    world.advance(SESSION_MS * 5)
    assert world.shard.state.find("g").is_empty


def test_members_of_a_group_that_turned_back_are_removed_when_they_say_nothing_more() -> None:
    world, _ = mixed()
    world.beat("m", -1)
    world.join("m", instance_id="i")
    world.live("m")
    assert Classic(world, instance="i").join().error_code == 0
    assert isinstance(world.shard.state.find("g"), ClassicGroup)
    world.advance(SESSION_MS * 5)
    assert world.shard.state.find("g").is_empty


def test_one_that_takes_the_place_of_a_consumer_reads_its_own_topics_and_not_the_expression() -> None:
    pytest.importorskip("re2")
    world = World({"t": 6, "u": 2}, group_initial_rebalance_delay_ms=0)
    world.join("n", "t")
    world.join("m", "t", instance_id="i", subscribed_topic_regex="t|u")
    for _ in range(3):
        world.advance(INTERVAL_MS)
        for name in ("m", "n"):
            world.live(name)
    assert world.has("m")["u"] == (0, 1)
    classic = Classic(world, instance="i")
    before = len(world.log)
    assert classic.join().error_code == 0
    assert (16, "t|u", True) in world.written(before)
    assert world.group().members[classic.id].metadata.regex == ""
    for _ in range(2):
        world.advance(INTERVAL_MS)
        classic.live()
        world.live("n")
    assert sorted({partition.topic for partition in classic.owned}) == ["t"]
    assert classic.beat() == ErrorCode.NONE


def test_the_same_when_its_session_is_over() -> None:
    world, classic = mixed()
    for _ in range(9):
        world.advance(SESSION_MS // 2)
        classic.beat()
    assert isinstance(world.shard.state.find("g"), ClassicGroup)


def test_where_groups_may_not_turn_back_it_stays_a_consumer_group() -> None:
    world, classic = mixed()
    world.settings.group_consumer_migration_policy = "upgrade"
    world.beat("m", -1)
    assert classic.beat() == ErrorCode.NONE
    world.advance(INTERVAL_MS)
    classic.join()
    classic.sync()
    assert len(classic.owned) == 6


def test_where_no_consumer_is_left_heartbeats_of_classic_members_see_to_the_target() -> None:
    world, classic = mixed()
    world.settings.group_consumer_migration_policy = "upgrade"
    world.beat("m", -1)
    world.advance(INTERVAL_MS)
    classic.live()
    assert len(classic.owned) == 6
    world.change_topics(t=8)
    world.advance(INTERVAL_MS)
    classic.live()
    assert len(classic.owned) == 8


def test_where_a_consumer_is_left_they_do_not() -> None:
    world, classic = mixed()
    world.change_topics(t=8)
    world.advance(INTERVAL_MS)
    before = len(world.log)
    assert classic.beat() == ErrorCode.NONE
    assert len(world.log) == before


def classic_group(**settings: Any) -> tuple[World, Classic]:
    """A classic group with one member that has everything."""
    world = World(group_initial_rebalance_delay_ms=0, **settings)
    classic = Classic(world)
    (asked,) = classic.send_join()
    classic.id = asked.member_id
    answers = classic.send_join()
    world.advance(1)
    classic.learn(answers[0])
    everything = encode_assignment([TopicPartition("t", number) for number in range(4)])
    assert classic.sync([(classic.id, everything)]).error_code == 0
    return world, classic


def test_a_consumer_makes_a_classic_group_a_consumer_group_with_all_that_its_members_have() -> None:
    world, classic = classic_group()
    before = len(world.log)
    answer = world.join("m")
    assert (answer.error_code, answer.member_epoch) == (0, 2)
    assert isinstance(world.log[before], GroupDeleted)
    kinds = [(kind, name == "m") for kind, name, _ in world.written(before)]
    upgraded = [(5, False), (3, False), (7, False), (6, False), (8, False)]
    joined = [(5, True), (3, False), (7, False), (7, True), (6, False), (8, True)]
    assert sorted(kinds[:5]) == sorted(upgraded)
    assert sorted(kinds[5:]) == sorted(joined)
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.live()
    world.live("m")
    assert len(classic.owned) == len(world.has("m")["t"]) == 2


def test_what_a_classic_member_is_about_to_give_up_waits_for_it() -> None:
    world, reader = classic_group()
    (asked,) = Classic(world).send_join()
    other = Classic(world, asked.member_id)
    (joined,), (others,) = reader.send_join(), other.send_join()
    reader.learn(joined)
    other.learn(others)
    first, *_ = kept = [TopicPartition("t", number) for number in (0, 1)]
    assert first in reader.owned
    reader.sync([(reader.id, encode_assignment(kept)), (other.id, b"")])
    assert world.told(world.join("m")) == {}
    world.restart()
    assert world.group().members[reader.id].current.revoking
    world.advance(INTERVAL_MS)
    world.live("m")
    assert reader.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.has("m") == {}
    reader.live()
    assert reader.owned == tuple(kept)
    world.live("m")
    other.live()
    assert len(world.has("m")["t"]) == len(other.owned) == 1


def test_of_two_that_say_they_own_a_partition_the_one_that_heard_last_is_believed() -> None:
    world, reader = classic_group()
    (asked,) = Classic(world).send_join()
    other = Classic(world, asked.member_id)
    (joined,), (others,) = reader.send_join(), other.send_join()
    reader.learn(joined)
    other.learn(others)
    reader.sync([(reader.id, b""), (other.id, b"")])
    group = world.shard.state.groups["g"]
    for name, generation in ((reader.id, 1), (other.id, 2)):
        said = Subscription(("t",), owned=(TopicPartition("t", 0),), generation=generation)
        group.set_protocols(group.members[name], (("range", encode_subscription(said)),))
    world.join("m")
    has = {name: bool(member.current.revoking) for name, member in world.group().members.items()}
    assert has == {reader.id: False, other.id: True, "m": False}


def test_who_is_parked_in_the_classic_group_rejoins() -> None:
    world, _ = classic_group()
    (asked,) = Classic(world).send_join()
    parked = Classic(world, asked.member_id).send_join()
    assert not parked
    world.join("m")
    assert [answer.error_code for answer in parked] == [ErrorCode.REBALANCE_IN_PROGRESS]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"group_consumer_migration_policy": "disabled"}, "online upgrade is disabled."),
        ({"group_consumer_migration_policy": "downgrade"}, "online upgrade is disabled."),
    ],
)
def test_what_may_not_turn_is_refused_with_the_reason(settings: dict[str, Any], why: str) -> None:
    world, classic = classic_group(**settings)
    answer = world.join("m")
    told = f"Cannot upgrade classic group g to consumer group because {why}"
    assert (answer.error_code, answer.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, told)
    assert classic.beat() == ErrorCode.NONE


def test_user_data_of_an_assignor_is_not_thrown_away() -> None:
    world, classic = classic_group()
    group = world.shard.state.groups["g"]
    group.members[classic.id].assignment = encode_assignment([], b"mine")
    assert "an unsupported custom assignor is in use" in world.join("m").error_message


def test_a_classic_group_without_members_is_replaced() -> None:
    world, classic = classic_group()
    classic.leave()
    world.advance(1)
    assert world.join("m").member_epoch == 2


def test_a_classic_member_of_a_group_without_members_is_unknown_there() -> None:
    world = World()
    world.join("m")
    world.beat("m", -1)
    (answer,) = Classic(world, "long-gone").send_join()
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "long-gone")
    assert world.group().is_empty


def test_answers_to_a_classic_member_name_its_protocol_and_have_its_version() -> None:
    world = World({"t": 6}, group_initial_rebalance_delay_ms=0)
    world.join("m")
    world.advance(INTERVAL_MS)
    classic = Classic(world)
    for answer in (classic.join(), classic.sync()):
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert decode_assignment(answer.assignment).version == 1


def test_one_that_asks_for_its_assignment_when_there_is_a_newer_target_rejoins() -> None:
    world, classic = mixed()
    assert classic.join().generation_id == 3
    world.advance(INTERVAL_MS)
    world.beat("m", -1)
    world.join("n")
    world.join("m")
    world.advance(INTERVAL_MS)
    world.live("n")
    assert classic.sync().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(3):
        classic.live()
        for name in "mn":
            world.live(name)
    assert classic.generation == world.group().target_epoch


def test_the_sessions_of_a_classic_group_end_with_it() -> None:
    world, classic = classic_group()
    before = {key[0] for key in world.shard.timers._by_key if "g" in key}
    world.join("m")
    assert before
    assert not before & {key[0] for key in world.shard.timers._by_key if "g" in key}
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_members_of_a_group_that_turned_back_offer_all_their_protocols() -> None:
    world, classic = mixed()
    both = [("range", encode_subscription(Subscription(("t",)))), ("sticky", b"")]
    world.group().members[classic.id].metadata = (
        world.group().members[classic.id].metadata._replace(classic=ClassicMetadata(SESSION_MS, tuple(both)))
    )
    world.beat("m", -1)
    group = world.shard.state.find("g")
    assert isinstance(group, ClassicGroup)
    assert [name for name, _ in group.members[classic.id].protocols] == ["range", "sticky"]


def test_a_consumer_group_without_members_is_replaced_by_a_classic_one() -> None:
    world = World(group_initial_rebalance_delay_ms=0)
    world.join("m")
    world.beat("m", -1)
    before = len(world.log)
    classic = Classic(world)
    (asked,) = classic.send_join()
    classic.id = asked.member_id
    answers = classic.send_join()
    world.advance(1)
    assert answers[0].generation_id == 1
    assert world.written(before) == [(6, "", True), (4, "", True), (3, "", True)]
    world.restart()
    assert isinstance(world.shard.state.find("g"), ClassicGroup)


def test_offsets_age_from_their_commit_where_a_classic_group_that_was_cut_off_took_its_place() -> None:
    world = World(group_initial_rebalance_delay_ms=0, offsets_retention_minutes=1)
    world.join("m")
    world.beat("m", -1)
    world.log.append(OffsetCommitted("g", "t", 0, 1, NONE, "", world.now_ms, NONE))
    world.shard.apply(world.log[-1:], len(world.log))
    world.advance(40_000)
    classic = Classic(world)
    classic.send_join()
    world.restart()
    assert world.after_retention() == ["t"]
    world.advance(20_000)
    assert world.after_retention() == []


def test_a_classic_member_that_joins_while_the_last_consumer_leaves_is_answered() -> None:
    world = World(group_initial_rebalance_delay_ms=0)
    world.join("m")
    classic = Classic(world, instance="i")
    world.held = []
    world.beat("m", -1)
    answers = classic.send_join()
    world.release()
    world.advance(1)
    assert [answer.error_code for answer in answers] == [0]


def test_a_group_that_turned_back_while_it_was_written_is_classic_in_memory_as_in_the_log() -> None:
    world, _ = mixed()
    world.advance(INTERVAL_MS)
    world.held = []
    world.join("n")
    world.beat("m", -1)
    world.beat("n", -1)
    assert len(world.held) == 3
    world.release()
    assert isinstance(world.shard.state.groups["g"], ClassicGroup)
    world.restart()
    assert isinstance(world.shard.state.find("g"), ClassicGroup)


def test_who_waits_in_a_group_that_could_not_turn_back_looks_for_it_again() -> None:
    world, classic = mixed()
    world.advance(INTERVAL_MS)
    world.join("n")
    other = Classic(world, instance="i")
    assert other.join().error_code == 0
    world.beat("n", -1)
    world.held = []
    world.beat("m", -1)
    answers = classic.send_join()
    assert not answers
    world.failing = True
    world.release()
    world.failing = False
    assert [answer.error_code for answer in answers] == [ErrorCode.NOT_COORDINATOR]
    assert set(world.group().members) == {"m", classic.id, other.id}
    world.advance(SESSION_MS * 5)
    assert world.group().is_empty


def test_an_empty_group_whose_classic_record_is_refused_stays_what_it_is_in_the_log() -> None:
    world = World(group_initial_rebalance_delay_ms=0)
    world.join("m")
    world.beat("m", -1)
    classic = Classic(world, instance="i")
    world.held = []
    answers = classic.send_join()
    world.failing = True
    world.release()
    world.failing = False
    assert [answer.error_code for answer in answers] == [ErrorCode.NOT_COORDINATOR]
    assert world.group().is_empty


def test_members_of_a_classic_group_that_could_not_be_replaced_have_their_sessions() -> None:
    world, _ = classic_group()
    world.failing = True
    assert world.join("m").error_code == ErrorCode.NOT_COORDINATOR
    world.failing = False
    assert world.shard.state.find("g").member_count == 1
    world.advance(SESSION_MS)
    assert world.shard.state.find("g").is_empty


def test_a_write_that_was_handed_out_before_one_that_failed_counts_as_the_log_has_it() -> None:
    world = World()
    world.join("m")
    world.held = []
    world.join("n")
    world.join("o")
    first, second = world.held
    world.failing = True
    world._write(first)
    world.failing = False
    world._write(second)
    world.held = None
    live = {name: member.current for name, member in world.group().members.items()}
    world.restart()
    assert {name: member.current for name, member in world.group().members.items()} == live


def test_a_group_with_more_members_than_the_other_protocol_allows_does_not_turn() -> None:
    world = World({"t": 6}, group_initial_rebalance_delay_ms=0, group_consumer_max_size=1)
    for instance in "ij":
        Classic(world, instance=instance).send_join()
    answer = world.join("m")
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "size exceeds the consumer group maximum size" in answer.error_message
    world = World({"t": 6}, group_initial_rebalance_delay_ms=0, group_max_size=1)
    world.join("m")
    for instance in "ij":
        Classic(world, instance=instance).join()
    world.beat("m", -1)
    assert len(world.group().members) == 2


def test_a_classic_member_that_only_asks_for_its_assignment_gives_nothing_up() -> None:
    world, classic = mixed()
    world.advance(INTERVAL_MS)
    world.join("n")
    classic.join()
    for _ in range(REBALANCE_MS // 5_000):
        assert classic.sync().error_code == 0
        world.advance(5_000)
    assert classic.id not in world.group().members


def test_whether_a_group_turns_back_is_found_without_a_look_at_each_of_its_members() -> None:
    counts = []
    for size in (10, 300):
        world, lines = World({"t": 1}), Lines()
        for number in range(size):
            world.join(f"m-{number}")
        group = world.group()
        with lines.counted():
            assert not turns_back(world.shard, group, [group.members["m-0"]])
        counts.append(lines.count)
    assert counts[0] == counts[1]
