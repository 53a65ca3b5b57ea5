"""The workbench for assignors: what a group would get, what would move, and how even the loads would be.

A :class:`GroupSnapshot` is a group at one moment, live (:func:`~.group_snapshot.take_snapshot`) or from a
file (:func:`~.group_file.read_group`). :class:`WhatIf` changes one, :func:`try_assignor` runs an assignor
on it. Nothing here talks to a broker.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, pstdev

from ...assignors import (
    Assignor,
    BalanceLimit,
    GroupAssignment,
    MeasuringAssignor,
    Member,
    TopicInfo,
    explain_balance,
    load_assignor,
)
from ...assignors.server import load_server_assignor
from ...assignors.simulation import MakeAssignor, run_rounds, with_owned
from ...protocol import KohortError, Subscription, TopicPartition
from ..groups.results import PartitionMove
from ..tables import short

Assignment = Mapping[str, Sequence[TopicPartition]]
Weights = Mapping[TopicPartition, float]


class WorkbenchError(KohortError):
    """Raised for an impossible group or change; the text says what is wrong and what to give instead."""


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group: its topics, its members as their leader sees them, their partitions, and the weights of these.

    ``names`` are shown for member ids: instance ids, or the client ids where they tell members apart.
    ``weights`` may be empty; partitions that are not in it have the mean weight. ``protocol`` is the
    assignor that the group uses now, "" if unknown.
    """

    group: str
    topics: Mapping[str, TopicInfo]
    members: Mapping[str, Member]
    owned: Mapping[str, tuple[TopicPartition, ...]]
    protocol: str = ""
    generation: int = 1
    weights: Weights = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, member_id: str) -> str:
        """The name shown for a member; its id where no better one is known."""
        return self.names.get(member_id, member_id)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Changes to a group. ``leave``: names or ids of members. ``join``: this many new ones, subscribed to
    ``join_topics``, or else like most members. ``topics``: numbers of partitions, new topics included.
    """

    leave: tuple[str, ...] = ()
    join: int = 0
    join_topics: tuple[str, ...] = ()
    topics: Mapping[str, int] = field(default_factory=dict)

    def apply(self, group: GroupSnapshot) -> GroupSnapshot:
        """The group after the changes. Raises WorkbenchError for an unknown member or subscription."""
        gone = {_member_called(group, name) for name in self.leave}
        members = {m: member for m, member in group.members.items() if m not in gone}
        topics = {**group.topics, **{name: _resize_topic(group, name, n) for name, n in self.topics.items()}}
        wanted = self.join_topics or (_usual_topics(group) if self.join else ())
        for number in range(1, self.join + 1):
            name = f"new-{number}"
            members[name] = Member(name, Subscription(wanted))
        owned = {m: tuple(p for p in group.owned.get(m, ()) if _is_in_topics(p, topics)) for m in members}
        return replace(group, members=members, topics=topics, owned=owned)


@dataclass(frozen=True, slots=True)
class Balance:
    """Loads in partitions and, if weights are known, in weight. Standard deviations are over all members."""

    members: int
    partitions: int
    least: int
    most: int
    mean: float
    deviation: float
    least_weight: float | None = None
    most_weight: float | None = None
    weight_deviation: float | None = None


@dataclass(frozen=True, slots=True)
class MemberLoad:
    """One member before and after; None if it is not in the group then."""

    member: str
    name: str
    before: int | None
    after: int | None
    weight_before: float | None
    weight_after: float | None


@dataclass(frozen=True, slots=True)
class Trial:
    """Answer of an assignor; if ``error`` or ``problems`` are set, it cannot be used.

    ``moved`` counts partitions taken from one present member and given to another, ``placed`` those that had
    no owner or whose owner leaves. ``rounds`` counts JoinGroup rounds until all is settled; ``duration_ms``
    is the time that the assignor took.
    """

    assignor: str
    protocol: str
    before: Balance
    after: Balance | None = None
    error: str | None = None
    problems: tuple[str, ...] = ()
    rounds: int = 0
    duration_ms: float = 0.0
    moved: int = 0
    placed: int = 0
    moves: tuple[PartitionMove, ...] = ()
    loads: tuple[MemberLoad, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether the assignor gave an assignment without problems."""
        return self.error is None and not self.problems


def try_assignor(
    spec: str | type[Assignor],
    now: GroupSnapshot,
    then: GroupSnapshot | None = None,
    measured: Weights | None = None,
) -> Trial:
    """Run the assignor, given as in a consumer's settings, on ``then``, which ``now`` has become.

    Assignors that want measured weights get ``measured``, or the group's weights. Raises AssignorError for
    one that cannot be found; what it does wrong is in the trial.
    """
    after = now if then is None else then
    weights = after.weights if measured is None else measured

    def make() -> Assignor:
        # a coordinator has one more assignor: uniform
        assignor = load_server_assignor(spec) if isinstance(spec, str) else load_assignor(spec)
        if isinstance(assignor, MeasuringAssignor) and assignor.measure is not None:
            assignor.measured(weights)
        return assignor

    assignor = make()
    protocol = max(assignor.rebalance_protocols)
    label = spec if isinstance(spec, str) else assignor.name
    trial = Trial(label, protocol.name.lower(), balance(now, now.owned))
    began = time.perf_counter()
    try:
        members = {m: _joining_member(make, now, after, m) for m in after.members}
        done = run_rounds(make, after.topics, members, protocol, after.generation + 1)
    except Exception as error:  # it is anyone's code
        return replace(trial, error=f"{type(error).__name__}: {error}")
    took_ms = round((time.perf_counter() - began) * 1_000, 3)
    trial = replace(trial, rounds=len(done.answers), duration_ms=took_ms)
    problems = [str(problem) for problem in done.problems]
    if not done.settled:
        problems.append(f"it still moves partitions after {trial.rounds} rounds")
    if problems:
        return replace(trial, problems=tuple(problems))
    answer = done.answers[-1]
    moves = moves_between(now, after, answer)
    moved = sum(move.from_owner in after.members for move in moves)
    return replace(
        trial,
        after=balance(after, answer),
        moved=moved,
        placed=len(moves) - moved,
        moves=moves,
        loads=_member_loads(now, after, answer),
    )


def _joining_member(make: MakeAssignor, now: GroupSnapshot, then: GroupSnapshot, member_id: str) -> Member:
    """The member as it would join under the assignor: another assignor's user data would be misread."""
    member = then.members[member_id]
    assignor = make()
    if member_id not in now.members or now.protocol not in ("", assignor.name):
        user_data = assignor.user_data(member.topics)
        member = replace(member, subscription=replace(member.subscription, user_data=user_data))
    if member_id not in now.members:
        return member
    return with_owned(make, member, then.owned.get(member_id, ()), then.generation)


def named_limits(group: GroupSnapshot) -> list[BalanceLimit]:
    """Reasons why the balance of the group cannot be better, with the names that are shown for members."""
    limits = explain_balance(group.topics, group.members)
    return [replace(limit, members=tuple(map(group.name, limit.members))) for limit in limits]


def balance(group: GroupSnapshot, owned: Assignment) -> Balance:
    """Spread of the members' loads."""
    counts = [len(owned.get(m, ())) for m in group.members]
    if not counts:
        return Balance(0, 0, 0, 0, 0.0, 0.0)
    found = Balance(len(counts), sum(counts), min(counts), max(counts), fmean(counts), pstdev(counts))
    if not group.weights:
        return found
    weights = [_weight_of(group, owned.get(m, ())) for m in group.members]
    return replace(
        found, least_weight=min(weights), most_weight=max(weights), weight_deviation=pstdev(weights)
    )


def moves_between(
    now: GroupSnapshot, then: GroupSnapshot, answer: GroupAssignment
) -> tuple[PartitionMove, ...]:
    """Every partition that gets another owner, by topic and number; owners are member ids."""
    had = {partition: m for m, mine in now.owned.items() for partition in mine}
    gets = {partition: m for m in then.members for partition in answer.get(m, ())}
    return tuple(
        PartitionMove(*partition, had.get(partition), m)
        for partition, m in sorted(gets.items())
        if had.get(partition) != m
    )


def name_owners(now: GroupSnapshot, then: GroupSnapshot, move: PartitionMove) -> tuple[str, str]:
    """Who gives the partition and who gets it, by the names that people read."""
    old = "nobody" if move.from_owner is None else short(now.name(move.from_owner))
    return old, short(then.name(move.to_owner or ""))


def moves_by_pair(
    now: GroupSnapshot, then: GroupSnapshot, moves: Iterable[PartitionMove]
) -> dict[tuple[str, str], list[TopicPartition]]:
    """The partitions that move, by :func:`name_owners`."""
    pairs: dict[tuple[str, str], list[TopicPartition]] = {}
    for move in moves:
        pairs.setdefault(name_owners(now, then, move), []).append(TopicPartition(move.topic, move.partition))
    return pairs


def _member_loads(now: GroupSnapshot, then: GroupSnapshot, answer: GroupAssignment) -> tuple[MemberLoad, ...]:
    rows = []
    for m in {**now.members, **then.members}:
        both = (
            now.owned.get(m, ()) if m in now.members else None,
            answer.get(m, []) if m in then.members else None,
        )
        counts = (None if owned is None else len(owned) for owned in both)
        weights = (None if owned is None or not then.weights else _weight_of(then, owned) for owned in both)
        rows.append(MemberLoad(m, now.name(m), *counts, *weights))
    return tuple(sorted(rows, key=lambda row: (row.name, row.member)))


def _weight_of(group: GroupSnapshot, partitions: Sequence[TopicPartition]) -> float:
    usual = fmean(group.weights.values())
    return sum(group.weights.get(partition, usual) for partition in partitions)


def _member_called(group: GroupSnapshot, name: str) -> str:
    exact = [m for m, member in group.members.items() if name in (m, member.instance_id, group.name(m))]
    found = exact or [m for m in group.members if m.startswith(name)]
    if len(found) != 1:
        known = ", ".join(sorted(group.name(m) for m in group.members)) or "nobody"
        what = "is no member" if not found else f"is the beginning of {len(found)} members"
        raise WorkbenchError(f"{name!r} {what} of the group: give one of {known}")
    return found[0]


def _usual_topics(group: GroupSnapshot) -> tuple[str, ...]:
    counts = Counter(tuple(sorted(set(member.topics))) for member in group.members.values())
    if not counts:
        raise WorkbenchError("the group has no members to take a subscription from: give N:TOPIC,TOPIC")
    return max(sorted(counts), key=lambda topics: counts[topics])


def _resize_topic(group: GroupSnapshot, name: str, count: int) -> TopicInfo:
    known = group.topics.get(name)
    return TopicInfo(count, known.racks[:count] if known and known.partition_count >= count else ())


def _is_in_topics(partition: TopicPartition, topics: Mapping[str, TopicInfo]) -> bool:
    topic = topics.get(partition.topic)
    return topic is not None and 0 <= partition.partition < topic.partition_count
