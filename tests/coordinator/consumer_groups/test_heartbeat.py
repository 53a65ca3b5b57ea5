"""Members of consumer groups join, live, move to their target, leave, and are missed.

Covers: coordinator/consumer_groups/group.py, coordinator/consumer_groups/changes.py.
Covers: coordinator/groups/subscribed_topics.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.consumer_groups import heartbeat
from kohort.coordinator.consumer_groups.group import SESSION, Failure
from kohort.coordinator.groups.events import MemberGone, RebalanceCompleted
from kohort.coordinator.groups.groups import GroupRequest
from kohort.offsets_topic import ClassicMetadata
from kohort.protocol import ApiKey, CauseKind, ErrorCode, Subscription, encode_subscription
from tests.coordinator.consumer_groups.group_world import Classic, World, partitions

SESSION_MS, INTERVAL_MS, REBALANCE_MS = 45_000, 1_000, 30_000


def settled(*members: str, **settings: Any) -> World:
    """A group with these members, each of which has its target."""
    world = World(**settings)
    for member in members:
        world.join(member)
        world.advance(INTERVAL_MS)
        for _ in range(2):
            for one in members[: members.index(member) + 1]:
                world.live(one)
    return world


def test_the_first_member_gets_everything_at_once_and_its_records_are_kafkas_in_order() -> None:
    world = World()
    answer = world.join("m")
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", 2)
    assert (answer.heartbeat_interval_ms, world.told(answer)) == (5_000, {"t": (0, 1, 2, 3)})
    assert world.written() == [
        (5, "m", False),
        (3, "", False),
        (7, "m", False),
        (6, "", False),
        (8, "m", False),
    ]


def test_a_load_restores_no_group_at_once_and_sessions_of_all_members_start_again() -> None:
    world = settled("a", "b")
    world.restart()
    assert world.shard.state.groups == {}, "thousands of them would hold up whatever else there is"
    world.advance(0)
    for member in "ab":
        assert world.shard.timers.deadline((SESSION, "g", member)) == world.now_ms + SESSION_MS


def test_a_heartbeat_that_changes_nothing_writes_nothing_and_tells_no_assignment() -> None:
    world = settled("m")
    before = len(world.log)
    answer = world.beat("m", 2)
    assert (answer.member_epoch, answer.assignment, len(world.log)) == (2, None, before)


def test_a_full_request_is_told_the_assignment() -> None:
    world = settled("m")
    answer = world.beat("m", 2, [0, 1, 2, 3], rebalance_timeout_ms=30_000, subscribed_topic_names=["t"])
    assert world.told(answer) == {"t": (0, 1, 2, 3)}


def test_a_member_that_joins_within_the_assignment_interval_waits_for_a_heartbeat_after_it() -> None:
    world = settled("m")
    world.advance(-INTERVAL_MS + 1)
    world.now_ms = world.group().target_ms + 1
    answer = world.join("n")
    assert (answer.member_epoch, world.told(answer), world.group().state_name) == (2, {}, "Assigning")
    world.advance(INTERVAL_MS)
    assert world.group().state_name == "Assigning"
    world.live("m")
    world.live("n")
    assert world.group().state_name == "Stable"
    assert partitions([world.has("m"), world.has("n")]) == [("t", number) for number in range(4)]


def test_partitions_move_only_when_they_were_given_up() -> None:
    world = settled("m")
    world.join("n")
    told = world.told(world.beat("m", 2))
    assert len(told["t"]) == 2
    assert world.has("n") == {}
    assert world.beat("m", 2, [0, 1, 2, 3]).member_epoch == 2
    assert world.beat("m", 2, told["t"]).member_epoch == 3
    assert len(world.told(world.beat("n", 3))["t"]) == 2


def test_who_does_not_give_up_in_time_is_removed() -> None:
    world = settled("m")
    world.join("n")
    world.beat("m", 2)
    for _ in range(4):
        world.advance(REBALANCE_MS // 4)
        world.beat("m", 2)
        world.beat("n", 3)
    assert "m" not in world.group().members
    (gone,) = [event for event in world.events if isinstance(event, MemberGone)]
    assert gone.cause == "member m did not give up its partitions within 30.0 s"
    assert gone.cause_kind is CauseKind.LATE_REVOCATION
    assert world.beat("m", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    world.live("n")
    assert world.has("n") == {"t": (0, 1, 2, 3)}


def test_a_silent_member_is_removed_when_its_session_is_over() -> None:
    world = settled("m", "n")
    world.advance(SESSION_MS - INTERVAL_MS)
    world.live("m")
    world.advance(SESSION_MS - 1)
    assert list(world.group().members) == ["m"]
    world.live("m")
    assert world.has("m") == {"t": (0, 1, 2, 3)}
    assert [event.cause for event in world.events if isinstance(event, MemberGone)] == [
        "session of member n expired after 45.0 s"
    ]


def test_a_member_that_leaves_frees_its_partitions_at_once() -> None:
    world = settled("m", "n")
    before = len(world.log)
    answer = world.beat("n", -1)
    assert (answer.member_epoch, answer.heartbeat_interval_ms, answer.assignment) == (-1, 0, None)
    assert world.written(before) == [(8, "n", True), (7, "n", True), (5, "n", True), (3, "", False)]
    assert world.live("m") == world.group().epoch == 4


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"member": " "}, 42, "MemberId can't be empty."),
        ({"group": " "}, 42, "GroupId can't be empty."),
        ({"instance_id": ""}, 42, "InstanceId can't be empty."),
        ({"rack_id": ""}, 42, "RackId can't be empty."),
        ({"epoch": 0, "owned": ()}, 42, "RebalanceTimeoutMs must be provided in first request."),
        ({"epoch": 0, "rebalance_timeout_ms": 1}, 42, "TopicPartitions must be empty when (re-)joining."),
        (
            {"epoch": 0, "rebalance_timeout_ms": 1, "owned": ()},
            42,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"epoch": -2}, 42, "InstanceId can't be null."),
        ({"epoch": -3}, 42, "MemberEpoch is invalid."),
        (
            {"server_assignor": "x"},
            112,
            "ServerAssignor x is not supported. Supported assignors: uniform, range.",
        ),
        ({"group": "other"}, 69, "Consumer group other not found."),
        ({"group": "other", "epoch": -1}, 69, "Group other not found."),
        ({"member": "x"}, 25, "Member x is not a member of group g."),
        ({"instance_id": "i"}, 25, "Instance id i is unknown."),
        ({"member": "", "epoch": -2, "instance_id": "i", "version": 0}, 25, "Instance id i is unknown."),
        ({"member": "", "epoch": -1, "version": 0}, 42, "MemberId can't be empty."),
        (
            {"epoch": 9},
            110,
            (
                "The consumer group member has a greater member epoch (9) than the one known by the group "
                "coordinator (2). The member must abandon all its partitions and rejoin."
            ),
        ),
    ],
)
def test_what_is_refused_says_why_in_kafkas_words(fields: dict[str, Any], error: int, message: str) -> None:
    world = settled("m")
    before = len(world.log)
    told = {"member": "m", "epoch": 2, **fields}
    answer = world.beat(**told)
    assert (answer.error_code, answer.error_message) == (error, message)
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)
    assert len(world.log) == before
    assert not world.shard.state.knows("other")


def test_a_lost_answer_is_given_again_to_who_still_believes_in_the_epoch_before() -> None:
    world = settled("m")
    world.join("n")
    left = world.told(world.beat("m", 2))["t"]
    assert world.beat("m", 2, left).member_epoch == 3
    assert world.beat("m", 2, left).member_epoch == 3
    assert world.beat("m", 2).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert world.beat("m", 2, [0, 1, 2, 3]).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_in_version_0_the_coordinator_chooses_a_member_id() -> None:
    world = World()
    chosen = world.join("", version=0).member_id
    assert len(chosen) == 22
    assert world.beat(chosen, 2, version=0).error_code == 0


def test_a_subscription_too_large_is_refused() -> None:
    world = World(kohort_member_max_metadata_bytes=5)
    assert world.join("m", "t", "four").error_code == 0
    answer = world.beat("m", 2, subscribed_topic_names=["t", "fives"])
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "A subscription of 6 bytes is too large: 5 are taken.",
    )


def test_the_moves_of_a_very_large_target_are_not_told() -> None:
    world = World({"t": 50_001})
    world.join("m")
    world.compute()
    world.beat("m", 1)
    (done,) = [event for event in world.events if isinstance(event, RebalanceCompleted)]
    assert (done.partitions_moved, done.moves()) == (None, [])


def test_a_full_group_takes_nobody_else() -> None:
    world = settled("m", group_consumer_max_size=1)
    assert world.join("n").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.join("m").error_code == 0


class TestStaticMembers:
    def world(self) -> World:
        world = World()
        assert world.join("m", instance_id="i").member_epoch == 2
        return world

    def test_one_that_is_away_keeps_its_partitions_and_comes_back_under_another_id(self) -> None:
        world = self.world()
        assert world.beat("m", -2, instance_id="i").member_epoch == -2
        assert world.group().members["m"].current.epoch == -2
        answer = world.join("n", instance_id="i")
        assert (answer.member_epoch, world.told(answer)) == (2, {"t": (0, 1, 2, 3)})
        assert list(world.group().members) == ["n"]
        assert world.beat("m", 2, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID

    def test_one_that_is_there_is_not_replaced(self) -> None:
        world = self.world()
        assert world.join("n", instance_id="i").error_code == ErrorCode.UNRELEASED_INSTANCE_ID

    def test_one_that_stays_away_is_removed_when_its_session_is_over(self) -> None:
        world = self.world()
        world.beat("m", -2, instance_id="i")
        world.advance(SESSION_MS)
        assert world.group().is_empty


class TestTopics:
    def test_partitions_that_are_added_are_assigned(self) -> None:
        world = settled("m")
        world.change_topics(t=6)
        assert (world.live("m"), world.has("m")) == (3, {"t": (0, 1, 2, 3, 4, 5)})

    def test_topics_that_come_later_are_assigned(self) -> None:
        world = World()
        world.join("m", "t", "later")
        world.change_topics(later=2)
        world.advance(INTERVAL_MS)
        world.live("m")
        assert world.has("m") == {"t": (0, 1, 2, 3), "later": (0, 1)}

    def test_a_topic_that_goes_is_taken_away(self) -> None:
        world = World({"t": 2, "u": 2})
        world.join("m", "t", "u")
        world.advance(INTERVAL_MS)
        world.change_topics(u=None)
        world.live("m")
        assert world.has("m") == {"t": (0, 1)}

    def test_a_change_of_topics_that_nobody_reads_is_no_new_epoch(self) -> None:
        world = settled("m")
        world.change_topics(other=3)
        assert world.live("m") == 2

    def test_a_member_that_changes_its_subscription_loses_the_rest_at_once(self) -> None:
        world = World({"t": 2, "u": 2})
        world.join("m", "t", "u")
        answer = world.beat("m", 2, subscribed_topic_names=["t"])
        assert (answer.member_epoch, world.told(answer)) == (2, {"t": (0, 1)})


def test_a_group_has_its_own_timeouts_at_once() -> None:
    world = settled("m")
    world.configs["g"] = {"consumer.heartbeat.interval.ms": 7_000, "consumer.session.timeout.ms": 50_000}
    assert world.beat("m", 2).heartbeat_interval_ms == 7_000
    world.advance(49_999)
    assert not world.group().is_empty
    world.advance(1)
    assert world.group().is_empty


def test_every_epoch_ends_in_one_event_that_tells_its_causes_and_moves() -> None:
    world = settled("m", "n")
    done = [event for event in world.events if isinstance(event, RebalanceCompleted)]
    assert [(event.generation, event.cause, event.members) for event in done] == [
        (2, "member m joined", 1),
        (3, "member n joined", 2),
    ]
    assert [(move.partition, move.from_owner, move.to_owner) for move in done[1].moves()] == [
        (number, "m", "n") for number in world.has("n")["t"]
    ]


def test_a_write_that_the_log_refuses_is_as_if_it_had_not_been_asked_for() -> None:
    world = settled("m")
    world.failing = True
    assert world.join("n").error_code == ErrorCode.NOT_COORDINATOR
    world.failing = False
    assert list(world.group().members) == ["m"]
    assert world.beat("m", 2).error_code == 0
    world.advance(SESSION_MS)
    assert world.group().is_empty


def test_topics_are_looked_up_when_others_are_read_or_they_have_changed_and_not_for_every_member() -> None:
    world = World({"t": 4, "u": 2})
    asked: list[str] = []

    def count_of(name: str) -> int | None:
        asked.append(name)
        return world.topics.get(name)

    world.shard.state.topics = replace(world.shard.state.topics, partition_count_of=count_of)
    world.join("a")
    world.join("b")
    assert asked == ["t"]
    world.join("c", "t", "u")
    assert asked == ["t", "u"]
    world.join("d", "u")
    for member in "bd":
        world.beat(member, -1)
    hash_ = world.group().metadata_hash
    world.beat("c", -1)
    assert asked == ["t", "u"]
    assert world.group().metadata_hash != hash_
    world.change_topics(t=5)
    world.advance(INTERVAL_MS)
    world.live("a")
    assert asked[2:] == ["t"]
    assert world.has("a") == {"t": (0, 1, 2, 3, 4)}


def test_a_member_that_joins_looks_up_no_names_of_others() -> None:
    """Names need not exist, and a member may subscribe to tens of thousands."""
    world = World()
    looked_up: list[str] = []

    def id_of(name: str) -> Any:
        looked_up.append(name)
        return world.ids.get(name)

    world.shard.state.topics = replace(world.shard.state.topics, id_of_topic=id_of)
    for number in range(20):
        world.join(f"m{number}", *(f"no-{number}-{each}" for each in range(50)))
        assert len(looked_up) == 50
        looked_up.clear()
    world.join("z", "t", "no-0-0")
    assert looked_up == ["t"]
    world.change_topics(u=1)
    world.live("z")
    assert sorted(looked_up[1:]) == sorted(world.group().subscribed.names)
    world.beat("z", -1)
    assert len(looked_up) == 1 + len(world.group().subscribed.names) + 1


def test_the_hash_of_topics_does_not_depend_on_the_way_to_them() -> None:
    world, other = World({"t": 4, "u": 2, "v": 3}), World({"t": 4, "u": 2, "v": 3})
    world.join("a", "t", "u", "v")
    for member, topic in (("a", "v"), ("b", "t"), ("c", "u"), ("d", "t")):
        other.join(member, topic)
    assert other.group().subscribed_topics() == world.group().subscribed_topics()
    other.beat("d", -1)
    other.beat("a", -1)
    world.join("b", "t", "u")
    world.beat("a", -1)
    assert other.group().subscribed_topics() == world.group().subscribed_topics()
    assert other.group().subscribed.names == {"t": 1, "u": 1}


@pytest.mark.parametrize("version", [1, 0])
def test_a_group_has_room_for_so_many_bytes_of_subscriptions(version: int) -> None:
    world = World(kohort_group_max_metadata_bytes=10)
    world.join("m" * version, "t" * 6, version=version)
    assert world.join("n" * version, "u" * 5, version=version).error_code == ErrorCode.INVALID_REQUEST
    assert world.join("o" * version, "u" * 4, version=version).error_code == 0
    assert world.group().metadata_bytes == 10
    first = next(iter(world.group().members))
    epoch = world.live(first)
    longer, shorter = (
        world.beat(first, epoch, subscribed_topic_names=["t" * size]).error_code for size in (7, 5)
    )
    assert (longer, shorter) == (ErrorCode.INVALID_REQUEST, 0)
    world.beat(first, -1)
    assert world.group().metadata_bytes == 4


def test_classic_members_take_room_for_subscriptions_too() -> None:
    world = World(kohort_group_max_metadata_bytes=30)
    world.join("m")
    assert Classic(world).join().error_code == 0
    taken = world.group().metadata_bytes
    assert taken == 1 + len("t") + len(encode_subscription(Subscription(("t",)), version=1))
    assert Classic(world).join().error_code == ErrorCode.INVALID_REQUEST
    assert world.group().metadata_bytes == taken


def test_a_group_without_members_is_deleted_with_kafkas_tombstones() -> None:
    world = settled("m")
    refused = world.ask(ApiKey.DELETE_GROUPS, 2, GroupRequest("g"))
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    world.beat("m", -1)
    before = len(world.log)
    assert world.ask(ApiKey.DELETE_GROUPS, 2, GroupRequest("g")).error_code == 0
    assert world.written(before) == [(6, "", True), (4, "", True), (3, "", True)]
    assert not world.shard.state.knows("g")


def test_a_restart_keeps_epochs_handovers_and_members_that_are_away() -> None:
    world = settled("m")
    world.join("s", instance_id="i")
    left = world.told(world.beat("m", 2))["t"]
    world.beat("s", -2, instance_id="i")
    epochs = world.group().epoch, world.group().target_epoch
    world.restart()
    group = world.group()
    assert (group.epoch, group.target_epoch) == epochs
    assert group.members["m"].current.state == 1
    assert group.members["s"].current.epoch == -2
    assert world.beat("m", 2, left).member_epoch == 3
    assert len(world.told(world.join("s2", instance_id="i"))["t"]) == 2


STEP = st.one_of(
    st.tuples(st.just("join"), st.sampled_from("abcd"), st.sets(st.sampled_from("tu"), min_size=1)),
    st.tuples(st.just("beat"), st.sampled_from("abcd"), st.booleans()),
    st.tuples(st.just("leave"), st.sampled_from("abcd")),
    st.tuples(st.just("wait"), st.sampled_from((100, 1_000, 20_000))),
    st.tuples(st.just("topics"), st.integers(1, 8)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("fail")),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(STEP, max_size=30))
def test_over_any_schedule_no_partition_is_twos_epochs_grow_and_all_reach_their_target(
    steps: list[tuple[Any, ...]],
) -> None:
    world = World({"t": 5, "u": 3})
    reading: dict[str, dict[str, tuple[int, ...]]] = {}
    epochs: dict[str, int] = {}
    newest = 0

    def learn(member: str, answer: Any) -> None:
        if answer.error_code:
            reading.pop(member, None)
            epochs.pop(member, None)
            return
        assert answer.member_epoch >= epochs.get(member, 0)
        epochs[member] = answer.member_epoch
        if answer.assignment is not None:
            reading[member] = world.told(answer)

    def check() -> None:
        # who was removed has to notice by its own session
        alive = world.group().members if world.shard.state.knows("g") else {}
        owned = partitions(has for member, has in reading.items() if member in alive)
        assert len(set(owned)) == len(owned), reading

    for step, *what in steps:
        if step == "join":
            learn(what[0], world.join(what[0], *sorted(what[1])))
        elif step == "beat" and what[0] in epochs:
            learn(
                what[0], world.beat(what[0], epochs[what[0]], reading.get(what[0], {}) if what[1] else None)
            )
        elif step == "leave" and what[0] in epochs:
            world.beat(what[0], -1)
            del epochs[what[0]]
            reading.pop(what[0], None)
        elif step == "wait":
            world.advance(what[0])
        elif step == "topics":
            world.change_topics(t=max(what[0], world.topics["t"]))
        elif step == "restart":
            world.restart()
        elif step == "fail":
            world.failing = True
            learn("d", world.join("d"))
            world.failing = False
        if world.shard.state.knows("g"):
            assert world.group().epoch >= newest
            newest = world.group().epoch
        check()
    world.advance(INTERVAL_MS)
    for _ in range(6):
        for member in list(epochs):
            learn(member, world.beat(member, epochs[member], reading.get(member, {})))
            check()
    if epochs:
        group = world.group()
        gone = set(group.members) - set(epochs)
        if not gone:
            assert group.state_name == "Stable"
            for member in epochs:
                target = {t: tuple(n) for t, n in group.targets.get(member, {}).items() if n}
                current = group.members[member].current
                assert {t: tuple(sorted(n)) for t, n in current.assigned.items() if n} == target


def test_a_member_that_joins_anew_under_another_instance_id_lets_go_of_the_first() -> None:
    world = World()
    for number in range(3):
        assert world.join("m", instance_id=f"i{number}").error_code == 0
    assert world.group().static_members == {"i2": "m"}
    assert world.join("n", instance_id="i0").error_code == 0


def _says_its_rack(world: World) -> tuple[str, int]:
    world.held = []
    assert world.beat("m", 2, rack_id="r") is None
    return "m", 2


def _waits_for_what_is_free_now(world: World) -> tuple[str, int]:
    world.join("n")
    world.advance(INTERVAL_MS)
    world.beat("m", 2)
    world.beat("n", 2)
    assert world.beat("m", 2, [0, 1]).member_epoch == 3
    return "n", 3


def _another_joined(world: World) -> tuple[str, int]:
    world.group().target_ms = world.now_ms
    world.join("n")
    world.advance(INTERVAL_MS)
    return "m", 2


def _topics_have_changed(world: World) -> tuple[str, int]:
    world.change_topics(t=5)
    world.advance(INTERVAL_MS)
    return "m", 2


def _its_assignor_has_failed(world: World) -> tuple[str, int]:
    world.group().failure = Failure(2, "range", world.now_ms, "why")
    return "m", 2


def _has_an_expression(world: World) -> tuple[str, int]:
    world.join("n", subscribed_topic_regex="u.*")
    world.advance(INTERVAL_MS)
    for member in "mnmn":
        world.live(member)
    world.advance(12_000)
    return "m", world.group().members["m"].current.epoch


def _was(**metadata: Any) -> Callable[[World], tuple[str, int]]:
    def change(world: World) -> tuple[str, int]:
        member = world.group().members["m"]
        member.metadata = member.metadata._replace(**metadata)
        return "m", 2

    return change


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        (lambda _world: ("m", 2), {}),
        (lambda _world: ("m", 1), {}),
        (lambda _world: ("m", 2), {"instance_id": "i"}),
        (lambda _world: ("nobody", 2), {}),
        (_says_its_rack, {}),
        (_waits_for_what_is_free_now, {}),
        (_another_joined, {}),
        (_topics_have_changed, {}),
        (_its_assignor_has_failed, {}),
        (_has_an_expression, {}),
        (_was(client_id="other"), {}),
        (_was(client_host="/other"), {}),
        (_was(classic=ClassicMetadata(10_000, ())), {}),
    ],
)
def test_a_heartbeat_that_says_nothing_is_answered_as_every_other(
    change: Callable[[World], tuple[str, int]], fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a shorter way for it, which has to lead to the same."""
    told: list[Any] = []
    for _ in range(2):
        world = settled("m", topics={"t": 4, "u": 1}, group_consumer_regex_refresh_interval_ms=11_000)
        member, epoch = change(world)
        world.now_ms += 5
        timers = world.shard.timers
        answer = world.beat(member, epoch, **fields)
        told.append((answer, world.log, timers.next_deadline(), timers.deadline((SESSION, "g", member))))
        monkeypatch.setattr(heartbeat, "_goes_on", lambda *_: False)
    assert told[0] == told[1]


def test_after_a_restart_a_member_that_was_to_give_up_partitions_has_its_time_for_it_once_more() -> None:
    world = settled("m")
    world.join("n")
    world.advance(INTERVAL_MS)
    assert world.told(world.beat("m", 2)) == {"t": (0, 1)}
    world.restart()
    world.advance(REBALANCE_MS - 1)
    assert not world.beat("m", 2).error_code
    world.advance(1)
    assert list(world.group().members) == ["n"]


def test_an_older_epoch_may_commit_what_the_member_has_had_since_then() -> None:
    world = settled("m", "n")
    m, n = (world.group().members[name].current for name in "mn")
    (mine,), (others,) = m.assigned.values(), n.assigned.values()
    assert (m.epoch, n.epoch, set(mine.values()), set(others.values())) == (3, 3, {2}, {3})

    def commit(member: str, epoch: int, number: int) -> ErrorCode:
        topic = SimpleNamespace(name="t", partitions=[SimpleNamespace(partition_index=number)])
        return world.group().check_commit(member, None, epoch, 9, [topic])

    first, other = min(mine), min(others)
    assert commit("m", 3, other) == commit("m", 2, first) == ErrorCode.NONE
    wrong = [commit("m", 1, first), commit("m", 2, other), commit("n", 2, other), commit("m", 4, first)]
    assert wrong == [ErrorCode.STALE_MEMBER_EPOCH] * 4
