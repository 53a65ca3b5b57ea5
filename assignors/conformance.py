"""Checks for any assignor. The AssertionErrors that they raise describe group, assignment and problem.

Use them through :mod:`kohort.testing.assignors`. ``make`` is the assignor's class, or any function that
returns a new instance, as each member of a group has its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..protocol import Subscription, TopicPartition
from .base import Assignor, GroupAssignment, Member, RebalanceProtocol, TopicInfo
from .registry import AssignorError, load_assignor
from .simulation import MakeAssignor, run_rounds
from .validation import ProblemKind, validate_assignment

#: Number of random orders of the same group that are tried, besides the reverse order.
_SHUFFLES = 5
#: Rounds within which a cooperative group must settle (KIP-429).
_MAX_ROUNDS = 2
_SHOWN_PROBLEMS = 3
#: Generation of the first assignment; higher than any that a member of the cases claims.
_GENERATION = 100


@dataclass(frozen=True, slots=True)
class Case:
    """A group to assign partitions to; ``name`` appears in failure messages."""

    name: str
    topics: Mapping[str, TopicInfo]
    members: Mapping[str, Member]


def check_assignor(make: MakeAssignor, cases: Iterable[Case] | None = None) -> None:
    """Run :func:`check_contract`, and the other checks on every case (by default :func:`standard_cases`)."""
    check_contract(make)
    for case in standard_cases() if cases is None else cases:
        for check in CHECKS:
            check(make, case)


def check_contract(make: MakeAssignor) -> None:
    """Check that name, rebalance protocols and signatures are such that a consumer can use the assignor."""
    try:
        load_assignor(make())
    except AssignorError as error:
        raise AssertionError(str(error)) from error


def check_valid(make: MakeAssignor, case: Case) -> None:
    """Check that each member has an entry, that each partition in the result exists, is subscribed to by its
    member and is assigned once, and that the arguments are unchanged.
    """
    topics, members = dict(case.topics), dict(case.members)
    assignor = make()
    answer = _run_assignor(assignor, case, members, topics)
    for what, before, after in (("topics", case.topics, topics), ("members", case.members, members)):
        if after != dict(before):
            raise _failure_of(assignor, case, f"changed the {what} it was given")
    problems = validate_assignment(topics, members, answer, _protocol_of(assignor))
    unsafe = [str(problem) for problem in problems if problem.kind.unsafe]
    if unsafe:
        raise _failure_of(assignor, case, _few_texts(unsafe), answer)
    left_out = sorted(members.keys() - answer.keys())
    if left_out:
        raise _failure_of(assignor, case, f"has no entry for {left_out}; give an empty list", answer)


def check_complete(make: MakeAssignor, case: Case) -> None:
    """Check that every partition of every subscribed topic is assigned (or, COOPERATIVE, still claimed)."""
    assignor = make()
    answer = _run_assignor(assignor, case)
    problems = validate_assignment(case.topics, case.members, answer, _protocol_of(assignor))
    missing = [str(problem) for problem in problems if problem.kind is ProblemKind.MISSING]
    if missing:
        raise _failure_of(assignor, case, _few_texts(missing), answer)


def check_order_independent(make: MakeAssignor, case: Case) -> None:
    """Check that the order of members and topics has no influence: the next leader may see another order."""
    assignor = make()
    expected = _as_sets(_run_assignor(assignor, case))
    for order in _other_orders(case):
        answer = _run_assignor(make(), order)
        if _as_sets(answer) != expected:
            raise _failure_of(
                assignor, case, f"answers differently when members come as {list(order.members)}", answer
            )


def check_stable(make: MakeAssignor, case: Case) -> None:
    """Check that members that rejoin with their partitions get the same again, from a new instance as leader.

    A cooperative group may take a second round to settle first.
    """
    assignor = make()
    try:
        done = run_rounds(
            make, case.topics, case.members, _protocol_of(assignor), _GENERATION, max_rounds=_MAX_ROUNDS
        )
    except Exception as error:
        raise _failure_of(assignor, case, f"raised {error!r} while the group settled") from error
    answer = done.answers[-1]
    _check_form(assignor, case, answer)
    if done.problems:
        raise _failure_of(
            assignor, case, f"round {len(done.answers)}: {_few_texts(map(str, done.problems))}", answer
        )
    again = _run_assignor(make(), case, done.members)
    if _as_sets(again) != _as_sets(answer):
        words = f"moves partitions although nothing has changed: {again} after"
        raise _failure_of(assignor, case, words, answer)


#: Checks that run on every case.
CHECKS = (check_valid, check_complete, check_order_independent, check_stable)


def _run_assignor(
    assignor: Assignor,
    case: Case,
    members: Mapping[str, Member] | None = None,
    topics: Mapping[str, TopicInfo] | None = None,
) -> GroupAssignment:
    topics, members = case.topics if topics is None else topics, case.members if members is None else members
    try:
        answer = assignor.assign(topics, members)
    except Exception as error:
        raise _failure_of(assignor, case, f"raised {error!r}") from error
    _check_form(assignor, case, answer)
    return answer


def _check_form(assignor: Assignor, case: Case, answer: GroupAssignment) -> None:
    """Raise the AssertionError of an answer that is no dict of lists of TopicPartition."""
    malformed = [
        str(problem)
        for problem in validate_assignment(case.topics, case.members, answer)
        if problem.kind is ProblemKind.MALFORMED
    ]
    if malformed:
        raise _failure_of(assignor, case, _few_texts(malformed))


def standard_cases() -> list[Case]:
    """Return edge cases and ordinary groups, which every assignor must handle."""
    orders, clicks = TopicInfo(6), TopicInfo(3)
    both = {"orders": orders, "clicks": clicks}
    in_racks = {"orders": TopicInfo(6, tuple(frozenset({f"r{number % 3}"}) for number in range(6)))}
    rnd, many = random.Random(1), [f"t{i}" for i in range(6)]
    of_many = {f"c{i}": " ".join(rnd.sample(many, rnd.randint(1, 6))) for i in range(20)}
    alike = {f"c{i}": "clicks" for i in range(12)}
    return [
        Case("no members", both, {}),
        Case("no topics", {}, _make_group(a="orders", b="orders")),
        Case("a topic without partitions", {"orders": TopicInfo(0)}, _make_group(a="orders")),
        Case("one member", both, _make_group(a="orders clicks")),
        Case("more members than partitions", {"clicks": clicks}, _make_group(**alike)),
        Case("a topic named twice", both, _make_group(a="orders orders", b="orders clicks")),
        Case("a topic that does not exist", both, _make_group(a="orders gone", b="gone clicks", c="gone")),
        Case("a topic nobody wants", both, _make_group(a="orders", b="orders")),
        Case("an idle member", both, _make_group(a="orders clicks", b="", c="orders clicks")),
        Case("subscriptions that overlap", both, _make_group(a="orders", b="orders clicks", c="clicks")),
        Case(
            "static and dynamic members",
            both,
            _with_instances(_make_group(a="orders", b="orders", c="clicks")),
        ),
        Case("racks", in_racks, _with_racks(_make_group(a="orders", b="orders", c="orders"))),
        Case(
            "claims that are wrong",
            both,
            _with_claims(_make_group(a="orders clicks", b="orders", c="clicks")),
        ),
        Case("many", {name: TopicInfo(7 * i) for i, name in enumerate(many)}, _make_group(**of_many)),
    ]


def _make_group(**topics: str) -> dict[str, Member]:
    """Make members by name; the value is the topics that the member subscribes to, separated by spaces."""
    return {name: Member(name, Subscription(tuple(wanted.split()))) for name, wanted in topics.items()}


def _with_instances(members: dict[str, Member]) -> dict[str, Member]:
    # the last becomes the first: static members come before dynamic ones
    last = list(members)[-1]
    return {name: replace(one, instance_id="i0" if name == last else None) for name, one in members.items()}


def _with_racks(members: dict[str, Member]) -> dict[str, Member]:
    return {
        name: replace(one, subscription=replace(one.subscription, rack=f"r{i}"))
        for i, (name, one) in enumerate(members.items())
    }


def _with_claims(members: dict[str, Member]) -> dict[str, Member]:
    """Claims of one partition by two members in one generation and by one in an older generation, and of
    partitions that are gone, negative, repeated or not subscribed to.
    """
    claims = {
        "a": (5, [("orders", 0), ("orders", 0), ("orders", 1), ("orders", 99), ("gone", 0)]),
        "b": (5, [("orders", 0), ("orders", -1), ("clicks", 2)]),
        "c": (3, [("orders", 1), ("clicks", 0), ("clicks", 2)]),
    }
    claiming = {}
    for name, one in members.items():
        generation, owned = claims[name]
        partitions = tuple(TopicPartition(topic, number) for topic, number in owned)
        subscription = replace(one.subscription, owned=partitions, generation=generation)
        claiming[name] = replace(one, subscription=subscription)
    return claiming


def _other_orders(case: Case) -> list[Case]:
    topics, members = list(case.topics.items()), list(case.members.items())
    orders = [Case(case.name, dict(reversed(topics)), dict(reversed(members)))]
    rnd = random.Random(1)
    for _ in range(_SHUFFLES):
        rnd.shuffle(topics)
        rnd.shuffle(members)
        orders.append(Case(case.name, dict(topics), dict(members)))
    return orders


def _protocol_of(assignor: Assignor) -> RebalanceProtocol:
    return max(assignor.rebalance_protocols)


def _as_sets(answer: GroupAssignment) -> dict[str, frozenset[TopicPartition]]:
    return {member_id: frozenset(partitions) for member_id, partitions in answer.items()}


def _failure_of(
    assignor: Assignor, case: Case, what: str, answer: GroupAssignment | None = None
) -> AssertionError:
    lines = [f"assignor {assignor.name!r}, {case.name}: {what}"]
    lines += [
        f"  topic {name}: {info.partition_count} partitions" for name, info in sorted(case.topics.items())
    ]
    for member_id, member in sorted(case.members.items()):
        given = "" if answer is None else f" got {_brief_text(answer.get(member_id, ()))}"
        owned = f" owned {_brief_text(member.subscription.owned)}" if member.subscription.owned else ""
        lines.append(f"  member {member_id} wants {', '.join(member.topics) or 'nothing'}{owned}{given}")
    return AssertionError("\n".join(lines))


def _few_texts(told: Iterable[str]) -> str:
    problems = list(told)
    more = len(problems) - _SHOWN_PROBLEMS
    return "; ".join(problems[:_SHOWN_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def _brief_text(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in partitions) or "nothing"
