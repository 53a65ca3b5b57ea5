"""Clients of every make in one group, under each assignor that they share, each of them leading once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from kohort.assignors import Assignor, GroupAssignment, TopicInfo, in_member_order
from kohort.assignors import Member as Base
from kohort.protocol import TopicPartition
from tests.clients.drivers import ADAPTED, AIOKAFKA_ASSIGNORS, DRIVERS, KAFKA_PYTHON_ASSIGNORS, Choice
from tests.clients.java_members import ASSIGNORS as JAVA_ASSIGNORS
from tests.clients.java_members import JavaMember, JavaMembers
from tests.clients.members import PATIENCE_S, Group, Member, shared_out

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

PARTITIONS = 10
SESSION_MS = 2_000  # a tenth of it until a member hears of a rebalance
QUIET_S = 0.25  # longer than it takes to hear of one

#: Who has which assignor. librdkafka has no eager ``sticky``, aiokafka no cooperative one.
MAKES = {
    "kohort": {"range", "roundrobin", "sticky", "cooperative-sticky"},
    "java": set(JAVA_ASSIGNORS),
    "kafka-python": set(KAFKA_PYTHON_ASSIGNORS),
    "confluent-kafka": {"range", "roundrobin", "cooperative-sticky"},
    "aiokafka": set(AIOKAFKA_ASSIGNORS),
    "kafka-python with ours": {"range", "roundrobin", "sticky", "cooperative-sticky"},
    "aiokafka with ours": {"range", "roundrobin", "sticky"},
}
CASES = [
    (assignor, leader)
    for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky")
    for leader, known in MAKES.items()
    if assignor in known
]

Anyone = Member | JavaMember


@pytest.fixture(scope="module")
def jvm() -> Iterator[JavaMembers]:
    members = JavaMembers()
    try:
        yield members
    finally:
        members.close()


def settle(members: list[Anyone], quiet_s: float = QUIET_S) -> None:
    """Wait until the partitions are shared out, and stay so for a while."""
    deadline = time.monotonic() + PATIENCE_S
    since = None
    while since is None or time.monotonic() - since < quiet_s:
        assert time.monotonic() < deadline, f"not shared out in {PATIENCE_S:g} s: {members}"
        if not shared_out(members, PARTITIONS):
            since = None
        elif since is None:
            since = time.monotonic()
        time.sleep(0.01)


@pytest.mark.parametrize(("assignor", "leader"), CASES)
def test_a_mixed_group_settles_whoever_leads(
    assignor: str,
    leader: str,
    jvm: JavaMembers,
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
) -> None:
    """The first to join leads, and goes on leading when the others join."""
    topic, name = new_topic("mixed", partitions=PARTITIONS), group("mixed")
    choice = Choice(assignor, session_timeout_ms=SESSION_MS)
    with ExitStack() as stack:

        def join(make: str) -> Anyone:
            if make == "java":
                return stack.enter_context(jvm.join(bootstrap, name, topic, choice))
            return stack.enter_context(Member({**DRIVERS, **ADAPTED}[make], bootstrap, name, topic, choice))

        members = [join(leader)]
        settle(members, 0.0)
        members += [join(make) for make, known in MAKES.items() if assignor in known and make != leader]
        settle(members)
        # some clients rebalance once more, with the same outcome
        described = stable(Group(bootstrap, name))
        assert described.protocol_data == assignor
        assert len(described.members) == len(members)


def stable(group: Group) -> Any:
    """The group's description once it is stable."""
    deadline = time.monotonic() + PATIENCE_S
    while (described := group.describe()).group_state != "Stable":
        assert time.monotonic() < deadline, described
        time.sleep(0.05)
    return described


class ByShare(Assignor):
    """Each member gets as many partitions as its own user data says, in the order of names."""

    name = "by-share"

    def __init__(self, share: int = 0) -> None:
        self.share = share

    def user_data(self, topics: Sequence[str]) -> bytes:
        del topics
        return b"%d" % self.share

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Base]) -> GroupAssignment:
        ordered = in_member_order(members.values())
        answer: GroupAssignment = {member.member_id: [] for member in ordered}
        takers = [member.member_id for member in ordered for _ in range(int(member.user_data or b"0"))]
        for topic, info in sorted(topics.items()):
            for number in range(info.partition_count):
                answer[takers[number % len(takers)]].append(TopicPartition(topic, number))
        return answer


OURS = ("kohort", "kafka-python with ours", "aiokafka with ours")


@pytest.mark.parametrize("leader", OURS)
def test_one_s_own_assignor_runs_in_every_client_that_takes_it(
    leader: str, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    topic, name = new_topic("mixed", partitions=PARTITIONS), group("mixed")
    shares = dict(zip(OURS, (1, 3, 6), strict=True))
    with ExitStack() as stack:
        members: dict[str, Anyone] = {}
        for make in (leader, *(other for other in OURS if other != leader)):
            assignor = f"{__name__}.ByShare?share={shares[make]}"
            choice = Choice(assignor, session_timeout_ms=SESSION_MS)
            driver = {**DRIVERS, **ADAPTED}[make]
            members[make] = stack.enter_context(Member(driver, bootstrap, name, topic, choice))
            wait_for(members[make])
        deadline = time.monotonic() + PATIENCE_S
        while {make: len(member.held) for make, member in members.items()} != shares:
            assert time.monotonic() < deadline, f"not shared out in {PATIENCE_S:g} s: {members}"
            time.sleep(0.01)
        assert Group(bootstrap, name).describe().protocol_data == "by-share"


def wait_for(member: Anyone) -> None:
    """Wait until a member has partitions, and so has joined."""
    deadline = time.monotonic() + PATIENCE_S
    while not member.held:
        assert time.monotonic() < deadline, f"nothing in {PATIENCE_S:g} s: {member}"
        time.sleep(0.01)
