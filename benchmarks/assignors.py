"""Sticky assignment, fresh and after one member has left, beside kafka-python and aiokafka.

``python -m benchmarks.assignors [--rounds 5] [--peer-partitions 2000] [--cases NAME ...]``

Each client reads members from the bytes they would send and writes each member's assignment to bytes, as a
leader does between JoinGroup and SyncGroup. The best of the rounds counts; peers run once. Peers are left out
above ``--peer-partitions``: at 20,000 partitions and 500 members they take about 20 s a call.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kohort.assignors import GroupAssignment, Member, StickyAssignor, TopicInfo
from kohort.protocol import (
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

#: What each member sends when joining.
Joined = dict[str, bytes]
#: Encoded assignments by member.
Answer = dict[str, bytes]
Lead = Callable[[dict[str, int], Joined], Answer]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    topics: dict[str, int]
    wanted: dict[str, list[str]]

    @property
    def partitions(self) -> int:
        return sum(self.topics.values())

    @property
    def title(self) -> str:
        return f"{self.name}: {self.partitions:,} partitions, {len(self.wanted):,} members"


def cases() -> list[Case]:
    return [
        _same("small", topics=10, partitions=200, members=100),
        _same("medium", topics=100, partitions=200, members=500),
        _mixed("mixed", topics=50, members=200),
        _same("large", topics=200, partitions=2000, members=2000),
    ]


def _same(name: str, topics: int, partitions: int, members: int) -> Case:
    counts = {f"topic-{i:03}": partitions for i in range(topics)}
    return Case(name, counts, {f"member-{i:04}": list(counts) for i in range(members)})


def _mixed(name: str, topics: int, members: int) -> Case:
    rnd = random.Random(7)
    counts = {f"topic-{i:03}": rnd.randint(10, 200) for i in range(topics)}
    wanted = {f"member-{i:04}": rnd.sample(list(counts), rnd.randint(1, topics // 2)) for i in range(members)}
    return Case(name, counts, wanted)


def lead_kohort(topics: dict[str, int], joined: Joined) -> Answer:
    infos = {topic: TopicInfo(count) for topic, count in topics.items()}
    members = {name: Member(name, decode_subscription(data)) for name, data in joined.items()}
    answer = StickyAssignor().assign(infos, members)
    return {name: encode_assignment(partitions) for name, partitions in answer.items()}


class _Cluster:
    """As much of a cluster's metadata as the peers' assignors ask for."""

    def __init__(self, topics: dict[str, int]) -> None:
        self._partitions = {topic: set(range(count)) for topic, count in topics.items()}

    def topics(self) -> set[str]:
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return self._partitions.get(topic)


def lead_kafka_python(topics: dict[str, int], joined: Joined) -> Answer:
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.protocol.consumer.group import JoinGroupResponse
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

    member = JoinGroupResponse.JoinGroupResponseMember
    members = [
        member(member_id=name, group_instance_id=None, metadata=ConsumerProtocolSubscription.decode(data))
        for name, data in joined.items()
    ]
    answer = StickyPartitionAssignor().assign(_Cluster(topics), members)
    return {name: assignment.encode() for name, assignment in answer.items()}


def lead_aiokafka(topics: dict[str, int], joined: Joined) -> Answer:
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

    members = {name: ConsumerProtocolMemberMetadata.decode(data) for name, data in joined.items()}
    answer = StickyPartitionAssignor.assign(_Cluster(topics), members)
    return {name: assignment.encode() for name, assignment in answer.items()}


def joins(wanted: dict[str, list[str]], owned: GroupAssignment, prefix: bytes = b"") -> Joined:
    """Subscriptions v0 with sticky user data; ``prefix`` is what kafka-python puts in front of that."""
    joined = {}
    for name, topics in wanted.items():
        mine = StickyAssignor()
        mine.on_assignment(owned.get(name, []), 1)
        user_data = prefix + (mine.user_data(topics) or b"") if owned else None
        joined[name] = encode_subscription(Subscription(tuple(topics), user_data), version=0)
    return joined


def decoded(answer: Answer) -> GroupAssignment:
    return {name: list(decode_assignment(data).partitions) for name, data in answer.items()}


def best_of(rounds: int, lead: Lead, topics: dict[str, int], joined: Joined) -> tuple[float, Answer]:
    """Seconds of the fastest round, and the answer."""
    fastest, answer = float("inf"), {}
    for _ in range(rounds):
        started = time.perf_counter()
        answer = lead(topics, joined)
        fastest = min(fastest, time.perf_counter() - started)
    return fastest, answer


@dataclass(frozen=True, slots=True)
class Result:
    client: str
    fresh: float
    leave: float
    moves: int
    highest: int
    lowest: int


def measure(client: str, lead: Lead, case: Case, rounds: int, prefix: bytes = b"") -> Result:
    fresh, first = best_of(rounds, lead, case.topics, joins(case.wanted, {}))
    owned = decoded(first)
    remaining = dict(list(case.wanted.items())[1:])
    leave, second = best_of(rounds, lead, case.topics, joins(remaining, owned, prefix))
    after = decoded(second)
    loads = [len(given) for given in after.values()]
    return Result(client, fresh, leave, _moves(owned, after, remaining), max(loads), min(loads))


def _moves(before: GroupAssignment, after: GroupAssignment, members: Iterable[str]) -> int:
    """Partitions that members who stayed have lost."""
    return sum(len(set(before[name]) - set[TopicPartition](after[name])) for name in members)


def report(case: Case, results: list[Result]) -> None:
    print(case.title)
    print(f"  {'':14}{'fresh':>12}{'leave':>12}{'ratio':>16}{'moves':>8}{'load':>10}")
    ours = results[0]
    for result in results:
        ratio = f"{result.fresh / ours.fresh:.0f}x / {result.leave / ours.leave:.0f}x"
        print(
            f"  {result.client:14}{result.fresh * 1000:>9.1f} ms{result.leave * 1000:>9.1f} ms"
            f"{ratio:>16}{result.moves:>8}{f'{result.lowest}-{result.highest}':>10}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.assignors")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of kohort, of which the best counts")
    parser.add_argument("--peer-partitions", type=int, default=2000, help="largest case the peers are asked")
    parser.add_argument("--cases", nargs="*", choices=[case.name for case in cases()], help="default: all")
    arguments = parser.parse_args()
    for case in cases():
        if arguments.cases and case.name not in arguments.cases:
            continue
        results = [measure("kohort", lead_kohort, case, arguments.rounds)]
        if case.partitions <= arguments.peer_partitions:
            results.append(measure("kafka-python", lead_kafka_python, case, 1, prefix=b"\x00\x01"))
            results.append(measure("aiokafka", lead_aiokafka, case, 1))
        report(case, results)


if __name__ == "__main__":
    main()
