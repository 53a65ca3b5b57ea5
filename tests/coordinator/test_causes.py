"""Every cause in words, and what brings it about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator import (
    CauseKind,
    CommitRefused,
    GenerationAbandoned,
    GroupEvent,
    GroupRemoved,
    JoinRefused,
    MemberFenced,
    MemberGone,
    MemberIdUnused,
    MemberJoined,
    MemberReplaced,
    OffsetsRemoved,
    RebalanceCompleted,
    RebalanceStarted,
)
from kohort.coordinator.groups.events import (
    MAX_QUOTED,
    AppendRefused,
    AssignorFailed,
    Refusal,
    RevocationAsked,
    ShareStateFailed,
    quote_text,
)
from kohort.protocol import ErrorCode
from kohort.statemachine import GroupState
from tests.coordinator import happenings as do
from tests.coordinator.driver import World
from tests.coordinator.test_answers import answer
from tests.coordinator.test_properties import STEP, take

S = RebalanceStarted
NOT_WRITTEN = "the log did not take records: NOT_ENOUGH_REPLICAS"
CAUSES: list[tuple[Callable[[World], None], type[GroupEvent], str]] = [
    (do.joins, MemberJoined, "member c-1 joined"),
    (do.joins, S, "member c-1 joined"),
    (do.joins_static, S, "static member i joined"),
    (do.leaves, MemberGone, "member c-1 left"),
    (do.leaves, RebalanceCompleted, "member c-1 left"),
    (do.leaves_with_a_reason, MemberGone, r"member c-1 left (the\nend)"),
    (do.is_removed_by_an_administrator, MemberGone, "static member i was removed by its instance id"),
    (do.falls_silent, MemberGone, "session of member c-1 expired after 10.0 s"),
    (do.falls_silent, RebalanceCompleted, "session of member c-1 expired after 10.0 s"),
    (do.falls_silent_static, MemberGone, "session of static member i expired after 10.0 s"),
    (do.never_gets_to_finish_joining, MemberGone, "member c-2 did not finish joining within 300.0 s"),
    (do.does_not_rejoin, MemberGone, "member c-2 did not rejoin within 60.0 s"),
    (
        do.does_not_rejoin,
        RebalanceCompleted,
        "leader c-1 changed its metadata; member c-2 did not rejoin within 60.0 s",
    ),
    (
        do.many_do_not_rejoin,
        RebalanceCompleted,
        "leader c-1 changed its metadata; members c-2, c-3, c-4 and 2 more did not rejoin within 60.0 s",
    ),
    (do.does_not_sync, MemberGone, "member c-2 did not sync within 60.0 s"),
    (do.does_not_sync, S, "member c-2 did not sync within 60.0 s"),
    (do.leader_does_not_sync, GenerationAbandoned, "member c-1 did not sync within 60.0 s"),
    (do.leader_changes, S, "leader c-1 changed its metadata"),
    (do.follower_changes, S, "member c-2 changed its metadata (new topic)"),
    (do.leader_asks, S, "leader c-1 asked for a rebalance"),
    (do.returns, MemberReplaced, "rejoin of static i"),
    (do.returns_from_elsewhere, MemberReplaced, "rejoin of static i from another host /10.0.0.2"),
    (do.returns_changed, S, "rejoin of static i with other subscriptions"),
    (do.returns_too_soon, S, "rejoin of static i before the assignment was known"),
    (do.returns_too_soon, GenerationAbandoned, "rejoin of static i before the assignment was known"),
    (do.cannot_be_written, AppendRefused, NOT_WRITTEN),
    (do.cannot_be_written, S, "the assignment could not be written: COORDINATOR_NOT_AVAILABLE"),
    (do.cannot_be_created, GroupRemoved, "its first record could not be written"),
    (do.too_many_are_loaded, S, "3 members loaded, group.max.size is 2"),
    (do.comes_to_a_full_group, JoinRefused, "the group is full: group.max.size is 1"),
    (do.comes_to_a_full_group_with_an_id, MemberIdUnused, "the group is full: group.max.size is 1"),
    (do.comes_last, JoinRefused, "the group is full: group.max.size is 1"),
    (do.comes_last, MemberGone, "member c-2 came last and the group is full: group.max.size is 1"),
    (do.id_is_not_used, MemberIdUnused, "member id c-1 was given out and not used in time"),
    (do.leaves_before_it_joined, MemberIdUnused, "member c-1 left before it had joined"),
    (do.is_no_member, MemberFenced, "member x is not in the group"),
    (do.has_no_group, MemberFenced, "member x speaks of a group that does not exist"),
    (do.is_late, MemberFenced, "member c-1 is in generation 7, the group is in 1"),
    (do.is_fenced, MemberFenced, "member old is fenced: static i is member i-2 now"),
    (do.is_static_nowhere, MemberFenced, "member x says to be static z, of whom the group knows nothing"),
    (do.leaves_without_being_there, MemberFenced, "member x is not in the group"),
    (do.joins_with_an_id_nobody_gave, MemberFenced, "member x is not in the group"),
    (do.asks_for_a_short_session, JoinRefused, "a session timeout of 1 ms is not from 6000 to 1800000 ms"),
    (do.offers_too_much, JoinRefused, "33 protocols with 0 bytes of metadata are too many"),
    (do.offers_nothing_common, JoinRefused, "none of its protocols (other) is one that all members support"),
    (do.has_another_type, JoinRefused, "protocol type 'connect': the group is of type 'consumer'"),
    (do.takes_a_strangers_id, JoinRefused, "the id of a dynamic member in a static member's request"),
    (do.commits_in_the_wrong_generation, CommitRefused, "member c-1 is in generation 7, the group is in 1"),
    (do.commits_before_it_synced, CommitRefused, "member c-1 has not synced in generation 1"),
    (do.commits_as_nobody, CommitRefused, "a sender without a member id is not in the group"),
    (do.commit_cannot_be_written, AppendRefused, NOT_WRITTEN),
    (do.deletion_cannot_be_written, AppendRefused, NOT_WRITTEN),
    (do.offset_deletion_cannot_be_written, AppendRefused, NOT_WRITTEN),
    (do.topic_deletion_cannot_be_written, AppendRefused, NOT_WRITTEN),
    (do.expiry_cannot_be_written, AppendRefused, NOT_WRITTEN),
    (do.end_cannot_be_written, AppendRefused, NOT_WRITTEN),
    (do.return_cannot_be_written, AppendRefused, NOT_WRITTEN),
    (do.is_deleted, GroupRemoved, "deleted by request"),
    (do.offsets_are_deleted, OffsetsRemoved, "deleted by request"),
    (do.offsets_expire, OffsetsRemoved, "its offsets expired"),
    (do.offsets_expire, GroupRemoved, "its offsets expired"),
    (do.is_never_used, GroupRemoved, "it has no members and no offsets"),
    (do.topic_is_deleted, OffsetsRemoved, "their topic was deleted"),
]


@pytest.mark.parametrize(
    ("happens", "kind", "cause"), CAUSES, ids=[f"{happens.__name__}-{k.__name__}" for happens, k, _ in CAUSES]
)
def test_the_cause_in_words(happens: Callable[[World], None], kind: type[GroupEvent], cause: str) -> None:
    world = World()
    happens(world)
    event = next(note for note in reversed(world.notes) if type(note) is kind)
    assert isinstance(event, GroupEvent)
    assert event.group == "g"
    assert event.cause == cause


def _static_leaves(world: World) -> None:
    member = world.join(instance="i")
    world.advance(0)
    world.leave("g", (member.reply.member_id, "i"))


def _static_changes(world: World) -> None:
    join = world.join(instance="i")
    world.advance(0)
    member = join.reply.member_id
    world.settle([member])
    world.join("g", member, instance="i", offers=do.OTHER)


def _one_called_joined_leaves(world: World) -> None:
    world.leave("g", (world.stable(client="he joined")[0], None))


@pytest.mark.parametrize(
    ("happens", "kind"),
    [
        (do.joins, CauseKind.JOIN),
        (do.joins_static, CauseKind.JOIN),
        (do.leaves, CauseKind.LEAVE),
        (_static_leaves, CauseKind.LEAVE),
        (_one_called_joined_leaves, CauseKind.LEAVE),
        (do.is_removed_by_an_administrator, CauseKind.LEAVE),
        (do.falls_silent, CauseKind.SESSION_EXPIRED),
        (do.falls_silent_static, CauseKind.SESSION_EXPIRED),
        (do.does_not_rejoin, CauseKind.CHANGED_SUBSCRIPTION),
        (do.does_not_sync, CauseKind.LATE_SYNC),
        (do.leader_changes, CauseKind.CHANGED_SUBSCRIPTION),
        (do.follower_changes, CauseKind.CHANGED_SUBSCRIPTION),
        (_static_changes, CauseKind.CHANGED_SUBSCRIPTION),
        (do.returns_changed, CauseKind.CHANGED_SUBSCRIPTION),
        (do.returns_too_soon, CauseKind.CHANGED_SUBSCRIPTION),
        (do.leader_asks, CauseKind.ASKED_FOR),
        (do.cannot_be_written, CauseKind.NOT_WRITTEN),
        (do.too_many_are_loaded, CauseKind.TOO_LARGE),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_rebalance_has_the_kind_of_its_first_cause(
    happens: Callable[[World], None], kind: CauseKind
) -> None:
    world = World()
    happens(world)
    begun = [event for event in world.notes if isinstance(event, RebalanceStarted)][-1]
    assert begun.cause_kind is kind


def test_a_rebalance_that_is_over_has_the_kind_of_its_first_cause() -> None:
    world = World()
    do.does_not_rejoin(world)
    ended = next(event for event in reversed(world.notes) if isinstance(event, RebalanceCompleted))
    assert "did not rejoin" in ended.cause
    assert ended.cause_kind is CauseKind.CHANGED_SUBSCRIPTION


@pytest.mark.parametrize(
    ("happens", "kind"),
    [
        (do.falls_silent, CauseKind.SESSION_EXPIRED),
        (do.leaves, CauseKind.LEAVE),
        (do.does_not_rejoin, CauseKind.LATE_JOIN),
        (do.does_not_sync, CauseKind.LATE_SYNC),
        (do.comes_last, CauseKind.TOO_LARGE),
        (do.never_gets_to_finish_joining, CauseKind.LATE_JOIN),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_who_is_gone_has_a_kind_of_cause(happens: Callable[[World], None], kind: CauseKind) -> None:
    world = World()
    happens(world)
    gone = next(event for event in reversed(world.notes) if isinstance(event, MemberGone))
    assert gone.cause_kind is kind


@pytest.mark.parametrize(
    ("happens", "kind"),
    [(happens, kind) for happens, kind, _ in CAUSES if issubclass(kind, Refusal)],
    ids=lambda value: value.__name__,
)
def test_a_refusal_has_the_error_of_its_answer(happens: Callable[[World], None], kind: type[Refusal]) -> None:
    world = World()
    happens(world)
    event = next(note for note in reversed(world.notes) if type(note) is kind)
    assert isinstance(event, Refusal)
    if kind is AppendRefused:
        assert event.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    else:
        assert event.error_code == answer(world.calls[-1])


def test_how_many_offsets_were_removed_is_told() -> None:
    world = World()
    world.commit("g", {("t", 0): 1, ("t", 1): 2, ("u", 0): 3})
    world.offset_delete("g", ("t", 0), ("t", 1))
    assert world.notes[-1] == OffsetsRemoved("g", cause="deleted by request", count=2)


def test_metadata_of_all_members_together_has_a_limit() -> None:
    world = World(kohort_group_max_metadata_bytes=10)
    world.join()
    (refused,) = [note for note in world.notes if isinstance(note, JoinRefused)]
    assert refused.cause == "the metadata of its members would have more than 10 bytes"


def test_ids_given_out_have_a_limit() -> None:
    world = World(kohort_group_max_pending_ids=1)
    world.join()
    world.join()
    (refused,) = [note for note in world.notes if isinstance(note, JoinRefused)]
    assert refused.cause == "1 member ids are given out and not used"


def test_every_kind_of_event_has_a_row() -> None:
    def kinds(base: type[GroupEvent]) -> set[type[GroupEvent]]:
        below = base.__subclasses__()
        return set().union(*(kinds(kind) for kind in below)) if below else {base}

    # those of share partitions are told by the leaders of partitions
    told = {kind for kind in kinds(GroupEvent) if kind.__module__.startswith("kohort.coordinator.")}
    # those of consumer groups or share groups alone have tests of their own
    assert {kind for _, kind, _ in CAUSES} == told - {
        AssignorFailed,
        RevocationAsked,
        ShareStateFailed,
    }


def test_who_it_is_about_is_named() -> None:
    world = World()
    world.join(instance="i", client="alpha", host="/10.0.0.1")
    joined = next(note for note in world.notes if isinstance(note, MemberJoined))
    assert (joined.member, joined.instance_id) == ("i-1", "i")
    assert (joined.client_id, joined.client_host) == ("alpha", "/10.0.0.1")
    world.advance(0)
    world.heartbeat("g", "x", 1)
    assert isinstance(world.notes[-1], MemberFenced)
    assert (world.notes[-1].member, world.notes[-1].client_id) == ("x", "c")


def test_a_member_that_left_is_among_the_assignments_before() -> None:
    world = World()
    a, b = world.stable(2)
    world.leave("g", (b, None))
    world.settle([a])
    note = world.notes[-1]
    assert isinstance(note, RebalanceCompleted)
    assert note.before == {a: a.encode(), b: b.encode()}
    assert note.after == {a: a.encode()}
    assert (note.joined(), note.left()) == ([], [b])
    assert (note.members_before, note.members, note.leader) == (2, 1, a)


def test_who_joins_was_not_there_before() -> None:
    world = World()
    (a,) = world.stable()
    b, _ = world.new_member()
    world.settle([a, b])
    note = world.notes[-1]
    assert isinstance(note, RebalanceCompleted)
    assert (note.joined(), note.left()) == ([b], [])


def test_what_is_accepted_is_no_event() -> None:
    world = World()
    (a,) = world.stable()
    told = len(world.notes)
    assert world.heartbeat("g", a, 1) == 0
    assert world.commit_errors("g", {("t", 0): 1}, a, 1) == [0]
    assert len(world.notes) == told


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain", "plain"), ("a\n\x1b[1mb", r"a\n\x1b[1mb"), ("x" * 201, "x" * MAX_QUOTED + "..."), ("ü", "ü")],
)
def test_what_clients_say_fits_a_line(text: str, shown: str) -> None:
    assert quote_text(text) == shown


@settings(max_examples=100)
@given(st.lists(STEP, max_size=60))
def test_each_generation_ends_in_exactly_one_event(steps: list[tuple[Any, ...]]) -> None:
    world = World(group_max_size=4)
    begun: dict[str, int] = {}
    for step in steps:
        take(world, step)
        for group_id in [group_id for group_id in begun if group_id not in world.groups]:
            # what is deleted begins anew
            world.notes[:] = [note for note in world.notes if note.group != group_id]
            del begun[group_id]
        for group_id, group in world.groups.items():
            ended = [
                note.generation
                for note in world.notes
                if note.group == group_id and isinstance(note, RebalanceCompleted | GenerationAbandoned)
            ]
            begun[group_id] = group.generation
            open_ = group.state is GroupState.COMPLETING_REBALANCE
            assert ended == list(range(1, group.generation + (not open_)))
