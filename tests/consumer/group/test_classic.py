"""A member joins, takes part in rebalances, and leaves.

Covers: consumer/group/effects.py, consumer/group/heartbeat.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kohort.assignors import CooperativeStickyAssignor, Member, RangeAssignor, RebalanceProtocol, TopicInfo
from kohort.consumer.events import AssignmentRefused, RebalanceCompleted
from kohort.consumer.group.assignment import ANOTHER_ROUND, LISTENING, LedGroup, assign_group, note_of
from kohort.consumer.group.classic import GIVE_UP_AFTER_MS, NEXT_ROUND_MS
from kohort.consumer.group.effects import Assign, NeedTopics, Revoke, Send
from kohort.protocol import (
    ApiKey,
    ErrorCode,
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kohort.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kohort.statemachine import MemberState
from tests.consumer.configs import config
from tests.consumer.talk import ORDERS, P0, P1, P2, SETTINGS, Talk, stable, subscription_in


def test_a_new_member_takes_the_id_it_is_given_and_joins_with_it() -> None:
    talk = Talk()
    first = talk.sent(ApiKey.JOIN_GROUP)
    assert (first.body.group_id, first.body.member_id, first.timeout_ms) == ("billing", "", 65_000)
    talk.answer(first, error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m1")
    second = talk.sent(ApiKey.JOIN_GROUP).body
    assert (second.member_id, second.reason) == ("m1", first.body.reason)


def test_the_leader_learns_the_topics_assigns_and_syncs_for_all() -> None:
    talk = Talk(RangeAssignor())
    other = encode_subscription(Subscription(("orders",)))
    join = talk.sent(ApiKey.JOIN_GROUP)
    talk.joined(join, members=[("m1", join.body.protocols[0].metadata), ("m2", other)])
    assert talk.next(NeedTopics).names == {"orders"}
    talk.topics(ORDERS)
    sync = talk.sent(ApiKey.SYNC_GROUP)
    shares = {row.member_id: decode_assignment(row.assignment).partitions for row in sync.body.assignments}
    assert shares == {"m1": (P0, P1), "m2": (P2,)}
    assert (sync.body.protocol_type, sync.body.protocol_name) == ("consumer", "range")
    talk.synced(sync, P0, P1)
    assert talk.next(Assign) == Assign(1, (P0, P1), ())
    assert talk.membership.is_leader


def test_a_follower_syncs_with_nothing_and_adopts_what_it_is_given() -> None:
    talk = Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    sync = talk.sent(ApiKey.SYNC_GROUP)
    assert sync.body.assignments == []
    talk.synced(sync, P1)
    assert talk.next(Assign) == Assign(1, (P1,), ())
    assert talk.membership.owned == {P1}
    (completed,) = [event for event in talk.events if isinstance(event, RebalanceCompleted)]
    assert (completed.leader, completed.assignment) == (False, (P1,))


def test_a_member_that_is_given_zero_bytes_has_nothing() -> None:
    talk = Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    talk.answer(talk.sent(ApiKey.SYNC_GROUP), assignment=b"")
    assert talk.next(Assign).added == ()


def test_a_leader_that_is_to_skip_the_assignment_syncs_without_and_goes_on_watching_topics() -> None:
    talk = Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), skip_assignment=True)
    sync = talk.sent(ApiKey.SYNC_GROUP)
    # at once: what changes before it has looked it would take for old
    assert talk.next(NeedTopics).names == {"orders"}
    describe = talk.sent(ApiKey.DESCRIBE_GROUPS)
    talk.synced(sync, P0)
    talk.next(Assign)
    tell_who_has(talk, describe, [P0], [P1, P2])
    talk.topics(ORDERS)
    assert talk.quiet()
    talk.topics({"orders": TopicInfo(4)})
    talk.sent(ApiKey.JOIN_GROUP)


def led_by_another() -> tuple[Talk, Send]:
    """A leader that keeps the assignment of another one, and its question who has what."""
    talk = Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), skip_assignment=True)
    sync = talk.sent(ApiKey.SYNC_GROUP)
    talk.next(NeedTopics)
    describe = talk.sent(ApiKey.DESCRIBE_GROUPS)
    talk.synced(sync, P0)
    talk.next(Assign)
    return talk, describe


def tell_who_has(
    talk: Talk, describe: Send, *shares: Sequence[TopicPartition], state: str = "Stable", error: int = 0
) -> None:
    """Answer a DescribeGroups."""
    members = [DescribedGroupMember(member_assignment=encode_assignment(share)) for share in shares]
    row = DescribedGroup(error_code=error, group_state=state, members=members)
    talk.membership.on_answer(describe, DescribeGroupsResponse(groups=[row]), talk.now)
    talk.take()


@pytest.mark.parametrize("topics_first", [True, False])
def test_a_leader_that_is_to_skip_it_asks_for_a_rebalance_where_nobody_has_a_partition(
    topics_first: bool,
) -> None:
    talk, describe = led_by_another()
    if topics_first:
        talk.topics(ORDERS)
    tell_who_has(talk, describe, [P0], [P2])
    if not topics_first:
        talk.topics(ORDERS)
    assert talk.sent(ApiKey.JOIN_GROUP).body.reason == "nobody has partition 1 of topic orders"


@pytest.mark.parametrize("code", [None, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_it_asks_again_who_has_what_with_the_next_heartbeat(code: ErrorCode | None) -> None:
    """A topic that grew while no leader was there would keep partitions that nobody has."""
    talk, describe = led_by_another()
    talk.topics(ORDERS)
    if code is None:
        talk.fail(describe)
    else:
        tell_who_has(talk, describe, error=code)
    assert talk.quiet()
    talk.advance_to_deadline()
    talk.answer(talk.sent(ApiKey.HEARTBEAT))
    tell_who_has(talk, talk.sent(ApiKey.DESCRIBE_GROUPS), [P0], [P2])
    assert talk.sent(ApiKey.JOIN_GROUP).body.reason == "nobody has partition 1 of topic orders"


@pytest.mark.parametrize(("state", "error"), [("PreparingRebalance", 0), ("Dead", 30)])
def test_it_asks_for_none_where_it_is_not_told_who_has_what(state: str, error: int) -> None:
    talk, describe = led_by_another()
    tell_who_has(talk, describe, [P0], state=state, error=error)
    talk.fail(describe)
    talk.topics(ORDERS)
    assert talk.quiet()


def test_an_eager_member_gives_up_everything_before_it_joins() -> None:
    talk = stable(P0, P1, assignors=[RangeAssignor()])
    talk.told_to_rejoin()
    assert talk.next(Revoke) == Revoke((P0, P1), lost=False, reason="the group is rebalancing")
    assert talk.quiet()
    talk.released()
    join = talk.sent(ApiKey.JOIN_GROUP)
    assert subscription_in(join).owned == ()
    talk.joined(join, generation=2, leader="other")
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P1)
    assert talk.next(Assign) == Assign(2, (P1,), ())
    assert talk.quiet()


def test_a_cooperative_member_keeps_what_it_has_and_joins_twice_when_something_moves() -> None:
    talk = stable(P0, P1)
    talk.told_to_rejoin()
    join = talk.sent(ApiKey.JOIN_GROUP)
    assert (subscription_in(join).owned, subscription_in(join).generation) == ((P0, P1), 1)
    talk.joined(join, generation=2, leader="other")
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0)
    assert talk.next(Assign) == Assign(2, (), (P0,))
    assert talk.next(Revoke) == Revoke((P1,), lost=False, reason="moves to another member")
    assert talk.quiet()
    talk.released()
    again = talk.sent(ApiKey.JOIN_GROUP)
    assert (subscription_in(again).owned, subscription_in(again).generation) == ((P0,), 2)
    talk.joined(again, generation=3, leader="other")
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0)
    assert talk.next(Assign) == Assign(3, (), (P0,))
    assert talk.quiet()


def test_a_static_member_begins_anew_where_the_group_had_a_generation_without_it() -> None:
    settings = config(group_instance_id="a", session_timeout_ms=10_000, heartbeat_interval_ms=1_000)
    talk = stable(P0, P1, settings=settings)
    talk.told_to_rejoin()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), generation=3, leader="other")
    # also what it would be given again: another may have read on in it
    lost = talk.next(Revoke)
    assert (lost.partitions, lost.lost) == ((P0, P1), True)
    talk.released()
    talk.advance(1_000)
    again = talk.sent(ApiKey.JOIN_GROUP)
    assert again.body.member_id == "m1"
    assert (subscription_in(again).owned, subscription_in(again).generation) == ((), -1)
    talk.joined(again, generation=4, leader="other")
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0)
    assert talk.next(Assign) == Assign(4, (P0,), ())


def test_a_dynamic_member_whose_answers_were_lost_keeps_what_it_has() -> None:
    talk = stable(P0, P1)
    talk.told_to_rejoin()
    # the group goes on without static members only: it was in generation 2, whose leader knew what it has
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), generation=3, leader="other")
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0, P2)
    assert talk.next(Assign) == Assign(3, (P2,), (P0,))
    assert talk.next(Revoke) == Revoke((P1,), lost=False, reason="moves to another member")


@pytest.mark.parametrize(
    ("members", "interval_ms"), [(1, 200), (66, 200), (300, 900), (2_000, 3_000), (None, 3_000)]
)
def test_heartbeats_come_as_often_as_the_size_of_the_group_allows(
    members: int | None, interval_ms: int
) -> None:
    talk = Talk(settings=config())
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    note = LISTENING if members is None else note_of(LISTENING, members)
    talk.answer(talk.sent(ApiKey.SYNC_GROUP), assignment=encode_assignment([P0], note=note))
    talk.next(Assign)
    for _ in range(2):
        talk.advance(interval_ms - 0.5)
        assert talk.quiet()
        talk.advance(0.5)
        talk.answer(talk.sent(ApiKey.HEARTBEAT))


@pytest.mark.parametrize("known_first", [True, False])
@pytest.mark.parametrize(("partitions", "interval_ms"), [(2, 200), (300, 900), (2_000, 3_000)])
def test_where_the_leader_does_not_say_the_size_a_members_part_of_the_partitions_tells_it(
    partitions: int, interval_ms: int, known_first: bool
) -> None:
    talk = Talk(RangeAssignor(), settings=config())
    if known_first:
        talk.membership.on_topics({"orders": TopicInfo(partitions)}, talk.now)
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0)
    talk.next(Assign)
    if not known_first:
        talk.membership.on_topics({"orders": TopicInfo(partitions)}, talk.now)
    talk.advance(interval_ms - 0.5)
    assert talk.quiet()
    talk.advance(0.5)
    talk.sent(ApiKey.HEARTBEAT)


def test_an_interval_that_is_set_is_kept_whatever_the_size_of_the_group() -> None:
    talk = Talk(settings=config(heartbeat_interval_ms=3_000))
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    note = note_of(LISTENING, 2)
    talk.answer(talk.sent(ApiKey.SYNC_GROUP), assignment=encode_assignment([P0], note=note))
    talk.next(Assign)
    talk.advance(2_999)
    assert talk.quiet()


def test_heartbeats_go_on_while_partitions_are_given_up() -> None:
    talk = stable(P0, assignors=[RangeAssignor()])
    talk.told_to_rejoin()
    talk.next(Revoke)
    for _ in range(3):
        talk.advance(1_000)
        talk.answer(talk.sent(ApiKey.HEARTBEAT), error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    assert talk.quiet()
    talk.released()
    talk.sent(ApiKey.JOIN_GROUP)


def announced(talk: Talk, *partitions: TopicPartition, generation: int = 2) -> None:
    """A round after which the leader has announced another."""
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), generation=generation, leader="other")
    talk.answer(talk.sent(ApiKey.SYNC_GROUP), assignment=encode_assignment(partitions, note=ANOTHER_ROUND))
    talk.next(Assign)


def test_who_has_nothing_to_give_up_begins_the_round_that_was_announced_a_moment_after_its_share() -> None:
    talk = stable(P0)
    talk.told_to_rejoin()
    announced(talk, P0)
    talk.advance(NEXT_ROUND_MS - 0.5)
    assert talk.quiet()
    talk.advance(0.5)
    join = talk.sent(ApiKey.JOIN_GROUP)
    assert (subscription_in(join).owned, join.body.reason) == ((P0,), "partitions wait for their new owners")


def test_who_has_something_to_give_up_reads_on_while_the_others_join_and_joins_last() -> None:
    talk = stable(P0, P1)
    talk.told_to_rejoin()
    announced(talk, P0)
    assert talk.membership.owned == {P0, P1}
    talk.advance(GIVE_UP_AFTER_MS - 0.5)
    assert talk.quiet()
    talk.advance(0.5)
    assert talk.next(Revoke) == Revoke((P1,), lost=False, reason="moves to another member")
    assert talk.membership.owned == {P0}
    talk.released()
    assert subscription_in(talk.sent(ApiKey.JOIN_GROUP)).owned == (P0,)


def test_who_has_something_to_give_up_is_not_hurried_by_the_round_of_which_it_knows() -> None:
    talk = stable(P0, P1)
    talk.told_to_rejoin()
    announced(talk, P0)
    talk.advance(NEXT_ROUND_MS)
    talk.membership.commit_refused(ErrorCode.REBALANCE_IN_PROGRESS, 2, talk.now)
    talk.take()
    assert talk.quiet()


def announced_twice(*partitions: TopicPartition) -> Talk:
    """The round that was announced is over, and another one is."""
    talk = stable(P0, P1)
    talk.told_to_rejoin()
    announced(talk, P0, P1)
    talk.advance(NEXT_ROUND_MS)
    announced(talk, *partitions, generation=3)
    return talk


def test_when_partitions_wait_even_then_heartbeats_come_sooner() -> None:
    talk = announced_twice(P0, P1)
    for pause_ms in (*(10 * 1.5**n for n in range(12)), 1_000, 1_000):
        talk.advance(pause_ms - 0.5)
        assert talk.quiet()
        talk.advance(0.5)
        talk.answer(talk.sent(ApiKey.HEARTBEAT))
    talk.told_to_rejoin()
    talk.follow(P0, P1, generation=4)
    talk.next(Assign)
    talk.advance(999)
    assert talk.quiet(), "that was the other round"


def test_when_partitions_wait_even_then_who_has_some_of_them_gives_them_up_at_once() -> None:
    talk = announced_twice(P0)
    assert talk.next(Revoke).partitions == (P1,)


def test_a_round_that_was_to_follow_and_does_not_is_asked_for_after_a_session_timeout() -> None:
    talk = announced_twice(P0, P1)
    synced_at = talk.now
    while (send := _next_sent(talk)).api_key is ApiKey.HEARTBEAT:
        talk.answer(send)
    assert (send.api_key, send.body.reason) == (ApiKey.JOIN_GROUP, "partitions wait for their new owners")
    assert talk.now >= synced_at + SETTINGS.session_timeout_ms
    talk.joined(send, generation=4, leader="other")
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0, P1)
    talk.next(Assign)
    for _ in range(20):
        send = _next_sent(talk)
        assert send.api_key is ApiKey.HEARTBEAT, "once is enough"
        talk.answer(send)


def _next_sent(talk: Talk) -> Send:
    while talk.quiet():
        talk.advance_to_deadline()
    return talk.next(Send)


def test_what_moves_is_lost_with_the_rest_when_the_group_goes_on_without_the_member() -> None:
    talk = stable(P0, P1)
    talk.told_to_rejoin()
    announced(talk, P0)
    talk.membership.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, 2, talk.now)
    talk.take()
    release = talk.next(Revoke)
    assert (release.partitions, release.lost) == ((P0, P1), True)


def test_a_member_that_was_removed_knows_under_which_id_it_was_in_the_group() -> None:
    talk = stable(P0, P1)
    talk.membership.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, 1, talk.now)
    assert (talk.membership.member_id, talk.membership.last_member_id) == ("", "m1")


def test_a_leader_that_has_just_heard_of_the_topics_assigns_at_once_and_looks_afterwards() -> None:
    talk = Talk()
    claims = encode_subscription(Subscription(("orders",), owned=(P0, P1, P2), generation=7))
    join = talk.sent(ApiKey.JOIN_GROUP)
    talk.joined(join, members=[("m1", join.body.protocols[0].metadata), ("m2", claims)])
    talk.next(NeedTopics)
    talk.topics(ORDERS)
    sync = talk.sent(ApiKey.SYNC_GROUP)
    share = {row.member_id: row.assignment for row in sync.body.assignments}["m1"]
    talk.answer(sync, assignment=share)
    talk.next(Assign)
    talk.advance(NEXT_ROUND_MS)
    join = talk.sent(ApiKey.JOIN_GROUP)
    rest = encode_subscription(Subscription(("orders",), owned=(P0, P1), generation=1))
    talk.joined(join, generation=2, members=[("m1", join.body.protocols[0].metadata), ("m2", rest)])
    sync = talk.sent(ApiKey.SYNC_GROUP)
    shares = {row.member_id: decode_assignment(row.assignment).partitions for row in sync.body.assignments}
    assert shares == {"m1": (P2,), "m2": (P0, P1)}
    talk.next(NeedTopics)
    talk.topics({"orders": TopicInfo(4)})
    assert talk.quiet()
    talk.synced(sync, P2)
    assert talk.next(Assign).added == (P2,)
    talk.advance_to_deadline()
    assert talk.sent(ApiKey.JOIN_GROUP).body.reason == "topic orders has changed"


def test_a_leader_tells_all_members_when_partitions_wait_to_be_given_up() -> None:
    led = LedGroup(
        {
            "a": Member("a", Subscription(("orders",), owned=(P0, P1), generation=1)),
            "b": Member("b", Subscription(("orders",))),
        }
    )
    topics = {"orders": TopicInfo(2)}
    for protocol, note in ((RebalanceProtocol.COOPERATIVE, ANOTHER_ROUND), (RebalanceProtocol.EAGER, b"")):
        assignor = CooperativeStickyAssignor() if note else RangeAssignor()
        shares = assign_group(assignor, protocol, led, topics)
        said = note and note_of(note, 2)
        assert [decode_assignment(share).note for share in shares.values()] == [said, said]
    led.members["a"] = Member("a", Subscription(("orders",), owned=(P0,), generation=1))
    shares = assign_group(CooperativeStickyAssignor(), RebalanceProtocol.COOPERATIVE, led, topics)
    said = note_of(LISTENING, 2)
    assert [decode_assignment(share).note for share in shares.values()] == [said, said]


def test_partitions_of_topics_no_longer_wanted_are_given_up_before_joining() -> None:
    talk = stable(P0, P1)
    talk.membership.subscribe(["other"], talk.now)
    talk.take()
    assert talk.next(Revoke).partitions == (P0, P1)
    talk.released()
    join = talk.sent(ApiKey.JOIN_GROUP)
    assert (subscription_in(join).topics, subscription_in(join).owned) == (("other",), ())


def test_a_subscription_that_changes_while_a_round_is_on_is_joined_after_it() -> None:
    talk = Talk()
    join = talk.sent(ApiKey.JOIN_GROUP)
    talk.membership.subscribe(["orders", "other"], talk.now)
    talk.take()
    assert talk.quiet()
    talk.joined(join, leader="other")
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0)
    talk.next(Assign)
    talk.advance_to_deadline()
    assert subscription_in(talk.sent(ApiKey.JOIN_GROUP)).topics == ("orders", "other")


def test_an_assignment_outside_the_subscription_is_refused_and_the_member_joins_again() -> None:
    talk = Talk()
    talk.follow(TopicPartition("elsewhere", 0))
    assert talk.quiet()
    assert any(isinstance(event, AssignmentRefused) for event in talk.events)
    assert talk.membership.owned == frozenset()
    talk.advance_to_deadline()
    talk.sent(ApiKey.JOIN_GROUP)


def test_the_leader_rejoins_when_a_topic_grows_and_only_then() -> None:
    talk = Talk()
    talk.joined(talk.sent(ApiKey.JOIN_GROUP))
    talk.next(NeedTopics)
    talk.topics(ORDERS)
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0, P1, P2)
    talk.next(Assign)
    talk.topics({**ORDERS, "foreign": TopicInfo(9)})
    assert talk.quiet()
    talk.topics({"orders": TopicInfo(5)})
    assert talk.sent(ApiKey.JOIN_GROUP).body.reason == "topic orders has changed"


def test_a_follower_leaves_topics_to_the_leader() -> None:
    talk = stable(P0)
    talk.topics({"orders": TopicInfo(99)})
    assert talk.quiet()


def test_leaving_tells_the_coordinator() -> None:
    talk = stable(P0)
    talk.membership.leave("closed")
    talk.take()
    leave = talk.sent(ApiKey.LEAVE_GROUP)
    assert [(m.member_id, m.reason) for m in leave.body.members] == [("m1", "closed")]
    assert talk.membership.state is MemberState.UNJOINED
    assert talk.membership.next_deadline() is None


def test_a_static_member_leaves_without_a_word() -> None:
    talk = stable(P0, settings=config(group_instance_id="a"))
    talk.membership.leave("closed")
    talk.take()
    assert talk.quiet()


@pytest.mark.parametrize("instance_id", [None, "a"])
def test_a_member_that_stays_away_loses_everything_and_comes_back_when_asked(instance_id: str | None) -> None:
    talk = stable(P0, settings=config(group_instance_id=instance_id))
    talk.membership.pause("no poll")
    talk.take()
    if instance_id is None:
        talk.sent(ApiKey.LEAVE_GROUP)
    assert talk.next(Revoke).lost
    talk.released()
    talk.advance(100_000)
    assert talk.quiet()
    talk.membership.resume(talk.now)
    talk.take()
    # a static member's seat is still its own: it comes back under the same id
    join = talk.sent(ApiKey.JOIN_GROUP).body
    assert (join.member_id, join.reason) == ("" if instance_id is None else "m1", "polled again")
    assert talk.membership.paused is False


def test_commits_stand_a_chance_with_a_generation_and_not_between_join_and_sync() -> None:
    talk = Talk()
    chances = [talk.membership.can_commit()]
    talk.joined(talk.sent(ApiKey.JOIN_GROUP), leader="other")
    chances.append(talk.membership.can_commit())
    talk.synced(talk.sent(ApiKey.SYNC_GROUP), P0)
    chances.append(talk.membership.can_commit())
    talk.next(Assign)
    talk.told_to_rejoin()
    chances.append(talk.membership.can_commit())
    assert chances == [False, False, True, True]
