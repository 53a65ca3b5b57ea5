"""The rows of ``benchmarks.coordinator``: what each does to a broker, what it measures, which goal it has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from . import _wire as wire
from ._brokers import Contender
from ._connection import (
    Connection,
    Member,
    WrongAnswerError,
    join_alone,
    lone_members,
    must,
    new_group,
    prepare,
)
from ._crowd import Crowd
from ._load import Stream, checked_stream, one_at_a_time, percentile, pump, pump_once

TOPIC = b"kohort-benchmark"
PARTITIONS = 10
CONNECTIONS = 8
#: Between two changes of a big group.
SETTLE_S = 0.05


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    seconds: float = 2.0
    requests: int = 4000
    groups: int = 300
    #: Members join and leave the big groups this often, of which the median counts.
    changes: int = 5
    #: Bounds of what a row is about; less only where there is no time for so many.
    most_members: int = 1000
    idle_groups: int = 100_000
    #: What a new broker is left alone for before its memory is read.
    rest_s: float = 2.0

    def scaled(self, by: float) -> Effort:
        return replace(
            self,
            seconds=self.seconds * by,
            requests=max(int(self.requests * by), 1),
            groups=max(int(self.groups * by), 1),
            changes=max(int(self.changes * by), 1),
        )


#: Measured figures by metric, and "generator": the share of a processor the generator used, where it matters.
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the table. ``goal`` bounds kohort's figure over Apache Kafka's."""

    key: str
    title: str
    unit: str
    goal: float
    more_is_better: bool = False
    #: The goal bounds kohort's figure itself.
    own: bool = False
    digits: int = 0

    def met(self, ratio: float) -> bool:
        return ratio >= self.goal if self.more_is_better else ratio <= self.goal


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of the table that are measured together."""

    name: str
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Row(Part):
    """Measured on a broker that serves."""

    run: Callable[[str, Effort], Figures]


def _check_heartbeat(answer: bytes) -> None:
    must("Heartbeat", wire.error_after_throttle(answer))


def heartbeat_stream(member: Member) -> Stream:
    def frame(correlation_id: int) -> bytes:
        return wire.heartbeat(member.group, member.generation, member.member_id, correlation_id)

    return checked_stream(member.connection, frame, _check_heartbeat)


def check_commit(answer: bytes, partitions: int) -> None:
    errors = wire.committed(answer)
    if errors.keys() != {(TOPIC, partition) for partition in range(partitions)}:
        raise WrongAnswerError(f"OffsetCommit of {partitions} partitions was answered for {sorted(errors)}")
    for error in errors.values():
        must("OffsetCommit", error)


def _commits(member: Member, partitions: int) -> Stream:
    def frame(number: int) -> bytes:
        return wire.offset_commit(
            member.group,
            member.generation,
            member.member_id,
            TOPIC,
            partitions,
            offset=number,
            correlation_id=number,
        )

    return checked_stream(member.connection, frame, lambda answer: check_commit(answer, partitions))


def heartbeats(bootstrap: str, effort: Effort) -> Figures:
    with lone_members(bootstrap, CONNECTIONS, TOPIC) as members:
        rate = pump([heartbeat_stream(member) for member in members], 64, effort.seconds)
    return {"heartbeats": rate.per_second, "generator": rate.generator_share}


def commits(bootstrap: str, effort: Effort) -> Figures:
    with lone_members(bootstrap, CONNECTIONS, TOPIC) as members:
        rate = pump([_commits(member, 1) for member in members], 64, effort.seconds)
    return {"commits": rate.per_second, "generator": rate.generator_share}


def commits_of_ten(bootstrap: str, effort: Effort) -> Figures:
    with lone_members(bootstrap, CONNECTIONS, TOPIC) as members:
        rate = pump([_commits(member, PARTITIONS) for member in members], 16, effort.seconds)
    return {"offsets": rate.per_second * PARTITIONS, "generator": rate.generator_share}


def _latency(times: list[float]) -> Figures:
    return {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99)}


def heartbeat_latency(bootstrap: str, effort: Effort) -> Figures:
    with lone_members(bootstrap, 1, TOPIC) as (member,):
        return _latency(one_at_a_time(heartbeat_stream(member), effort.requests))


def commit_latency(bootstrap: str, effort: Effort) -> Figures:
    with lone_members(bootstrap, 1, TOPIC) as (member,):
        return _latency(one_at_a_time(_commits(member, 1), effort.requests))


def new_groups(bootstrap: str, effort: Effort) -> Figures:
    """Join without an id, join with it, sync: three requests to a group that did not exist."""
    times = []
    with Connection(bootstrap) as connection:
        for _ in range(effort.groups):
            member, elapsed_us = join_alone(connection, new_group("new"), TOPIC)
            times.append(elapsed_us)
            member.leave()
    return {"p50": percentile(times, 0.5)}


def one_joins(members: int, bootstrap: str, effort: Effort) -> Figures:
    """The others send a heartbeat every 10 ms and rejoin when told, all until the last has synced."""
    joins, leaves = [], []
    with Crowd(bootstrap, new_group("crowd"), TOPIC) as crowd:
        crowd.grow(min(members, effort.most_members))
        for _ in range(effort.changes):
            crowd.idle(SETTLE_S)
            joins.append(crowd.grow(1))
            crowd.idle(SETTLE_S)
            leaves.append(crowd.shrink())
        crowd.disperse()
    return {"join": percentile(joins, 0.5), "leave": percentile(leaves, 0.5)}


def fill(bootstrap: str, groups: int) -> list[bytes]:
    """Simple groups with no member: each commits 10 partitions once. Names of an eighth of them: the place in
    the list is the offset that was committed.
    """
    share = groups // CONNECTIONS
    streams, names = [], list[bytes]()
    for _ in range(CONNECTIONS):
        names = [new_group("idle") for _ in range(share)]
        frames = [_simple_commit(name, number) for number, name in enumerate(names)]
        connection = Connection(bootstrap)
        answer = connection.ask(frames[0])
        check_commit(answer, PARTITIONS)
        streams.append(Stream(connection, b"".join(frames), answer, share))
    pump_once(streams, 16)
    for stream in streams:
        stream.connection.socket.close()
    return names


def _simple_commit(group: bytes, number: int) -> bytes:
    return wire.offset_commit(group, -1, b"", TOPIC, PARTITIONS, offset=number, correlation_id=number)


def idle_groups(bootstrap: str, effort: Effort) -> Figures:
    """Heartbeats a second without and with so many groups that nobody asks for."""
    before = [heartbeats(bootstrap, effort)["heartbeats"] for _ in range(3)]
    fill(bootstrap, effort.idle_groups)
    after = [heartbeats(bootstrap, effort)["heartbeats"] for _ in range(3)]
    return {"before": percentile(before, 0.5), "after": percentile(after, 0.5)} | {
        "share": percentile(after, 0.5) / percentile(before, 0.5)
    }


def fresh(contender: Contender, effort: Effort) -> Figures:
    """A broker of its own: from its start to a million offsets."""
    with contender.start() as running:
        time.sleep(effort.rest_s)
        idle = running.resident_mib()
        prepare(running.bootstrap, TOPIC, PARTITIONS)
        begin = time.perf_counter()
        fill(running.bootstrap, effort.idle_groups)
        filled_s = time.perf_counter() - begin
        time.sleep(effort.rest_s)
        return {
            "start": running.start_s,
            "idle": idle,
            "full": running.resident_mib(),
            "fill_seconds": filled_s,
        }


FRESH = Part(
    "fresh",
    (
        Metric("start", "start to first answer", "s", 0.12, digits=2),
        Metric("idle", "resident memory, idle", "MiB", 0.25),
        Metric("full", "resident memory, 1 M offsets of 100,000 groups", "MiB", 0.6),
    ),
)
IDLE = Row(
    "idle_groups",
    (
        Metric("before", "heartbeats/s, without idle groups", "/s", 1.5, True),
        Metric("after", "heartbeats/s, beside 100,000 idle groups", "/s", 1.5, True),
        Metric("share", "the second over the first", "", 0.9, True, own=True, digits=2),
    ),
    idle_groups,
)
ROWS = (
    Row(
        "heartbeats",
        (Metric("heartbeats", "heartbeats/s, 8 connections, 64 under way each", "/s", 4.0, True),),
        heartbeats,
    ),
    Row(
        "commits",
        (Metric("commits", "OffsetCommit/s, 1 partition, 8 x 64", "/s", 3.0, True),),
        commits,
    ),
    Row(
        "commits_of_ten",
        (Metric("offsets", "OffsetCommit of 10 partitions, 8 x 16, offsets/s", "/s", 1.5, True),),
        commits_of_ten,
    ),
    Row(
        "heartbeat_latency",
        (
            Metric("p50", "one heartbeat at a time, p50", "µs", 1.0),
            Metric("p99", "one heartbeat at a time, p99", "µs", 1.0),
        ),
        heartbeat_latency,
    ),
    Row(
        "commit_latency",
        (
            Metric("p50", "one commit at a time, p50", "µs", 0.7),
            Metric("p99", "one commit at a time, p99", "µs", 1.0),
        ),
        commit_latency,
    ),
    Row("new_groups", (Metric("p50", "new group, join + sync, p50", "µs", 0.7),), new_groups),
    Row(
        "join_100",
        (Metric("join", "a member joins a Stable group of 100", "ms", 1.0),),
        partial(one_joins, 100),
    ),
    Row(
        "join_1000",
        (
            Metric("join", "a member joins a Stable group of 1,000", "ms", 1.0),
            Metric("leave", "one leaves 1,000", "ms", 1.0),
        ),
        partial(one_joins, 1000),
    ),
)
