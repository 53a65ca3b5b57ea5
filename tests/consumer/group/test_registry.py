"""Members that share partitions out by a registry: shares, and any order of what happens."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TypeVar

import pytest

from kohort.assignors import TopicInfo
from kohort.consumer.events import (
    Event,
    RebalanceCompleted,
    RebalanceRetried,
    RebalanceStarted,
    SessionInDoubt,
    SessionResumed,
    StateChanged,
)
from kohort.consumer.group.effects import Assign, NeedTopics, ReportEvent, Revoke, SessionAtRisk
from kohort.consumer.group.member import MOVES
from kohort.consumer.group.registry import (
    FREED_MS,
    LOOK_MS,
    CheckRegistry,
    ClaimPartitions,
    Register,
    RegistryEffect,
    RegistryMembership,
    Release,
    Topics,
    Withdraw,
    share_of,
)
from kohort.protocol import ErrorCode, TopicPartition
from kohort.statemachine import MemberState
from tests.consumer.configs import config

SESSION_MS = 6_000
MEMBERS, PARTITIONS = 4, 7
#: A session of nobody here.
SOMEBODY = -1

Shown = TypeVar("Shown")
Waiting = TypeVar("Waiting", bound=RegistryEffect)


@pytest.mark.parametrize(
    ("members", "partitions", "expected"),
    [
        ({"a": 1}, 3, {"a": [0, 1, 2]}),
        ({"b": 1, "a": 1}, 5, {"a": [0, 1, 2], "b": [3, 4]}),
        ({"a": 1, "b": 1, "c": 1}, 2, {"a": [0], "b": [1], "c": []}),
        ({"a": 2, "b": 1}, 7, {"a": [0, 1, 2, 3, 4], "b": [5, 6]}),
        ({"a": 1, "b": 1}, 0, {"a": [], "b": []}),
    ],
)
def test_each_thread_takes_a_range_and_the_first_ones_one_more(
    members: dict[str, int], partitions: int, expected: dict[str, list[int]]
) -> None:
    registered = {name: {"orders": threads} for name, threads in members.items()}
    for name, numbers in expected.items():
        share = share_of(name, registered, {"orders": partitions})
        assert sorted(share) == [TopicPartition("orders", number) for number in numbers]


def test_a_topic_for_which_a_member_has_no_thread_hides_none_of_its_others() -> None:
    members = {"a": {"bills": 0, "orders": 1}, "b": {"bills": 1}}
    assert share_of("a", members, {"bills": 2, "orders": 2}) == {
        TopicPartition("orders", number) for number in range(2)
    }


class Registry:
    """A registry in memory, and members whose effects are carried out one by one."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.partitions = PARTITIONS
        #: Entries with the sessions that they go with.
        self.ids: dict[str, tuple[int, Topics]] = {}
        self.owners: dict[TopicPartition, int] = {}
        self.sessions = list(range(MEMBERS))
        self.living = set(self.sessions)
        self.members = [self.make(number) for number in range(MEMBERS)]
        self.waiting: list[list[RegistryEffect]] = [[] for _ in self.members]
        #: Who reads what: from Assign until the revocation is done.
        self.reading: list[set[TopicPartition]] = [set() for _ in self.members]
        self.revoking: list[list[Revoke]] = [[] for _ in self.members]
        self.at_risk = [False] * MEMBERS
        self.told: list[list[Event | Assign]] = [[] for _ in self.members]
        self.there = [False] * MEMBERS
        self.linked = [True] * MEMBERS

    def make(self, number: int) -> RegistryMembership:
        return RegistryMembership(config(session_timeout_ms=SESSION_MS), random.Random(number), f"m{number}")

    def take(self, number: int) -> None:
        for effect in self.members[number].take_effects():
            if isinstance(effect, RegistryEffect):
                self.waiting[number].append(effect)
            elif isinstance(effect, Assign):
                self.reading[number].update(effect.added)
                self.told[number].append(effect)
            elif isinstance(effect, ReportEvent):
                self.told[number].append(effect.event)
            elif isinstance(effect, Revoke):
                if effect.lost:
                    self.reading[number].clear()
                self.revoking[number].append(effect)
            elif isinstance(effect, SessionAtRisk):
                self.at_risk[number] = effect.at_risk
        self._check_promptness(number)

    def _check_promptness(self, number: int) -> None:
        """What is due is asked for at once, and a rebalance goes on as soon as nothing is being revoked."""
        member = self.members[number]
        deadline = member.next_deadline()
        assert deadline is None or deadline > self.now
        if member._registered and member._session and not self.revoking[number]:
            assert member.state is not MemberState.PREPARING

    def events(self, number: int, kind: type[Shown]) -> list[Shown]:
        """What a member has reported, of one kind."""
        return [each for each in self.told[number] if isinstance(each, kind)]

    def start(self, number: int) -> None:
        if not self.there[number]:
            self.there[number] = True
            self.waiting[number], self.revoking[number] = [], []
            self.reading[number], self.at_risk[number] = set(), False
            self.linked[number] = True
            self._new_session(number)
            self.members[number] = member = self.make(number)
            member.subscribe(["orders"], self.now)
            self.see_topics(number)
            member.on_connected(self.now)
            self.take(number)

    def _new_session(self, number: int) -> None:
        self._end_session(self.sessions[number])
        self.sessions[number] = max(self.sessions) + 1
        self.living.add(self.sessions[number])

    def _end_session(self, session: int) -> None:
        self.living.discard(session)
        self.ids = {name: row for name, row in self.ids.items() if row[0] != session}
        self.owners = {p: owner for p, owner in self.owners.items() if owner != session}

    def see_topics(self, number: int) -> None:
        there = {"orders": TopicInfo(self.partitions)} if self.partitions else {}
        gone = frozenset(() if self.partitions else ("orders",))
        self.members[number].on_topics(there, self.now, gone)
        self.take(number)

    def grow(self, number: int) -> None:
        """The topic has another partition, or is deleted, and one member sees that now."""
        self.partitions = 0 if self.rng.random() < 0.2 else min(self.partitions + 1, 2 * PARTITIONS)
        if self.there[number]:
            self.see_topics(number)

    def carry_out(self, number: int) -> None:
        """The next effect of a member."""
        if not self.waiting[number] or not self.linked[number]:
            return
        effect = self.waiting[number].pop(0)
        if self.there[number]:
            self.members[number].on_answer(effect, self._change(number, effect), self.now)
            self.take(number)

    def refuse(self, number: int) -> None:
        """The next effect of a member is refused."""
        if self.waiting[number] and self.there[number] and self.linked[number]:
            self.members[number].on_failure(self.waiting[number].pop(0), OSError("no rights"), self.now)
            self.take(number)

    def _change(self, number: int, effect: RegistryEffect) -> frozenset[TopicPartition]:
        session = self.sessions[number]
        match effect:
            case Register(name, topics):
                self.ids = {i: row for i, row in self.ids.items() if row[0] != session}
                self.ids[name] = (session, dict.fromkeys(topics, 1))
            case ClaimPartitions(partitions):
                return frozenset(p for p in partitions if self.owners.setdefault(p, session) == session)
            case Release(partitions) | Withdraw(partitions):
                for partition in partitions:
                    if self.owners.get(partition) == session:
                        del self.owners[partition]
                if isinstance(effect, Withdraw):
                    self.ids = {name: row for name, row in self.ids.items() if row[0] != session}
            case CheckRegistry(partitions):
                return frozenset(p for p in partitions if self.owners.get(p) == session)
        return frozenset()

    def cut(self, number: int) -> None:
        """The connection breaks: some of what is under way is carried out, and nobody hears of it."""
        if not self.there[number] or not self.linked[number]:
            return
        self.linked[number] = False
        asked, self.waiting[number] = self.waiting[number], []
        made = self.rng.randint(0, len(asked))
        member = self.members[number]
        for at, effect in enumerate(asked):
            if at < made:
                self._change(number, effect)
            member.on_failure(effect, ConnectionError("cut"), self.now)
        member.on_suspended(self.now)
        self.take(number)

    def link(self, number: int) -> None:
        """There is a connection again: with the same session, if that is not over."""
        if not self.there[number] or self.linked[number]:
            return
        member = self.members[number]
        if self.sessions[number] not in self.living:
            member.on_expired(self.now)
            self.take(number)
            self._new_session(number)
        self.linked[number] = True
        member.on_connected(self.now)
        self.take(number)

    def expire(self, number: int) -> None:
        """The session ends, and the member learns it when it connects again."""
        self.cut(number)
        self._end_session(self.sessions[number])

    def tell(self, number: int) -> None:
        """What a member sees of the others, now."""
        if self.there[number] and self.linked[number]:
            self.members[number].members_changed(self.seen(), self.now)
            self.take(number)
            self._tell_owners(number)

    def _tell_owners(self, number: int) -> None:
        for partition in [TopicPartition("orders", n) for n in range(2 * PARTITIONS)]:
            owner = self.owners.get(partition)
            if owner is None or (partition in self.members[number].owned and owner != self.sessions[number]):
                self.members[number].on_freed(partition, self.now)
                self.take(number)

    def remove(self, number: int) -> None:
        """Somebody removes an entry by hand."""
        if self.owners and self.rng.random() < 0.5:
            session = self.owners.pop(self.rng.choice(sorted(self.owners)))
            number = self.sessions.index(session) if session in self.sessions else number
            if self.there[number] and self.linked[number]:
                self._tell_owners(number)
        else:
            self.ids = {name: row for name, row in self.ids.items() if row[0] != self.sessions[number]}

    def doubt_commit(self, number: int) -> None:
        """A commit is refused, as somebody else has changed the offset."""
        member = self.members[number]
        if self.there[number]:
            member.commit_refused(ErrorCode.ILLEGAL_GENERATION, member.generation, self.now)
            self.take(number)

    def resubscribe(self, number: int) -> None:
        if self.there[number]:
            topics = ["orders", "bills"] if self.rng.random() < 0.7 else ["bills"]
            self.members[number].subscribe(topics, self.now)
            self.take(number)

    def pause(self, number: int) -> None:
        """The program does not poll for long, or does again."""
        member = self.members[number]
        if self.there[number]:
            if member.paused:
                member.resume(self.now)
            else:
                member.pause("no poll")
            self.take(number)

    def seen(self) -> Mapping[str, Topics]:
        return {name: topics for name, (_, topics) in self.ids.items()}

    def finish(self, number: int) -> None:
        """A revocation of a member is over: what it gave up was committed."""
        if self.revoking[number]:
            self.reading[number].difference_update(self.revoking[number].pop(0).partitions)
            self.members[number].revocation_done(self.now)
            self.take(number)

    def leave(self, number: int) -> None:
        if self.there[number] and not self.reading[number]:
            self.members[number].leave("the test is over with it")
            self.take(number)
            while self.waiting[number] and self.linked[number]:
                self.carry_out(number)
            self._end_session(self.sessions[number])
            self.there[number] = False

    def join(self, number: int, seen_by: int = 0) -> None:
        """A member starts and is registered, and one member sees it."""
        self.start(number)
        self.carry_out(number)
        self.tell(seen_by)

    def carry_out_all(self, number: int) -> None:
        while self.waiting[number]:
            self.carry_out(number)

    def kinds_waiting(self, number: int) -> list[type[RegistryEffect]]:
        return [type(effect) for effect in self.waiting[number]]

    def only_waiting(self, number: int, kind: type[Waiting]) -> Waiting:
        (effect,) = self.waiting[number]
        assert isinstance(effect, kind)
        return effect

    def add_partition(self) -> None:
        """One member sees that the topic has another partition."""
        self.partitions += 1
        self.see_topics(0)

    def pass_time(self, number: int) -> None:
        self.pass_to(self.now + 50 * number)

    def pass_to(self, now: float) -> None:
        self.now = now
        for each, member in enumerate(self.members):
            if self.there[each]:
                member.do_due(self.now)
                self.take(each)

    def check(self) -> None:
        """Whoever reads is the owner; but for those who have stopped, as they do not know."""
        for number, share in enumerate(self.reading):
            if self.there[number] and not self.at_risk[number]:
                assert all(self.owners.get(partition) == self.sessions[number] for partition in share)

    def mend(self) -> None:
        """Nothing is out of order any more."""
        for number in range(MEMBERS):
            self.link(number)
            if self.there[number]:
                self.members[number].resume(self.now)
                self.members[number].subscribe(["orders"], self.now)
                self.take(number)
        self.partitions = self.partitions or PARTITIONS

    def settle(self) -> None:
        for _ in range(30):
            for number in range(MEMBERS):
                if self.there[number]:
                    self.see_topics(number)
                while self.waiting[number] or self.revoking[number]:
                    self.carry_out(number)
                    self.finish(number)
                self.tell(number)
                self.check()
            self.pass_time(20)


#: What happens, and how often beside the others.
STEPS = {
    Registry.start: 3,
    Registry.carry_out: 20,
    Registry.tell: 10,
    Registry.finish: 5,
    Registry.refuse: 1,
    Registry.cut: 1,
    Registry.link: 3,
    Registry.expire: 0.5,
    Registry.remove: 0.5,
    Registry.doubt_commit: 0.5,
    Registry.resubscribe: 0.5,
    Registry.pause: 1,
    Registry.leave: 1,
    Registry.pass_time: 8,
    Registry.grow: 1,
}


@pytest.mark.parametrize("seed", range(20))
def test_a_partition_has_one_reader_in_any_order_and_all_have_one_in_the_end(seed: int) -> None:
    for number in range(10):
        registry = Registry(100 * seed + number)
        rng = registry.rng
        for step in rng.choices(list(STEPS), list(STEPS.values()), k=250):
            step(registry, rng.randrange(MEMBERS))
            registry.check()
        registry.mend()
        registry.settle()
        there = [each for each in range(MEMBERS) if registry.there[each]]
        for each in there:
            member = registry.members[each]
            assert member.state is MemberState.STABLE
            assert member.owned == registry.reading[each]
            assert not registry.at_risk[each]
        read = sorted(p for each in there for p in registry.reading[each])
        every = [TopicPartition("orders", n) for n in range(registry.partitions)]
        assert read == (every if there else [])
        assert sorted(registry.owners) == read
        assert registry.seen().keys() == {registry.members[each].member_id for each in there}


def alone() -> Registry:
    registry = Registry()
    registry.start(0)
    registry.settle()
    registry.carry_out_all(0)
    assert len(registry.reading[0]) == PARTITIONS
    return registry


def test_delivery_stops_before_others_may_have_gone_on_and_goes_on_when_they_have_not() -> None:
    registry = alone()
    member = registry.members[0]
    member.on_suspended(registry.now)
    assert not member.can_commit()
    registry.take(0)
    assert registry.at_risk == [True, False, False, False]
    assert len(member.owned) == PARTITIONS
    member.on_connected(registry.now)
    registry.take(0)
    assert registry.at_risk[0]  # until ZooKeeper says that it is still the owner
    registry.carry_out(0)
    assert registry.at_risk == [False] * MEMBERS
    assert member.can_commit()
    assert len(member.owned) == PARTITIONS


def test_what_was_owned_is_lost_after_the_time_of_a_session() -> None:
    registry = alone()
    member = registry.members[0]
    member.on_suspended(registry.now)
    assert member.next_deadline() == registry.now + SESSION_MS
    registry.pass_time(round(SESSION_MS / 50) - 1)
    assert registry.revoking[0] == []
    registry.pass_time(1)
    (loss,) = registry.revoking[0]
    assert loss.lost
    assert member.owned == frozenset()
    member.on_connected(registry.now)
    registry.take(0)
    registry.settle()
    assert len(member.owned) == PARTITIONS


def test_a_refused_commit_means_that_others_have_gone_on() -> None:
    registry = alone()
    member = registry.members[0]
    member.commit_refused(ErrorCode.ILLEGAL_GENERATION, member.generation + 1, registry.now)
    assert member.take_effects() == []
    member.commit_refused(ErrorCode.ILLEGAL_GENERATION, member.generation, registry.now)
    registry.take(0)
    assert registry.revoking[0][0].lost
    assert (member.generation, member.state) == (-1, MemberState.UNJOINED)
    assert not member.can_commit()
    while (
        registry.waiting[0] or registry.revoking[0]
    ):  # and nothing is told of the others, who are as they were
        registry.carry_out(0)
        registry.finish(0)
    assert len(member.owned) == PARTITIONS


def test_whoever_is_not_polled_for_long_withdraws_and_comes_back() -> None:
    registry = alone()
    member = registry.members[0]
    member.pause("no poll")
    registry.take(0)
    registry.settle()
    assert registry.ids == {}
    assert registry.owners == {}
    member.resume(registry.now)
    registry.take(0)
    registry.settle()
    assert len(member.owned) == PARTITIONS


def test_another_subscription_is_registered_under_another_id() -> None:
    registry = alone()
    member = registry.members[0]
    member.subscribe(["orders", "bills"], registry.now)
    registry.take(0)
    assert registry.kinds_waiting(0) == [Register]
    member.on_topics({"orders": TopicInfo(PARTITIONS), "bills": TopicInfo(1)}, registry.now)
    registry.take(0)
    registry.settle()
    assert registry.seen() == {"m0.1": {"orders": 1, "bills": 1}}
    assert TopicPartition("bills", 0) in member.owned
    member.subscribe(["bills"], registry.now)
    registry.take(0)
    registry.settle()
    assert member.owned == {TopicPartition("bills", 0)}


def test_whoever_unsubscribes_stays_registered_and_leaves_its_partitions_to_the_others() -> None:
    registry = Registry()
    registry.start(0)
    registry.start(1)
    registry.settle()
    registry.members[0].subscribe([], registry.now)
    registry.take(0)
    registry.settle()
    assert registry.seen() == {"m0.1": {}, "m1": {"orders": 1}}
    assert registry.members[0].owned == frozenset()
    assert len(registry.members[1].owned) == PARTITIONS


def test_an_answer_that_was_lost_is_asked_for_again_in_the_next_connection() -> None:
    registry = Registry()
    registry.join(0)
    member = registry.members[0]
    claim = registry.only_waiting(0, ClaimPartitions)
    # it was carried out, and nobody heard of it
    registry.owners = dict.fromkeys(claim.partitions, registry.sessions[0])
    registry.waiting[0].clear()
    member.on_failure(claim, ConnectionError("cut"), registry.now)
    member.on_suspended(registry.now)
    member.on_connected(registry.now)
    registry.take(0)
    registry.settle()
    assert len(member.owned) == PARTITIONS


def test_partitions_that_a_topic_gets_are_shared_out_too() -> None:
    registry = alone()
    registry.partitions += 3
    registry.settle()
    assert len(registry.members[0].owned) == PARTITIONS + 3


def test_a_registration_that_is_refused_is_tried_again() -> None:
    registry = Registry()
    registry.start(0)
    registry.refuse(0)
    assert registry.waiting[0] == []
    registry.settle()
    assert len(registry.reading[0]) == PARTITIONS


def test_whoever_is_removed_before_it_saw_itself_registers_again() -> None:
    registry = Registry()
    registry.start(0)
    registry.carry_out(0)
    registry.ids.clear()
    registry.settle()
    assert len(registry.reading[0]) == PARTITIONS


@pytest.mark.parametrize("known", [True, False], ids=["heard", "unheard"])
def test_partitions_that_were_claimed_and_move_meanwhile_are_given_back(known: bool) -> None:
    """The share changes while a Claim is under way: nobody else could read what it made this member own."""
    registry = Registry()
    registry.join(0)
    claim = registry.only_waiting(0, ClaimPartitions)
    registry.join(1)  # half of it is the other's
    if known:
        registry.carry_out(0)
    else:
        registry.owners = dict.fromkeys(claim.partitions, registry.sessions[0])
        registry.waiting[0].clear()
        registry.members[0].on_failure(claim, ConnectionError("cut"), registry.now)
    registry.settle()
    assert [len(share) for share in registry.reading] == [4, 3, 0, 0]


def test_what_is_lost_in_a_session_that_goes_on_is_given_back_if_it_moved() -> None:
    registry = alone()
    registry.cut(0)
    registry.pass_time(round(SESSION_MS / 50))
    assert registry.reading[0] == set()
    registry.start(1)
    registry.carry_out(1)
    registry.link(0)
    registry.settle()
    assert [len(share) for share in registry.reading] == [4, 3, 0, 0]


def test_whoever_stops_polling_while_there_is_no_connection_withdraws_in_the_next() -> None:
    registry = alone()
    registry.cut(0)
    registry.pause(0)
    registry.link(0)
    registry.settle()
    assert (registry.ids, registry.owners) == ({}, {})


def test_a_withdrawal_without_an_answer_is_repeated() -> None:
    registry = alone()
    registry.pause(0)
    for _ in range(3):
        registry.rng.seed(2)  # the effect is not carried out
        registry.cut(0)
        assert registry.ids
        registry.link(0)
        assert registry.kinds_waiting(0) == [Withdraw]
    registry.settle()
    assert (registry.ids, registry.owners) == ({}, {})


def test_a_subscription_that_changes_before_the_first_is_registered_gets_a_name_of_its_own() -> None:
    registry = Registry()
    registry.start(0)
    registry.resubscribe(0)
    assert [effect.member_id for effect in registry.waiting[0] if isinstance(effect, Register)] == ["m0"]
    registry.carry_out(0)
    again = registry.only_waiting(0, Register)
    assert again.member_id == "m0.1"


def test_a_subscription_that_could_not_be_registered_is_registered_in_the_next_connection() -> None:
    registry = alone()
    registry.members[0].subscribe(["bills"], registry.now)
    registry.take(0)
    registry.rng.seed(2)
    registry.cut(0)
    registry.link(0)
    registry.settle()
    assert registry.seen() == {"m0.1": {"bills": 1}}
    assert registry.owners == {}


def test_whoever_stood_still_for_most_of_a_session_delivers_nothing_until_zookeeper_has_answered() -> None:
    registry = alone()
    member = registry.members[0]
    registry.carry_out_all(0)
    registry.pass_time(45)
    heard = registry.now
    registry.carry_out_all(0)
    deadline = member.next_deadline()
    assert deadline == heard + SESSION_MS / 3
    registry.pass_to(deadline)
    registry.only_waiting(0, CheckRegistry)
    assert member.next_deadline() == heard + SESSION_MS * 2 / 3
    registry.pass_to(heard + SESSION_MS * 2 / 3 - 1)
    assert registry.at_risk == [False] * MEMBERS
    registry.pass_to(registry.now + 1)
    assert registry.at_risk == [True, False, False, False]
    registry.carry_out(0)
    assert registry.at_risk == [False] * MEMBERS
    assert len(registry.reading[0]) == PARTITIONS


def test_without_an_answer_for_most_of_a_session_delivery_stops() -> None:
    registry = alone()
    registry.carry_out_all(0)
    for _ in range(25):
        registry.pass_time(2)  # and nothing is carried out
    assert registry.waiting[0]
    assert registry.at_risk == [False] * MEMBERS
    registry.pass_time(40)
    assert registry.at_risk == [True, False, False, False]


def test_partitions_that_are_given_up_are_lost_once_their_owner_was_removed() -> None:
    registry = alone()
    registry.join(1)
    (moving,) = registry.revoking[0]
    assert not moving.lost
    del registry.owners[moving.partitions[-1]]
    registry.tell(0)
    assert registry.revoking[0][-1].lost
    assert registry.reading[0] == set()


def test_a_registration_by_others_with_no_threads_gets_nothing_and_breaks_nothing() -> None:
    assert share_of("a", {"a": {"orders": 0}}, {"orders": 3}) == set()
    assert len(share_of("a", {"a": {"orders": 1}, "b": {"orders": 0}}, {"orders": 3})) == 3


def test_a_rebalance_is_reported_with_what_it_moved_and_how_long_it_took() -> None:
    registry = alone()
    member, every = registry.members[0], [TopicPartition("orders", n) for n in range(PARTITIONS)]
    (begun,) = registry.events(0, RebalanceStarted)
    assert begun.generation == -1
    (joined,) = registry.events(0, RebalanceCompleted)
    assert joined.assignment == joined.assigned == tuple(every)
    assert joined.revoked == ()
    assert joined.generation == member.generation == 0
    (assigned,) = registry.events(0, Assign)
    assert (assigned.generation, assigned.added, assigned.kept) == (0, tuple(every), ())
    registry.told[0].clear()
    registry.join(1)
    (begun,) = registry.events(0, RebalanceStarted)
    assert (begun.generation, begun.reason) == (0, "the members changed")
    registry.now += 70
    registry.finish(0)
    (left,) = registry.events(0, RebalanceCompleted)
    assert left.assignment == tuple(every[:4])
    assert (left.generation, left.assigned, left.revoked) == (1, (), tuple(every[4:]))
    assert not left.leader
    assert left.duration_ms == 70
    (assigned,) = registry.events(0, Assign)
    assert (assigned.generation, assigned.added, assigned.kept) == (1, (), tuple(every[:4]))


def test_partitions_of_a_second_claim_are_added_to_those_of_the_first() -> None:
    registry = Registry()
    first = TopicPartition("orders", 0)
    registry.owners = {TopicPartition("orders", n): SOMEBODY for n in range(1, PARTITIONS)}
    registry.join(0)
    registry.carry_out(0)
    assert registry.reading[0] == {first}
    (waits,) = registry.events(0, RebalanceRetried)
    refused = "or ZooKeeper refuses the claim"
    assert waits.reason == f"another owner still has orders-1, orders-2, orders-3 and 3 more, {refused}"
    for number in (4, 5, 6):
        registry.owners[TopicPartition("orders", number)] = registry.sessions[0]
    registry.members[0].on_freed(TopicPartition("orders", 4), registry.now)
    registry.pass_time(1)
    registry.carry_out(0)
    waits = registry.events(0, RebalanceRetried)[-1]
    assert waits.reason == f"another owner still has orders-1, orders-2, orders-3, {refused}"
    registry.owners = dict.fromkeys(registry.reading[0], registry.sessions[0])
    registry.settle()
    (joined,) = registry.events(0, RebalanceCompleted)
    assert len(joined.assigned) == PARTITIONS
    added = [(len(each.added), len(each.kept)) for each in registry.events(0, Assign)]
    assert added == [(1, 0), (3, 1), (3, 4)]


def test_a_claim_that_was_refused_is_repeated_after_growing_pauses_or_when_something_is_freed() -> None:
    registry = Registry()
    registry.owners = {TopicPartition("orders", 3): SOMEBODY}
    registry.join(0)
    registry.pass_time(2)  # the topics are looked at again
    member = registry.members[0]
    for attempt in range(3):
        registry.carry_out(0)
        assert registry.waiting[0] == []
        pause = registry.events(0, RebalanceRetried)[-1]
        assert pause.reason == "another owner still has orders-3, or ZooKeeper refuses the claim"
        assert pause.delay_ms == pytest.approx(100 * 2**attempt, rel=0.2)
        assert member.next_deadline() == registry.now + pause.delay_ms
        registry.now += pause.delay_ms
        member.do_due(registry.now)
        registry.take(0)
        (again,) = registry.waiting[0]
        assert isinstance(again, ClaimPartitions)
        assert again.partitions == (TopicPartition("orders", 3),)
    registry.carry_out(0)
    registry.owners.clear()
    registry.owners.update(dict.fromkeys(registry.reading[0], registry.sessions[0]))
    member.on_freed(TopicPartition("orders", 3), registry.now)
    assert member.next_deadline() == registry.now + FREED_MS
    registry.pass_to(registry.now + FREED_MS)
    registry.carry_out(0)
    assert len(registry.reading[0]) == PARTITIONS
    # another rebalance begins with the shortest pause again
    registry.partitions += 1
    registry.owners[TopicPartition("orders", PARTITIONS)] = SOMEBODY
    registry.see_topics(0)
    registry.carry_out(0)
    assert registry.events(0, RebalanceRetried)[-1].delay_ms == pytest.approx(100, rel=0.2)


def test_another_share_is_claimed_at_once_while_the_one_before_waits_for_its_pause() -> None:
    registry = Registry()
    registry.owners = {TopicPartition("orders", 3): SOMEBODY}
    registry.join(0)
    registry.carry_out(0)
    assert registry.waiting[0] == []
    registry.add_partition()
    claim = registry.only_waiting(0, ClaimPartitions)
    assert TopicPartition("orders", PARTITIONS) in claim.partitions


def test_a_connection_that_comes_back_in_time_loses_nothing_later_and_waits_for_no_pause() -> None:
    registry = alone()
    member = registry.members[0]
    registry.carry_out_all(0)
    member.on_failure(CheckRegistry(()), ConnectionError("not the pending one"), registry.now)
    registry.pass_time(50)
    assert registry.waiting[0]
    registry.cut(0)
    (refused,) = registry.events(0, RebalanceRetried)
    assert "cut" in refused.reason
    registry.link(0)
    registry.only_waiting(0, CheckRegistry)
    registry.carry_out(0)
    registry.told[0].clear()
    for _ in range(3 * SESSION_MS // 1_000):
        registry.pass_time(20)
        registry.carry_out(0)
    assert (registry.told[0], registry.revoking[0]) == ([], [])
    assert len(registry.reading[0]) == PARTITIONS


def test_doubts_are_reported_with_the_silence_and_their_end() -> None:
    registry = alone()
    member = registry.members[0]
    registry.pass_time(45)
    heard = registry.now
    registry.carry_out_all(0)
    registry.now += 1_500
    member.on_suspended(registry.now)
    registry.take(0)
    (doubt,) = registry.events(0, SessionInDoubt)
    assert doubt.silent_ms == registry.now - heard
    assert registry.events(0, SessionResumed) == []
    member.on_connected(registry.now)
    registry.take(0)
    registry.carry_out(0)
    assert len(registry.events(0, SessionResumed)) == 1


def test_a_session_that_is_over_ends_the_doubt_with_the_loss() -> None:
    registry = alone()
    registry.expire(0)
    assert registry.at_risk == [True, False, False, False]
    registry.link(0)
    (loss,) = registry.revoking[0]
    assert loss.lost
    assert loss.reason == "the session with ZooKeeper is over"
    assert registry.at_risk == [False] * MEMBERS
    registry.finish(0)
    registry.carry_out_all(0)
    assert registry.seen() == {"m0": {"orders": 1}}
    assert registry.owners == {}  # what it knew of the others is of the old session
    registry.tell(0)
    assert registry.kinds_waiting(0) == [ClaimPartitions]
    assert registry.events(0, SessionResumed) == []
    assert registry.members[0].generation == 1
    registry.settle()
    assert len(registry.reading[0]) == PARTITIONS


def test_whoever_is_removed_while_the_others_are_read_registers_and_has_lost_its_partitions() -> None:
    registry = alone()
    registry.ids.clear()
    registry.tell(0)
    (loss,) = registry.revoking[0]
    assert loss.reason == "this member was removed from ZooKeeper"
    registry.carry_out_all(0)
    registry.finish(0)
    registry.carry_out_all(0)
    # until it has seen itself among the members it does not know its share
    assert (registry.seen(), registry.owners) == ({"m0": {"orders": 1}}, {})


def test_nothing_is_committed_before_the_first_share_or_without_a_session() -> None:
    registry = Registry()
    registry.start(0)
    assert not registry.members[0].can_commit()
    registry.carry_out(0)
    registry.tell(0)
    assert registry.members[0].can_commit()
    registry.cut(0)
    assert not registry.members[0].can_commit()


def test_topics_are_looked_at_again_when_members_come_or_go() -> None:
    """Else one that knows of fewer partitions than who comes gives some up, and neither reads them."""
    registry = alone()
    member, look, mine = registry.members[0], NeedTopics(frozenset()), {"orders": 1}
    registry.pass_time(20)
    for members, looks in ((["m0", "m1"], 1), (["m0", "m1"], 0), (["m0"], 1), (["m0"], 0)):
        for late_ms in (0.0, LOOK_MS / 2):  # those that come together are looked at once
            member.members_changed(dict.fromkeys(members, mine), registry.now + late_ms)
        deadline = member.next_deadline()
        assert deadline is not None
        assert (deadline == registry.now + LOOK_MS) == bool(looks)
        member.do_due(registry.now + LOOK_MS - 1)
        assert look not in member.take_effects()
        registry.now += LOOK_MS
        member.do_due(registry.now)
        assert member.take_effects().count(look) == looks


def test_topics_that_are_looked_at_for_the_first_time_are_not_asked_for_again() -> None:
    registry = Registry()
    member = registry.members[0]
    member.members_changed({"m1": {"orders": 1}}, registry.now)
    assert member.next_deadline() is None


def test_partitions_of_a_topic_are_shared_out_when_they_become_known() -> None:
    registry = Registry()
    registry.partitions = 0
    registry.join(0)
    assert registry.waiting[0] == []
    registry.partitions = 2
    registry.see_topics(0)
    claim = registry.only_waiting(0, ClaimPartitions)
    assert len(claim.partitions) == 2
    assert registry.events(0, RebalanceStarted)[-1].reason == "the partitions changed"
    # one answer without the topic may be of a broker that lags
    registry.members[0].on_topics({}, registry.now)
    registry.take(0)
    registry.settle()
    assert len(registry.reading[0]) == 2


def test_a_partition_that_was_claimed_in_vain_is_not_lost_when_its_owner_goes() -> None:
    registry = Registry()
    registry.owners = {TopicPartition("orders", 0): SOMEBODY}
    registry.join(0)
    registry.carry_out(0)
    registry.join(1)
    (moving,) = registry.revoking[0]
    del registry.owners[TopicPartition("orders", 0)]
    registry.members[0].on_freed(TopicPartition("orders", 0), registry.now)
    registry.take(0)
    assert registry.revoking[0] == [moving]
    assert len(registry.reading[0]) == PARTITIONS - 1  # until that revocation is done
    registry.settle()
    assert [len(share) for share in registry.reading] == [4, 3, 0, 0]


def test_nothing_is_asked_without_a_session_or_by_a_member_that_stays_away() -> None:
    registry = Registry()
    registry.start(0)
    member = registry.make(0)
    member.subscribe(["orders"], 0.0)
    assert member.take_effects() == []
    assert member.next_deadline() is None
    member.pause("no poll")
    member.on_connected(0.0)
    assert not any(isinstance(effect, RegistryEffect) for effect in member.take_effects())
    member.resume(0.0)
    (register,) = member.take_effects()
    assert isinstance(register, Register)
    member.on_expired(0.0)
    member.on_failure(register, ConnectionError("it is over"), 0.0)
    member.do_due(SESSION_MS)
    assert not any(isinstance(effect, RegistryEffect) for effect in member.take_effects())
    assert not member.announce_leave("it is over", 0.0)


def test_a_registration_that_is_made_after_the_member_was_paused_is_withdrawn() -> None:
    registry = Registry()
    registry.start(0)
    member = registry.members[0]
    member.on_suspended(registry.now)  # the request is on its way, and is carried out in the next connection
    member.pause("no poll")
    member.on_connected(registry.now)
    registry.take(0)
    registry.carry_out(0)
    registry.tell(0)
    assert member.state is MemberState.UNJOINED
    assert registry.kinds_waiting(0) == [Withdraw]
    registry.carry_out(0)
    assert registry.ids == {}


def test_whoever_comes_back_registers_once_it_has_withdrawn_whatever_it_had_asked_before() -> None:
    registry = Registry()
    registry.join(0)
    registry.pause(0)
    registry.pause(0)  # and back again
    assert registry.kinds_waiting(0) == [ClaimPartitions, Withdraw]
    registry.carry_out(0)
    assert registry.reading[0] == set()
    assert registry.kinds_waiting(0) == [Withdraw]
    registry.carry_out(0)
    assert (registry.ids, registry.owners) == ({}, {})
    assert registry.kinds_waiting(0) == [Register]
    registry.settle()
    assert len(registry.reading[0]) == PARTITIONS


def test_a_member_says_whether_it_registers_for_the_first_time() -> None:
    registry = Registry()
    registry.start(0)
    for reason in ("first join", "registered again"):
        (register,) = registry.waiting[0]
        registry.waiting[0].clear()
        registry._change(0, register)
        registry.members[0].members_changed(registry.seen(), registry.now)  # before the response
        registry.members[0].on_answer(register, frozenset(), registry.now)
        registry.take(0)
        assert registry.events(0, RebalanceStarted)[-1].reason == reason
        registry.settle()
        registry.carry_out_all(0)
        registry.doubt_commit(0)


def test_a_check_in_the_next_connection_finds_what_somebody_removed_meanwhile() -> None:
    registry = alone()
    registry.cut(0)
    del registry.owners[TopicPartition("orders", 2)]
    registry.link(0)
    registry.carry_out(0)
    (loss,) = registry.revoking[0]
    assert loss.reason == "this member was removed from its partitions in ZooKeeper"
    assert not registry.at_risk[0]
    # and is told of it once
    registry.carry_out(0)
    registry.members[0].on_freed(TopicPartition("orders", 2), registry.now)
    registry.take(0)
    assert not any(isinstance(effect, Register) for effect in registry.waiting[0])
    registry.settle()
    assert len(registry.reading[0]) == PARTITIONS


def test_a_refusal_is_an_answer_too() -> None:
    registry = alone()
    member = registry.members[0]
    registry.carry_out_all(0)
    asked = member.next_deadline()
    assert asked is not None
    registry.pass_to(asked)
    registry.now += 500
    registry.refuse(0)
    assert not registry.at_risk[0]
    doubtful = asked + SESSION_MS * 2 / 3
    registry.pass_to(doubtful - 1)
    assert not registry.at_risk[0]
    registry.pass_to(doubtful)
    assert registry.at_risk[0]


def test_a_commit_that_is_refused_for_another_reason_loses_nothing() -> None:
    registry = alone()
    member = registry.members[0]
    member.commit_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, member.generation, registry.now)
    registry.take(0)
    assert registry.revoking[0] == []
    assert len(member.owned) == PARTITIONS


def test_a_member_that_lost_its_partitions_rebalances_when_it_is_registered_again_and_not_before() -> None:
    registry = alone()
    registry.doubt_commit(0)
    registry.told[0].clear()
    registry.add_partition()
    assert registry.events(0, RebalanceStarted) == []
    registry.settle()
    assert len(registry.events(0, RebalanceCompleted)) == 1


def test_a_topic_that_is_deleted_is_given_up_and_one_that_is_not_known_yet_is_waited_for() -> None:
    registry = Registry()
    registry.there[0] = True
    member = registry.members[0]
    registry.living.add(registry.sessions[0])
    member.subscribe(["orders"], registry.now)
    member.on_connected(registry.now)
    registry.take(0)
    registry.carry_out(0)
    registry.tell(0)
    assert member.state is MemberState.UNJOINED
    registry.see_topics(0)
    registry.settle()
    assert len(registry.reading[0]) == PARTITIONS
    member.on_topics({}, registry.now)  # a broker that lags
    assert len(member.owned) == PARTITIONS
    member.on_topics({}, registry.now, frozenset({"orders"}))
    registry.take(0)
    registry.finish(0)
    registry.carry_out_all(0)
    assert (registry.reading[0], registry.owners) == (set(), {})


def test_new_partitions_are_claimed_when_the_old_ones_are_released() -> None:
    """Step 2 of the algorithm comes before step 3, also for a claim that was on its way."""
    registry = Registry()
    registry.owners = {TopicPartition("orders", 3): SOMEBODY}
    for number in (0, 1):
        registry.start(number)
        registry.carry_out(number)
    registry.tell(1)
    registry.carry_out(1)
    assert {partition.partition for partition in registry.reading[1]} == {4, 5, 6}
    registry.join(2, seen_by=1)  # it has 3 and 4 now, and reads 4 to 6
    assert not any(isinstance(effect, ClaimPartitions) for effect in registry.waiting[1])
    registry.finish(1)
    while registry.waiting[1]:
        assert len(registry.reading[1]) == 1
        registry.carry_out(1)
    registry.pass_time(30)
    (claim,) = registry.waiting[1]
    assert isinstance(claim, ClaimPartitions)
    registry.join(3, seen_by=1)  # it has 2 and 3 now
    registry.owners.clear()
    registry.carry_out(1)
    assert {partition.partition for partition in registry.reading[1]} == {4}
    registry.finish(1)
    assert registry.reading[1] == set()
    registry.settle()
    assert [len(share) for share in registry.reading] == [2, 2, 2, 1]


def test_a_claim_without_an_answer_is_nothing_to_lose() -> None:
    registry = Registry()
    registry.join(0)
    registry.refuse(0)
    registry.members[0].on_freed(TopicPartition("orders", 0), registry.now)
    registry.take(0)
    assert registry.revoking[0] == []
    assert registry.members[0].state is MemberState.COMPLETING


def test_pauses_begin_with_the_shortest_after_each_connection() -> None:
    registry = alone()
    registry.pass_time(45)
    for _ in range(4):
        registry.refuse(0)
        registry.pass_time(40)
    registry.cut(0)
    registry.link(0)
    registry.refuse(0)
    assert registry.events(0, RebalanceRetried)[-1].delay_ms == pytest.approx(100, rel=0.2)


def test_a_member_that_changes_its_topics_is_in_doubt_like_any_other() -> None:
    registry = alone()
    registry.resubscribe(0)
    assert registry.kinds_waiting(0) == [Register]
    registry.pass_time(round(SESSION_MS / 50))
    assert registry.at_risk[0]


def test_each_rebalance_has_a_generation_of_its_own_and_says_why_it_began() -> None:
    registry = alone()
    begun: list[str] = []
    for _ in range(2):
        registry.told[0].clear()
        registry.add_partition()
        registry.settle()
        begun += [event.reason for event in registry.events(0, StateChanged)]
    assert registry.members[0].generation == 2
    assert begun == [
        "the partitions changed",
        "its share is 8 partitions",
        "it owns its share of 8 partitions",
        "the partitions changed",
        "its share is 9 partitions",
        "it owns its share of 9 partitions",
    ]


def test_a_loss_says_what_was_lost_by() -> None:
    registry = alone()
    registry.doubt_commit(0)
    (loss,) = registry.revoking[0]
    assert loss.reason == "another member has gone on from its partitions"
    registry = alone()
    registry.members[0].on_suspended(registry.now)
    registry.now += SESSION_MS
    registry.members[0].do_due(registry.now)
    registry.take(0)
    (loss,) = registry.revoking[0]
    assert loss.reason == "ZooKeeper did not answer for the time of a session"


def test_without_a_subscription_a_member_is_not_registered() -> None:
    member = Registry().members[0]
    member.on_connected(0.0)
    assert member.take_effects() == []
    assert member.next_deadline() is None


def test_what_a_claim_in_vain_may_have_brought_is_checked_beside_what_is_owned() -> None:
    registry = alone()
    registry.add_partition()
    registry.refuse(0)  # it may have been carried out
    registry.cut(0)
    registry.link(0)
    check = registry.only_waiting(0, CheckRegistry)
    assert len(check.partitions) == PARTITIONS + 1


def test_a_rebalance_in_which_a_share_shrinks_twice_reports_all_that_was_given_up() -> None:
    registry = alone()
    for number in (1, 2):
        registry.join(number)
    first, second = registry.revoking[0]
    assert first.reason == second.reason == MOVES
    registry.settle()
    given_up = (*first.partitions, *second.partitions)
    assert registry.events(0, RebalanceCompleted)[-1].revoked == tuple(sorted(given_up))
