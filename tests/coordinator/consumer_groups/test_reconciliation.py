"""Steps of a member towards its target: each rule, and what holds over any schedule."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.consumer_groups.reconciliation import NEW_MEMBER, Owned, is_settled, reconcile_member
from kohort.offsets_topic import CurrentAssignment, Partitions

A, B = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED = 0, 1, 2


def free(_topic: UUID, _numbers: Collection[int]) -> Collection[int]:
    return ()


def taken(_topic: UUID, numbers: Collection[int]) -> Collection[int]:
    return numbers


def at(
    epoch: int, *numbers: int, state: int = STABLE, revoking: Mapping[UUID, Mapping[int, int]] | None = None
) -> CurrentAssignment:
    assigned = {A: dict.fromkeys(numbers, epoch)} if numbers else {}
    return CurrentAssignment(epoch, epoch - 1, state, assigned, revoking or {})


def test_a_new_member_gets_what_is_free_at_once() -> None:
    got = reconcile_member(NEW_MEMBER, 2, {A: (0, 1)}, {}, free)
    assert got == CurrentAssignment(2, 0, STABLE, {A: {0: 2, 1: 2}}, {})


def test_a_settled_member_is_left_alone() -> None:
    current = at(2, 0)
    assert reconcile_member(current, 2, {A: (0, 5)}, None, taken) is current


def test_what_the_target_takes_away_is_given_up_first() -> None:
    got = reconcile_member(at(2, 0, 1, 2), 3, {A: (0, 9)}, None, free)
    assert got == CurrentAssignment(2, 2, UNREVOKED, {A: {0: 2}}, {A: {1: 2, 2: 2}})
    for unproven in (None, {A: [1]}, {A: [0, 1, 2]}):
        assert reconcile_member(got, 4, {}, unproven, free) is got
    proven = reconcile_member(got, 4, {A: (0, 9)}, {A: [0], B: [7]}, free)
    assert proven == CurrentAssignment(4, 2, STABLE, {A: {0: 2, 9: 4}}, {})


def test_what_a_request_proves_is_not_asked_for() -> None:
    assert reconcile_member(at(2, 0, 1), 3, {A: (0,)}, {A: [0]}, free) == CurrentAssignment(
        3, 2, STABLE, {A: {0: 2}}, {}
    )


def test_after_the_proof_a_newer_target_may_take_more_at_the_same_epoch() -> None:
    first = reconcile_member(at(2, 0, 1), 3, {A: (0,)}, None, free)
    further = reconcile_member(first, 4, {}, {A: [0]}, free)
    assert further == CurrentAssignment(2, 2, UNREVOKED, {}, {A: {0: 2}})


def test_a_member_waits_at_the_new_epoch_for_what_others_have() -> None:
    waiting = reconcile_member(at(2, 0), 3, {A: (0, 1, 2)}, None, lambda _topic, numbers: {2} & {*numbers})
    assert waiting == CurrentAssignment(3, 2, UNRELEASED, {A: {0: 2, 1: 3}}, {})
    assert reconcile_member(waiting, 3, {A: (0, 1, 2)}, None, taken).state == UNRELEASED
    done = reconcile_member(waiting, 3, {A: (0, 1, 2)}, None, free)
    assert done == CurrentAssignment(3, 3, STABLE, {A: {0: 2, 1: 3, 2: 3}}, {})


def test_topics_that_it_does_not_read_any_more_go_at_once() -> None:
    current = CurrentAssignment(2, 1, STABLE, {A: {0: 2}, B: {0: 2}}, {})
    gone = reconcile_member(current, 2, {A: (0,), B: (0,)}, None, free, {A}, True)
    assert (gone.state, gone.epoch, gone.assigned, gone.revoking) == (UNREVOKED, 2, {A: {0: 2}}, {B: {0: 2}})
    proven = reconcile_member(current, 2, {A: (0,), B: (0,)}, {A: [0]}, free, {A}, True)
    assert (proven.state, proven.assigned, proven.revoking) == (STABLE, {A: {0: 2}}, {})
    more = reconcile_member(gone, 2, {A: (0,), B: (0,)}, None, free, set(), True)
    assert (more.state, more.assigned, more.revoking) == (UNREVOKED, {}, {A: {0: 2}, B: {0: 2}})
    assert reconcile_member(current, 2, {}, None, free, {A, B}, True) is current
    ahead = reconcile_member(current, 3, {A: (0, 1), B: (0, 1)}, {}, free, {A}, True)
    assert (ahead.epoch, ahead.assigned) == (3, {A: {0: 2, 1: 3}})


def test_of_topics_that_it_does_not_read_an_older_target_gives_it_nothing() -> None:
    given_up = CurrentAssignment(2, 2, UNREVOKED, {}, {B: {0: 2}})
    assert reconcile_member(given_up, 2, {B: (0,)}, {}, free, {A}) == CurrentAssignment(2, 2, STABLE, {}, {})
    # also where it has just that
    got = reconcile_member(at(2, 0), 3, {A: (0,)}, None, free, {B})
    assert got == CurrentAssignment(2, 2, UNREVOKED, {}, {A: {0: 2}})


class Group:
    """Members that heartbeat in any order, and give up in any order what they are told to."""

    def __init__(self) -> None:
        self.epoch = 0
        self.targets: dict[str, Partitions] = {}
        self.current: dict[str, CurrentAssignment] = {}
        #: What each client reads: it follows its answers, late or at once.
        self.reads: dict[str, set[int]] = {}

    def retarget(self, owners: list[str]) -> None:
        self.epoch += 1
        members = set(owners)
        for gone in set(self.current) - members:
            del self.current[gone], self.reads[gone]
        self.targets = {m: {A: tuple(n for n, owner in enumerate(owners) if owner == m)} for m in members}
        for new in members - set(self.current):
            self.current[new], self.reads[new] = NEW_MEMBER, set()

    def heartbeat(self, member: str, tells: bool) -> None:
        before, others = self.current[member], set[int]()
        for name, one in self.current.items():
            for topics in (one.assigned, one.revoking):
                others.update(topics.get(A, {}) if name != member else ())
        owned: Owned = {A: sorted(self.reads[member])} if tells else None
        after = reconcile_member(
            before, self.epoch, self.targets[member], owned, lambda _topic, n: others & {*n}
        )
        assert after.epoch >= before.epoch
        self.current[member] = after
        if after.assigned != before.assigned:
            # new ones are read at once, old ones until the client gets round to it
            self.reads[member] |= set(after.assigned.get(A, {}))
        self.check()

    def give_up(self, member: str) -> None:
        self.reads[member] &= set(self.current[member].assigned.get(A, {}))

    def check(self) -> None:
        reading = [(n, m) for m, numbers in self.reads.items() for n in numbers]
        assert len({n for n, _ in reading}) == len(reading), reading


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("target"), st.lists(st.sampled_from("abcd"), min_size=6, max_size=6)),
        st.tuples(st.just("beat"), st.sampled_from("abcd"), st.booleans()),
        st.tuples(st.just("give up"), st.sampled_from("abcd")),
    ),
    max_size=40,
)


@settings(max_examples=300)
@given(STEPS)
def test_no_partition_has_two_readers_and_everybody_reaches_the_target(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    group = Group()
    group.retarget(["a"] * 6)
    for step, *what in steps:
        if step == "target":
            group.retarget(what[0])
        elif what[0] in group.current:
            group.heartbeat(*what) if step == "beat" else group.give_up(what[0])
    for _ in range(4):
        for member in group.current:
            group.give_up(member)
            group.heartbeat(member, tells=True)
    for member, current in group.current.items():
        assert is_settled(current, group.epoch)
        assert {A: tuple(sorted(current.assigned.get(A, {})))} == {A: group.targets[member].get(A, ())}
