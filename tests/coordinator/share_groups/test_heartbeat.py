"""Members of share groups: the checks of a heartbeat in Kafka's order, epochs, assignments, sessions.

Covers: coordinator/share_groups/changes.py, coordinator/share_groups/group.py.
Covers: coordinator/share_groups/shard_state.py, coordinator/share_groups/__init__.py.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kohort.coordinator.groups.events import (
    JoinRefused,
    MemberFenced,
    MemberGone,
    MemberJoined,
    Move,
    RebalanceCompleted,
    RebalanceStarted,
)
from kohort.coordinator.share_groups.heartbeat import refused_heartbeat
from kohort.coordinator.share_groups.kept import subscribed_bytes
from kohort.offsets_topic import GroupStored, ShareEpoch, ShareRecordType
from kohort.protocol import ApiKey, CauseKind, ErrorCode
from tests.coordinator.consumer_groups.group_world import Classic
from tests.coordinator.share_groups.share_world import ShareWorld
from tests.messages import request_of

E = ErrorCode
_FENCED = "The share group member has a {} member epoch ({}) than the one known by the group coordinator (3)"
_GONE = "The member must abandon all its partitions and rejoin."


def beat(**fields: Any) -> Any:
    """A body that would be accepted as a first heartbeat, but for these fields."""
    known = {"group_id": "g", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
    return request_of(ApiKey.SHARE_GROUP_HEARTBEAT)(**{**known, "rack_id": None, **fields})


#: Each has what is wrong in the rows below it, too: the first check decides.
CHECKS: tuple[tuple[dict[str, Any], str | None], ...] = (
    ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ({"member_epoch": 0, "subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
    ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
    ({"rack_id": ""}, "RackId can't be empty."),
    ({"group_id": " "}, "GroupId can't be empty."),
    ({"group_id": ""}, "GroupId can't be empty."),
    ({"member_id": " "}, "MemberId can't be empty."),
    ({"member_id": ""}, None),
)


@pytest.mark.parametrize("until", range(1, len(CHECKS) + 1))
def test_the_checks_of_a_request_come_in_kafkas_order(until: int) -> None:
    world = ShareWorld()
    fields: dict[str, Any] = {}
    for wrong, _ in CHECKS[:until]:
        fields |= wrong
    answer = world.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, beat(**fields))
    assert (answer.error_code, answer.error_message) == (E.INVALID_REQUEST, CHECKS[until - 1][1])
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (None, 0, 0)
    assert answer.assignment is None
    assert world.log == []
    assert not world.shard.state.knows("g")


def test_a_rack_and_a_member_id_are_taken_as_sent() -> None:
    world = ShareWorld()
    answer = world.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, beat(rack_id=" r", member_id=" m\n"))
    assert answer.member_id == " m\n"
    assert world.share_group().members[" m\n"].metadata.rack_id == " r"


@pytest.mark.parametrize(("epoch", "text"), [(1, "Share group g not found."), (-1, "Group g not found.")])
def test_only_the_first_heartbeat_makes_a_group(epoch: int, text: str) -> None:
    world = ShareWorld()
    answer = world.share_beat("m", epoch)
    assert (answer.error_code, answer.error_message) == (E.GROUP_ID_NOT_FOUND, text)
    assert not world.shard.state.knows("g")


@pytest.mark.parametrize("epoch", [0, 1, -1])
@pytest.mark.parametrize("type_", ["classic", "consumer", "offsets"])
def test_a_group_of_another_type_is_no_share_group(type_: str, epoch: int) -> None:
    world = ShareWorld()
    if type_ == "classic":
        world.shard.apply((GroupStored("g", "consumer", 1, None, None, 0),), 0)
    elif type_ == "consumer":
        world.join("c")
    else:
        world.commit_long_ago("t")
    answer = world.share_beat("m", epoch, "t")
    assert (answer.error_code, answer.error_message) == (
        E.GROUP_ID_NOT_FOUND,
        "Group g is not a share group.",
    )


def test_a_full_group_is_said_before_the_member_is_looked_up() -> None:
    world = ShareWorld(group_share_max_size=2)
    world.share_join("a")
    world.share_join("b")
    for epoch in (0, 7):
        answer = world.share_beat("c", epoch, "t")
        assert (answer.error_code, answer.error_message) == (
            E.GROUP_MAX_SIZE_REACHED,
            "The share group has reached its maximum capacity of 2 members.",
        )
    assert world.share_beat("a", 0, "t").error_code == E.NONE


@pytest.mark.parametrize("epoch", [1, 7, -1])
def test_a_member_that_is_not_known_is_refused(epoch: int) -> None:
    world = ShareWorld()
    world.share_join("a")
    answer = world.share_beat("m", epoch)
    assert (answer.error_code, answer.error_message) == (
        E.UNKNOWN_MEMBER_ID,
        "Member m is not a member of group g.",
    )


def test_an_epoch_is_the_members_or_its_last_one() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.now_ms += 1_000
    assert world.share_beat("a", 2).member_epoch == 3
    assert world.share_beat("a", 2).member_epoch == 3
    answer = world.share_beat("a", 1)
    assert (answer.error_code, answer.error_message) == (
        E.FENCED_MEMBER_EPOCH,
        f"{_FENCED.format('smaller', 1)}, and it does not match the previous member epoch (2). {_GONE}",
    )
    answer = world.share_beat("a", 4)
    assert (answer.error_code, answer.error_message) == (
        E.FENCED_MEMBER_EPOCH,
        f"{_FENCED.format('greater', 4)}. {_GONE}",
    )


def test_the_first_join_the_next_heartbeat_and_a_leave_write_kafkas_records_in_its_order() -> None:
    world = ShareWorld({"t": 2, "u": 1})
    answer = world.share_beat("a", 0, "t")
    assert (answer.member_epoch, world.share_told(answer)) == (2, {})
    first = [(10, "a"), (11, ""), (13, "a"), (12, ""), (14, "a"), (15, "")]
    assert world.share_records() == [(kind, member, False) for kind, member in first]
    at = len(world.log)
    command = world.finish()
    assert (command.group_id, command.state_epoch) == ("g", 2)
    assert command.topics == {world.ids["t"]: {0: -1, 1: -1}}
    assert world.share_records(at) == [(15, "", False)]
    world.now_ms += 1_000
    at = len(world.log)
    answer = world.share_beat("a", 2)
    assert (answer.member_epoch, world.share_told(answer)) == (3, {"t": (0, 1)})
    assert world.share_records(at) == [(11, "", False), (13, "a", False), (12, "", False), (14, "a", False)]
    world.now_ms += 1_000
    at = len(world.log)
    answer = world.share_beat("b", 0, "t")
    later = [(10, "b"), (11, ""), (13, "a"), (13, "b"), (12, ""), (14, "b")]
    assert world.share_records(at) == [(kind, member, False) for kind, member in later]
    at = len(world.log)
    assert world.share_beat("b", 4).assignment is None
    assert world.log[at:] == []
    answer = world.share_beat("b", -1)
    assert answer[1:] == (0, None, "b", -1, 0, None)
    assert world.share_records(at) == [(14, "b", True), (13, "b", True), (10, "b", True), (11, "", False)]


def test_a_newcomer_has_its_share_at_once_and_the_others_lose_it_with_their_next_heartbeat() -> None:
    world = ShareWorld({"t": 2})
    world.share_join("a")
    world.now_ms += 1_000
    world.share_beat("a", 2)
    world.now_ms += 1_000
    answer = world.share_beat("b", 0, "t")
    (new,) = world.share_told(answer)["t"]
    assert world.share_has("a") == {"t": (0, 1)}
    answer = world.share_beat("a", 3)
    assert (answer.member_epoch, world.share_told(answer)) == (4, {"t": (1 - new,)})


def test_a_change_before_the_interval_is_over_waits_for_the_first_heartbeat_after_it() -> None:
    world = ShareWorld({"t": 2})
    world.share_join("a")
    world.now_ms += 1_000
    assert world.share_beat("a", 2).member_epoch == 3
    answer = world.share_beat("b", 0, "t")
    assert (answer.member_epoch, world.share_told(answer)) == (3, {})
    assert (world.share_group().epoch, world.share_group().state_name) == (4, "Stable")
    world.now_ms += 999
    assert world.share_beat("b", 3).assignment is None
    world.now_ms += 1
    assert world.share_beat("b", 3).member_epoch == 4


def test_the_interval_is_the_groups_own() -> None:
    world = ShareWorld()
    world.configs["g"] = {"share.assignment.interval.ms": 0}
    world.share_join("a")
    assert world.share_beat("b", 0, "t").member_epoch == 4


def test_the_epoch_goes_up_for_another_set_of_names_but_not_for_order_doubles_and_racks() -> None:
    world = ShareWorld({"t": 1, "u": 1})
    world.share_join("a", "t", "u")
    world.now_ms += 1_000
    world.share_beat("a", 2)
    for names in (("u", "t"), ("t", "u", "t")):
        assert world.share_beat("a", 3, *names).member_epoch == 3
    assert world.share_beat("a", 3, rack="r").member_epoch == 3
    assert world.share_group().members["a"].metadata.rack_id == "r"
    world.now_ms += 1_000
    answer = world.share_beat("a", 3, "u")
    assert (answer.member_epoch, world.share_told(answer)) == (4, {"u": (0,)})
    assert world.share_group().members["a"].metadata.rack_id == "r"


def test_a_member_does_not_keep_what_it_reads_no_more_while_the_target_waits() -> None:
    world = ShareWorld({"t": 1, "u": 1})
    world.share_join("a", "t", "u")
    world.now_ms += 1_000
    world.share_beat("a", 2)
    answer = world.share_beat("a", 3, "u")
    assert (answer.member_epoch, world.share_told(answer)) == (3, {"u": (0,)})


@pytest.mark.parametrize(("epoch", "names", "told"), [(3, (), False), (3, ("t",), True), (0, ("t",), True)])
def test_the_assignment_is_told_if_names_are_sent_and_with_epoch_0(
    epoch: int, names: tuple[str, ...], told: bool
) -> None:
    world = ShareWorld()
    world.share_join("a")
    world.now_ms += 1_000
    assert world.share_beat("a", 2).member_epoch == 3
    answer = world.share_beat("a", epoch, *names)
    assert (answer.member_epoch, answer.assignment is not None) == (3, told)


def test_topics_created_grown_and_deleted_are_seen_with_the_next_heartbeat() -> None:
    world = ShareWorld({"t": 1})
    world.configs["g"] = {"share.assignment.interval.ms": 0}
    world.share_join("a", "t", "later")
    assert world.share_has("a") == {"t": (0,)}
    world.change_topics(later=1)
    assert world.share_beat("a", 3).member_epoch == 4
    world.finish()
    assert world.share_told(world.share_beat("a", 4)) == {"later": (0,), "t": (0,)}
    world.change_topics(t=3)
    assert world.share_beat("a", 5).assignment is None
    assert world.finish().topics == {world.ids["t"]: {1: -1, 2: -1}}
    assert world.share_told(world.share_beat("a", 6)) == {"later": (0,), "t": (0, 1, 2)}
    world.change_topics(t=None)
    answer = world.share_beat("a", 7)
    assert (answer.member_epoch, world.share_told(answer)) == (8, {"later": (0,)})


def test_a_silent_member_is_removed_and_a_live_one_is_not() -> None:
    world = ShareWorld()
    world.configs["g"] = {"share.session.timeout.ms": 50_000, "share.heartbeat.interval.ms": 7_000}
    assert world.share_join("a").heartbeat_interval_ms == 7_000
    world.share_join("b")
    world.advance(49_999)
    world.share_beat("b", world.share_group().members["b"].current.epoch)
    epoch = world.share_group().epoch
    world.advance(1)
    assert list(world.share_group().members) == ["b"]
    assert world.share_group().epoch == epoch + 1
    (gone,) = [event for event in world.events if isinstance(event, MemberGone)]
    assert (gone.member, gone.cause_kind) == ("a", CauseKind.SESSION_EXPIRED)
    assert gone.cause == "session of member a expired after 50.0 s"


def test_an_emptied_group_goes_on_from_its_epoch() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.share_beat("a", -1)
    group = world.share_group()
    assert (group.state_name, group.epoch, group.metadata_hash) == ("Empty", 4, 0)
    world.now_ms += 1_000
    assert world.share_beat("b", 0, "t").member_epoch == 5


def test_a_group_is_the_same_after_a_restart() -> None:
    world = ShareWorld({"t": 3})
    world.share_join("a")
    world.now_ms += 1_000
    world.share_beat("b", 0, "t")
    before = world.share_group()
    world.restart()
    after = world.share_group()
    assert after is not before
    for name in ("epoch", "metadata_hash", "target_epoch", "target_ms", "targets", "kept"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.subscribed.names == before.subscribed.names
    assert {m.member_id: (m.metadata, m.current) for m in after.members.values()} == {
        m.member_id: (m.metadata, m.current) for m in before.members.values()
    }
    # each member has a whole session
    world.advance(44_999)
    assert len(world.share_group().members) == 2
    world.advance(1)
    assert world.share_group().is_empty


def test_what_was_initialized_before_a_restart_is_assigned_after_it() -> None:
    world = ShareWorld()
    world.share_beat("a", 0, "t")
    world.finish()
    world.restart()
    world.now_ms += 1_000
    assert world.share_beat("a", 2).member_epoch == 3


def test_a_refused_write_undoes_what_built_on_it() -> None:
    world = ShareWorld({"t": 2})
    world.share_join("a")
    world.now_ms += 1_000
    world.share_beat("a", 2)
    world.failing = True
    answer = world.share_beat("b", 0, "t")
    assert answer.error_code == E.NOT_COORDINATOR
    assert list(world.share_group().members) == ["a"]
    assert world.share_group().epoch == 3
    world.failing = False
    world.now_ms += 1_000
    assert world.share_beat("b", 0, "t").member_epoch == 4
    # sessions run on
    world.advance(45_000)
    assert world.share_group().is_empty


def test_a_group_whose_first_write_is_refused_does_not_exist() -> None:
    world = ShareWorld()
    world.failing = True
    assert world.share_beat("a", 0, "t").error_code == E.NOT_COORDINATOR
    assert world.commands == []
    assert world.shard.state.find("g") is None


def test_answers_come_when_what_they_say_is_written() -> None:
    world = ShareWorld()
    world.held = []
    assert world.share_beat("a", 0, "t") is None
    assert world.commands == []
    world.release()
    assert len(world.commands) == 1


def test_other_apis_find_no_group_of_theirs() -> None:
    world = ShareWorld()
    world.share_join("a")
    group = world.share_group()
    assert group.check_commit("a", None, 3, 9, []) == E.GROUP_ID_NOT_FOUND
    assert group.check_offset_delete() == E.GROUP_ID_NOT_FOUND
    assert group.check_fetch("a", 3) == E.NONE
    assert not group.is_idle
    assert Classic(world).join().error_code == E.INCONSISTENT_GROUP_PROTOCOL
    answer = world.join("c")
    assert (answer.error_code, answer.error_message) == (
        E.GROUP_ID_NOT_FOUND,
        "Group g is not a consumer group.",
    )


def test_it_outlives_every_retention() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.share_beat("a", -1)
    world.now_ms += 10**10
    world.after_retention()
    assert world.share_group().state_name == "Empty"


def test_what_happens_is_told() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.now_ms += 1_000
    world.share_beat("a", 2)
    world.share_beat("a", -1)
    told = [(type(event), event.generation) for event in world.events]
    assert told == [
        (MemberJoined, 1),
        (RebalanceStarted, 2),
        (RebalanceCompleted, 2),
        (RebalanceStarted, 3),
        (RebalanceCompleted, 3),
        (MemberGone, 3),
        (RebalanceStarted, 4),
        (RebalanceCompleted, 4),
    ]
    assert (world.events[-1].members, world.events[-1].members_before) == (0, 1)
    assert (world.events[4].protocol_type, world.events[4].protocol) == ("share", "simple")
    assert world.events[4].duration_ms == 1_000
    first, given = world.events[2], world.events[4]
    assert (first.joined(), first.partitions_moved) == (["a"], 0)
    assert (given.partitions_moved, given.partitions_total) == (4, 4)
    assert given.moves() == [Move("t", number, None, "a") for number in range(4)]
    assert world.events[-1].left() == ["a"]


def test_refusals_are_told_with_their_reasons() -> None:
    world = ShareWorld()
    world.share_join("a")
    world.share_beat("a", 9)
    world.share_beat("", 0, "t")
    world.share_beat("m", 0)
    fenced, empty, refused = [
        event for event in world.events if isinstance(event, (MemberFenced, JoinRefused))
    ]
    assert (type(fenced), fenced.error_code, fenced.member) == (MemberFenced, E.FENCED_MEMBER_EPOCH, "a")
    assert (type(empty), empty.cause) == (JoinRefused, "MemberId can't be empty.")
    assert refused.cause == "SubscribedTopicNames must be set in first request."


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"kohort_member_max_metadata_bytes": 9}, "A subscription of 10 bytes is too large: 9 are taken."),
        (
            {"kohort_group_max_metadata_bytes": 10},
            "The subscriptions of the group's members would have more than 10 bytes.",
        ),
    ],
)
def test_subscriptions_are_bounded(settings: dict[str, int], text: str) -> None:
    world = ShareWorld({"t": 1}, **settings)
    world.share_join("a")
    answer = world.share_beat("b", 0, "u" * 10)
    assert (answer.error_code, answer.error_message) == (E.INVALID_REQUEST, text)
    assert list(world.share_group().members) == ["a"]


def test_a_group_reads_no_more_partitions_than_one_write_holds() -> None:
    world = ShareWorld({"t": 1, "u": 60_000, "v": 23_000})
    world.share_join("a", "t", "u")
    answer = world.share_beat("b", 0, "v")
    assert answer.error_code == E.INVALID_REQUEST
    assert answer.error_message == (
        "The topics of the group's members have 83001 partitions and take 332079 bytes: 330000 are taken."
    )
    assert not world.share_beat("b", 0, "u").error_code
    assert not world.share_beat("b", 0, "t").error_code
    # in place of what only this member reads
    assert not world.share_beat("a", 0, "t", "v").error_code


@pytest.mark.parametrize("seed", range(20))
def test_what_a_group_knows_of_its_topics_is_what_looking_all_of_them_up_gives(seed: int) -> None:
    rng, world = Random(seed), ShareWorld({f"t{number}": 1 for number in range(8)})
    for _ in range(30):
        if rng.random() < 0.3:
            world.change_topics(**{f"t{rng.randrange(8)}": rng.randint(1, 5)})
        member = f"m{rng.randrange(3)}"
        if rng.random() < 0.3:
            world.share_beat(member, -1)
        else:
            world.share_beat(member, 0, *rng.sample(("absent", *world.ids), rng.randint(1, 4)))
        if world.shard.state.find("g") is None:
            continue
        group = world.share_group()
        found = dict(group.subscribed_topics())
        known = found, group.hash_topics(), subscribed_bytes(group)
        assert found.keys() == {name for name in group.subscribed.names if name in world.ids}
        assert all(found[name].partition_count == world.topics[name] for name in found)
        group.subscribed.let_go()
        assert (group.subscribed_topics(), group.hash_topics(), subscribed_bytes(group)) == known


def test_a_refusal_is_the_error_alone() -> None:
    assert refused_heartbeat(None, 14)[1:] == (14, None, None, 0, 0, None)  # type: ignore[arg-type]


def test_a_record_of_a_member_that_is_gone_changes_nothing() -> None:
    world = ShareWorld()
    world.share_join("a")
    group = world.share_group()
    for kind in (ShareRecordType.MEMBER, ShareRecordType.TARGET, ShareRecordType.CURRENT):
        group.apply(kind, "nobody", None)
    assert list(group.members) == ["a"]
    assert group.epoch == ShareEpoch(group.epoch).epoch == 3
