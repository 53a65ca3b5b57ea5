"""Members that share partitions out by a registry: shares, and any order of what happens."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from kohort.assignors import TopicInfo
from kohort.consumer.effects import Assign, Revoke, SessionAtRisk
from kohort.consumer.registry import (
    Check,
    Claim,
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
            elif isinstance(effect, Revoke):
                if effect.lost:
                    self.reading[number].clear()
                self.revoking[number].append(effect)
            elif isinstance(effect, SessionAtRisk):
                self.at_risk[number] = effect.at_risk

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
            member.connected(self.now)
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
        self.members[number].topics(there, self.now, gone)
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
            self.members[number].done(effect, self._change(number, effect), self.now)
            self.take(number)

    def refuse(self, number: int) -> None:
        """The next effect of a member is refused."""
        if self.waiting[number] and self.there[number] and self.linked[number]:
            self.members[number].undone(self.waiting[number].pop(0), OSError("no rights"), self.now)
            self.take(number)

    def _change(self, number: int, effect: RegistryEffect) -> frozenset[TopicPartition]:
        session = self.sessions[number]
        match effect:
            case Register(name, topics):
                self.ids = {i: row for i, row in self.ids.items() if row[0] != session}
                self.ids[name] = (session, dict.fromkeys(topics, 1))
            case Claim(partitions):
                return frozenset(p for p in partitions if self.owners.setdefault(p, session) == session)
            case Release(partitions) | Withdraw(partitions):
                for partition in partitions:
                    if self.owners.get(partition) == session:
                        del self.owners[partition]
                if isinstance(effect, Withdraw):
                    self.ids = {name: row for name, row in self.ids.items() if row[0] != session}
            case Check(partitions):
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
            member.undone(effect, ConnectionError("cut"), self.now)
        member.suspended(self.now)
        self.take(number)

    def link(self, number: int) -> None:
        """There is a connection again: with the same session, if that is not over."""
        if not self.there[number] or self.linked[number]:
            return
        member = self.members[number]
        if self.sessions[number] not in self.living:
            member.expired(self.now)
            self.take(number)
            self._new_session(number)
        self.linked[number] = True
        member.connected(self.now)
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
                self.members[number].freed(partition, self.now)
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

    def pass_time(self, number: int) -> None:
        self.now += 50 * number
        for each, member in enumerate(self.members):
            if self.there[each]:
                member.advance(self.now)
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
    assert len(registry.reading[0]) == PARTITIONS
    return registry


def test_delivery_stops_before_others_may_have_gone_on_and_goes_on_when_they_have_not() -> None:
    registry = alone()
    member = registry.members[0]
    member.suspended(registry.now)
    assert not member.can_commit()
    registry.take(0)
    assert registry.at_risk == [True, False, False, False]
    assert len(member.owned) == PARTITIONS
    member.connected(registry.now)
    registry.take(0)
    assert registry.at_risk[0]  # until ZooKeeper says that it is still the owner
    registry.carry_out(0)
    assert registry.at_risk == [False] * MEMBERS
    assert member.can_commit()
    assert len(member.owned) == PARTITIONS


def test_what_was_owned_is_lost_after_the_time_of_a_session() -> None:
    registry = alone()
    member = registry.members[0]
    member.suspended(registry.now)
    registry.pass_time(round(SESSION_MS / 50))
    (loss,) = registry.revoking[0]
    assert loss.lost
    assert member.owned == frozenset()
    member.connected(registry.now)
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
    member.topics({"orders": TopicInfo(PARTITIONS), "bills": TopicInfo(1)}, registry.now)
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
    registry.start(0)
    registry.carry_out(0)
    registry.tell(0)
    member = registry.members[0]
    (claim,) = registry.waiting[0]
    assert isinstance(claim, Claim)
    # it was carried out, and nobody heard of it
    registry.owners = dict.fromkeys(claim.partitions, registry.sessions[0])
    registry.waiting[0].clear()
    member.undone(claim, ConnectionError("cut"), registry.now)
    member.suspended(registry.now)
    member.connected(registry.now)
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
    registry.start(0)
    registry.carry_out(0)
    registry.tell(0)
    (claim,) = registry.waiting[0]
    assert isinstance(claim, Claim)
    registry.start(1)
    registry.carry_out(1)
    registry.tell(0)  # half of it is the other's
    if known:
        registry.carry_out(0)
    else:
        registry.owners = dict.fromkeys(claim.partitions, registry.sessions[0])
        registry.waiting[0].clear()
        registry.members[0].undone(claim, ConnectionError("cut"), registry.now)
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
    registry.rng.seed(2)  # the effect is not carried out
    registry.cut(0)
    assert registry.ids
    registry.link(0)
    registry.settle()
    assert (registry.ids, registry.owners) == ({}, {})


def test_a_subscription_that_changes_before_the_first_is_registered_gets_a_name_of_its_own() -> None:
    registry = Registry()
    registry.start(0)
    registry.resubscribe(0)
    assert [effect.member_id for effect in registry.waiting[0] if isinstance(effect, Register)] == ["m0"]
    registry.carry_out(0)
    (again,) = registry.waiting[0]
    assert isinstance(again, Register)
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
    while registry.waiting[0]:
        registry.carry_out(0)
    heard = registry.now
    deadline = member.next_deadline()
    assert deadline is not None
    assert deadline - heard == pytest.approx(SESSION_MS / 3, abs=1_000)
    registry.now += SESSION_MS * 0.7
    member.advance(registry.now)
    registry.take(0)
    assert registry.at_risk == [True, False, False, False]
    registry.carry_out(0)
    assert registry.at_risk == [False] * MEMBERS
    assert len(registry.reading[0]) == PARTITIONS


def test_without_an_answer_for_most_of_a_session_delivery_stops() -> None:
    registry = alone()
    while registry.waiting[0]:
        registry.carry_out(0)
    for _ in range(25):
        registry.pass_time(2)  # and nothing is carried out
    assert registry.waiting[0]
    assert registry.at_risk == [False] * MEMBERS
    registry.pass_time(40)
    assert registry.at_risk == [True, False, False, False]


def test_partitions_that_are_given_up_are_lost_once_their_owner_was_removed() -> None:
    registry = alone()
    registry.start(1)
    registry.carry_out(1)
    registry.tell(0)
    (moving,) = registry.revoking[0]
    assert not moving.lost
    del registry.owners[moving.partitions[-1]]
    registry.tell(0)
    assert registry.revoking[0][-1].lost
    assert registry.reading[0] == set()


def test_a_registration_by_others_with_no_threads_gets_nothing_and_breaks_nothing() -> None:
    assert share_of("a", {"a": {"orders": 0}}, {"orders": 3}) == set()
    assert len(share_of("a", {"a": {"orders": 1}, "b": {"orders": 0}}, {"orders": 3})) == 3
