"""Sticky assignors of three clients, asked for the same: what each is given, and what it took."""

from __future__ import annotations

import gc
import multiprocessing
import random
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kohort.assignors import GroupAssignment, Member, StickyAssignor, TopicInfo
from kohort.protocol import (
    Subscription,
    decode_assignment,
    decode_request,
    decode_request_header,
    decode_subscription,
    encode_assignment,
    encode_request,
    encode_subscription,
)
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

T = TypeVar("T")

HERE = Path(__file__).resolve().parent
_JAVA_TIMEOUT_S = 300
_SYNC_GROUP_VERSION = 5


@dataclass(frozen=True, slots=True)
class Case:
    """``goals``: milliseconds fresh and after a member has left."""

    name: str
    topics: dict[str, int]
    wanted: dict[str, list[str]]
    goals: tuple[float, float] = field(default=(0, 0))

    @property
    def partitions(self) -> int:
        return sum(self.topics.values())

    @property
    def title(self) -> str:
        same = len({tuple(topics) for topics in self.wanted.values()}) == 1
        some = "" if same else f", each wants some of {len(self.topics)} topics"
        return f"{self.partitions:,} x {len(self.wanted):,}{some}"


@dataclass(frozen=True, slots=True)
class Took:
    """Milliseconds, and what the second answer was like."""

    fresh: float
    leave: float
    moves: int
    highest: int
    lowest: int


def same(name: str, topics: int, partitions: int, members: int, goals: tuple[float, float]) -> Case:
    counts = {f"topic-{i:03}": partitions for i in range(topics)}
    return Case(name, counts, {f"member-{i:04}": list(counts) for i in range(members)}, goals)


def mixed(name: str, topics: int, members: int, goals: tuple[float, float]) -> Case:
    rnd = random.Random(491)  # 50 topics of this seed have 5,235 partitions
    counts = {f"topic-{i:03}": rnd.randint(10, 200) for i in range(topics)}
    wanted = {f"member-{i:04}": rnd.sample(list(counts), rnd.randint(1, topics // 2)) for i in range(members)}
    return Case(name, counts, wanted, goals)


def fastest(rounds: int, work: Callable[[], T]) -> tuple[float, T]:
    """Milliseconds of the fastest round, and what it answered."""
    best = float("inf")
    for _ in range(rounds):
        answer = None  # to let go of the last one takes its time too
        gc.collect()
        begin = time.perf_counter()
        answer = work()
        best = min(best, time.perf_counter() - begin)
    assert answer is not None
    return best * 1000, answer


def _judged(fresh: float, leave: float, before: GroupAssignment, after: GroupAssignment) -> Took:
    loads = [len(given) for given in after.values()]
    moves = sum(len(set(before[name]) - set(given)) for name, given in after.items())
    return Took(fresh, leave, moves, max(loads), min(loads))


def _without_the_first(wanted: dict[str, list[str]]) -> dict[str, list[str]]:
    return dict(list(wanted.items())[1:])


def subscriptions(wanted: dict[str, list[str]], owned: GroupAssignment) -> dict[str, Subscription]:
    """What members send; each has its own objects."""
    found = {}
    for name, topics in wanted.items():
        mine = StickyAssignor()
        if owned:
            mine.on_assignment(owned[name], 1)
        found[name] = Subscription(tuple("".join(topic) for topic in topics), mine.user_data(topics))
    return found


def _members(wanted: dict[str, list[str]], owned: GroupAssignment) -> dict[str, Member]:
    return {
        name: Member(name, decode_subscription(encode_subscription(one)))
        for name, one in subscriptions(wanted, owned).items()
    }


def _infos(case: Case) -> dict[str, TopicInfo]:
    return {topic: TopicInfo(count) for topic, count in case.topics.items()}


def kohort(case: Case, rounds: int) -> Took:
    infos = _infos(case)
    joined = _members(case.wanted, {})
    fresh, before = fastest(rounds, lambda: StickyAssignor().assign(infos, joined))
    remaining = _members(_without_the_first(case.wanted), before)
    leave, after = fastest(rounds, lambda: StickyAssignor().assign(infos, remaining))
    return _judged(fresh, leave, before, after)


class _Cluster:
    """As much of a cluster's metadata as kafka-python's assignors ask for."""

    def __init__(self, topics: dict[str, int]) -> None:
        self._partitions = {topic: set(range(count)) for topic, count in topics.items()}

    def topics(self) -> set[str]:
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return self._partitions.get(topic)


def kafka_python(case: Case) -> Took:
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.protocol.consumer.group import JoinGroupResponse
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

    def joined(wanted: dict[str, list[str]], owned: GroupAssignment) -> list[object]:
        found = []
        for name, one in subscriptions(wanted, owned).items():
            # kafka-python has a version in front of its user data
            data = None if one.user_data is None else b"\x00\x01" + one.user_data
            metadata = encode_subscription(Subscription(one.topics, data), version=0)
            found.append(
                JoinGroupResponse.JoinGroupResponseMember(
                    member_id=name,
                    group_instance_id=None,
                    metadata=ConsumerProtocolSubscription.decode(metadata),
                )
            )
        return found

    def answered(answer: dict[str, ConsumerProtocolAssignment]) -> GroupAssignment:
        return {name: list(decode_assignment(one.encode()).partitions) for name, one in answer.items()}

    cluster = _Cluster(case.topics)
    members = joined(case.wanted, {})
    fresh, first = fastest(1, lambda: StickyPartitionAssignor().assign(cluster, members))
    before = answered(first)
    remaining = joined(_without_the_first(case.wanted), before)
    leave, second = fastest(1, lambda: StickyPartitionAssignor().assign(cluster, remaining))
    return _judged(fresh, leave, before, answered(second))


def java(case: Case, classpath: str) -> Took:
    lines = ["\t".join(f"{topic}={count}" for topic, count in case.topics.items())]
    lines += (f"{name}\t{','.join(topics)}" for name, topics in case.wanted.items())
    command = ["java", "-Xmx3g", "-cp", classpath, str(HERE / "StickyAssignment.java")]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=True, timeout=_JAVA_TIMEOUT_S
    )
    fresh, leave, *counts = done.stdout.split()
    return Took(float(fresh), float(leave), *map(int, counts))


def peak_mib(case: Case) -> float:
    """What assigning after a member has left adds to a process's memory at most; in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_mib, (case,))


def _peak_mib(case: Case) -> float:
    infos = _infos(case)
    before = StickyAssignor().assign(infos, _members(case.wanted, {}))
    remaining = _members(_without_the_first(case.wanted), before)
    del before
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    standing = _memory_kib("VmRSS")
    StickyAssignor().assign(infos, remaining)
    return (_memory_kib("VmHWM") - standing) / 1024


def _memory_kib(name: str) -> int:
    return int(re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[0])


@dataclass(frozen=True, slots=True)
class Synced:
    """Milliseconds of the leader's SyncGroup at its own and at the other ends, and its size."""

    encode: float
    decode: float
    mib: float


def sync_group(case: Case, rounds: int) -> Synced:
    """The leader's request, from the assignor's answer; the broker reads it, and all members read theirs."""
    answer = StickyAssignor().assign(_infos(case), _members(case.wanted, {}))
    encode, frame = fastest(rounds, lambda: _sync_request(answer))
    decode, read = fastest(rounds, lambda: _read_sync_request(bytes(frame[4:])))
    assert read == sum(map(len, answer.values())), "what is read is what was written"
    return Synced(encode, decode, len(frame) / 2**20)


def _sync_request(answer: GroupAssignment) -> bytearray:
    rows = [
        SyncGroupRequestAssignment(member_id=name, assignment=encode_assignment(given))
        for name, given in answer.items()
    ]
    body = SyncGroupRequest(
        group_id="group",
        generation_id=1,
        member_id="member",
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="sticky",
        assignments=rows,
    )
    return encode_request(_SYNC_GROUP_VERSION, 1, "client", body)


def _read_sync_request(frame: bytes) -> int:
    body = decode_request(frame, decode_request_header(frame))
    return sum(len(decode_assignment(bytes(row.assignment)).partitions) for row in body.assignments)
