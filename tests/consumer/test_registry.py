"""Members that share partitions out by a registry: shares, and any order of what happens."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from kohort.assignors import TopicInfo
from kohort.consumer.effects import Assign, Revoke, SessionAtRisk
from kohort.consumer.registry import (
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

    def __init__(self) -> None:
        self.now = 0.0
        self.partitions = PARTITIONS
        self.ids: dict[str, tuple[int, Topics]] = {}
        self.owners: dict[TopicPartition, int] = {}
        self.members = [
            RegistryMembership(config(session_timeout_ms=SESSION_MS), random.Random(number), f"m{number}")
            for number in range(MEMBERS)
        ]
        self.waiting: list[list[RegistryEffect]] = [[] for _ in self.members]
        #: Who reads what: from Assign until the revocation is done.
        self.reading: list[set[TopicPartition]] = [set() for _ in self.members]
        self.revoking: list[list[Revoke]] = [[] for _ in self.members]
        self.at_risk = [False] * MEMBERS
        self.there = [False] * MEMBERS

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
            self.members[number] = member = RegistryMembership(
                config(session_timeout_ms=SESSION_MS), random.Random(number), f"m{number}"
            )
            member.subscribe(["orders"], self.now)
            self.see_topics(number)
            member.connected(self.now)
            self.take(number)

    def see_topics(self, number: int) -> None:
        self.members[number].topics({"orders": TopicInfo(self.partitions)}, self.now)
        self.take(number)

    def grow(self, number: int) -> None:
        """The topic has another partition, and one member sees that now."""
        self.partitions = min(self.partitions + 1, 2 * PARTITIONS)
        if self.there[number]:
            self.see_topics(number)

    def carry_out(self, number: int) -> None:
        """The next effect of a member."""
        if not self.waiting[number]:
            return
        effect, member = self.waiting[number].pop(0), self.members[number]
        outcome: frozenset[TopicPartition] = frozenset()
        if not self.there[number]:
            return
        match effect:
            case Register(name, topics):
                self.ids = {i: row for i, row in self.ids.items() if row[0] != number}
                self.ids[name] = (number, dict.fromkeys(topics, 1))
            case Claim(partitions):
                outcome = frozenset(p for p in partitions if self.owners.setdefault(p, number) == number)
            case Release(partitions):
                for partition in partitions:
                    if self.owners.get(partition) == number:
                        del self.owners[partition]
            case Withdraw():
                self._forget(number)
        member.done(effect, outcome, self.now)
        self.take(number)

    def _forget(self, number: int) -> None:
        self.ids = {name: row for name, row in self.ids.items() if row[0] != number}
        self.owners = {p: owner for p, owner in self.owners.items() if owner != number}

    def tell(self, number: int) -> None:
        """What a member sees of the others, now."""
        if self.there[number]:
            self.members[number].members_changed(self.seen(), self.now)
            self.members[number].freed(self.now)
            self.take(number)

    def seen(self) -> Mapping[str, Topics]:
        return {name: topics for name, (_, topics) in self.ids.items()}

    def finish(self, number: int) -> None:
        """A revocation of a member is over: what it gave up was committed."""
        if self.revoking[number]:
            self.reading[number].difference_update(self.revoking[number].pop(0).partitions)
            self.members[number].revocation_done(self.now)
            self.take(number)

    def expire(self, number: int) -> None:
        """The session ends, and the member learns it at once."""
        if self.there[number]:
            self._forget(number)
            self.waiting[number].clear()
            self.members[number].expired(self.now)
            self.take(number)
            self.members[number].connected(self.now)
            self.take(number)

    def leave(self, number: int) -> None:
        if self.there[number] and not self.reading[number]:
            self.members[number].leave("the test is over with it")
            self.take(number)
            while self.waiting[number]:
                self.carry_out(number)
            self.there[number] = False

    def pass_time(self, number: int) -> None:
        self.now += 50 * number
        for each, member in enumerate(self.members):
            if self.there[each]:
                member.advance(self.now)
                self.take(each)

    def check(self) -> None:
        readers = Counter(partition for share in self.reading for partition in share)
        assert [p for p, count in readers.items() if count > 1] == []
        for number, share in enumerate(self.reading):
            assert all(self.owners.get(partition) == number for partition in share)

    def settle(self) -> None:
        for _ in range(60):
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
    Registry.start: 2,
    Registry.carry_out: 12,
    Registry.tell: 8,
    Registry.finish: 4,
    Registry.expire: 1,
    Registry.leave: 1,
    Registry.pass_time: 6,
    Registry.grow: 1,
}


@pytest.mark.parametrize("seed", range(20))
def test_a_partition_has_one_reader_in_any_order_and_all_have_one_in_the_end(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        registry = Registry()
        for step in rng.choices(list(STEPS), list(STEPS.values()), k=250):
            step(registry, rng.randrange(MEMBERS))
            registry.check()
        registry.settle()
        there = [number for number in range(MEMBERS) if registry.there[number]]
        for number in there:
            member = registry.members[number]
            assert member.state is MemberState.STABLE
            assert member.owned == registry.reading[number]
        read = sorted(p for share in registry.reading for p in share)
        every = [TopicPartition("orders", number) for number in range(registry.partitions)]
        assert read == (every if there else [])
        assert sorted(registry.owners) == read
        assert registry.seen().keys() == {registry.members[number].member_id for number in there}


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


def test_an_answer_that_was_lost_is_asked_for_again_in_the_next_connection() -> None:
    registry = Registry()
    registry.start(0)
    registry.carry_out(0)
    registry.tell(0)
    member = registry.members[0]
    (claim,) = registry.waiting[0]
    assert isinstance(claim, Claim)
    member.suspended(registry.now)
    # it was carried out, and nobody heard of it
    registry.owners = dict.fromkeys(claim.partitions, 0)
    registry.waiting[0].clear()
    member.undone(claim, ConnectionError("cut"), registry.now)
    member.connected(registry.now)
    registry.take(0)
    registry.settle()
    assert len(member.owned) == PARTITIONS


def test_partitions_that_a_topic_gets_are_shared_out_too() -> None:
    registry = alone()
    registry.partitions += 3
    registry.settle()
    assert len(registry.members[0].owned) == PARTITIONS + 3
