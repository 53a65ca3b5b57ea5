"""A group without a network: members take their assignments and join again until the group has settled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..protocol import TopicPartition
from .base import Assignor, GroupAssignment, Member, RebalanceProtocol, TopicInfo
from .validation import Problem, validate_assignment

MakeAssignor = Callable[[], Assignor]

#: Rounds after which a cooperative group that still moves partitions is given up.
MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Settled:
    """Outcome of a group's rounds. ``answers`` has that of each round, the final one last.

    ``problems`` are those of the first answer that is wrong; with any, the rounds ended there. ``settled`` is
    False for a group that went on moving for too long.
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
    """Assign, and under COOPERATIVE again until nobody gives anything up. One leader throughout.

    ``generation`` is that of the first answer. ``members`` of the result are the members after the last one.
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
        members = rejoined(make, members, answer, generation + number)
        if protocol is RebalanceProtocol.EAGER or not given_up:
            return Settled(tuple(answers), members, (), settled=True)
    return Settled(tuple(answers), members, (), settled=False)


def rejoined(
    make: MakeAssignor, members: Mapping[str, Member], answer: GroupAssignment, generation: int
) -> dict[str, Member]:
    """The members after everyone has taken its part of ``answer`` and joins again."""
    return {
        name: with_owned(make, member, tuple(answer.get(name, ())), generation)
        for name, member in members.items()
    }


def with_owned(
    make: MakeAssignor, member: Member, owned: tuple[TopicPartition, ...], generation: int
) -> Member:
    """The member as it joins with what it got in ``generation``.

    Its user data is that of an assignor which was told so; where the assignor takes no notice of assignments,
    it stays what the member sent, for it speaks of other things.
    """
    assignor = make()
    user_data = member.subscription.user_data
    if type(assignor).on_assignment is not Assignor.on_assignment:
        assignor.on_assignment(owned, generation)
        user_data = assignor.user_data(member.topics)
    joined = replace(member.subscription, user_data=user_data, owned=owned, generation=generation)
    return replace(member, subscription=joined)
