"""Rebalances without a network: members take their assignments and rejoin until the group has settled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..protocol import TopicPartition
from .base import Assignor, GroupAssignment, Member, RebalanceProtocol, TopicInfo
from .validation import Problem, validate_assignment

MakeAssignor = Callable[[], Assignor]

#: Most rounds of a cooperative group before it counts as not settled.
MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Settled:
    """Outcome of a group's rounds. ``answers``: the assignment of each. ``members``: those after the last
    one.

    ``problems``: those of the first invalid assignment, which ends the rounds. ``settled`` is False if
    partitions still moved in the last round allowed.
    """

    answers: tuple[GroupAssignment, ...]
    members: Mapping[str, Member]
    problems: tuple[Problem, ...]
    settled: bool


def run_rounds(
    make: MakeAssignor,
    topics: Mapping[str, TopicInfo],
    members: Mapping[str, Member],
    protocol: RebalanceProtocol,
    generation: int,
    *,
    max_rounds: int = MAX_ROUNDS,
) -> Settled:
    """Assign once, and under COOPERATIVE again until no member gives anything up.

    One instance leads all rounds. ``generation`` is that of the first round.
    """
    leader = make()
    answers: list[GroupAssignment] = []
    for number in range(max_rounds):
        answer = leader.assign(topics, members)
        answers.append(answer)
        problems = validate_assignment(topics, members, answer, protocol)
        if problems:
            return Settled(tuple(answers), members, tuple(problems), settled=True)
        given_up = any(set(m.subscription.owned) - set(answer.get(name, ())) for name, m in members.items())
        members = rejoin_members(make, members, answer, generation + number)
        if protocol is RebalanceProtocol.EAGER or not given_up:
            return Settled(tuple(answers), members, (), settled=True)
    return Settled(tuple(answers), members, (), settled=False)


def rejoin_members(
    make: MakeAssignor, members: Mapping[str, Member], answer: GroupAssignment, generation: int
) -> dict[str, Member]:
    """Return the members as they rejoin with their partitions of ``answer``."""
    return {
        name: with_owned(make, member, tuple(answer.get(name, ())), generation)
        for name, member in members.items()
    }


def with_owned(
    make: MakeAssignor, member: Member, owned: tuple[TopicPartition, ...], generation: int
) -> Member:
    """Return the member as it joins with the partitions that it got in ``generation``.

    If the assignor overrides ``on_assignment``, a new instance makes the user data. Otherwise the user data
    does not depend on assignments and stays what the member sent.
    """
    assignor = make()
    user_data = member.subscription.user_data
    if type(assignor).on_assignment is not Assignor.on_assignment:
        assignor.on_assignment(owned, generation)
        user_data = assignor.user_data(member.topics)
    joined = replace(member.subscription, user_data=user_data, owned=owned, generation=generation)
    return replace(member, subscription=joined)
