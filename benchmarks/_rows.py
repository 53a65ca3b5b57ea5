"""The rows of ``benchmarks.coordinator``: what each does to a broker, what it measures, which goal it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import _wire as wire
from ._connection import Connection, Member, WrongAnswerError, join_alone, lone_members, must, new_group
from ._load import Stream, checked_stream, one_at_a_time, percentile, pump

TOPIC = b"kohort-benchmark"
PARTITIONS = 10
CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    seconds: float = 2.0
    requests: int = 4000
    groups: int = 300
    #: Members join and leave the big groups this often, of which the median counts.
    changes: int = 5
    #: Stands in the names of the rows' groups of 100 and 1,000 only in tests, which have no time for so many.
    members_share: float = 1.0

    def scaled(self, by: float) -> Effort:
        return Effort(
            self.seconds * by,
            max(int(self.requests * by), 1),
            max(int(self.groups * by), 1),
            max(int(self.changes * by), 1),
            self.members_share,
        )


#: Measured figures by metric, and "generator": the share of a processor the generator used, where it matters.
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the table. ``goal`` bounds kohort's figure over Apache Kafka's: below it if less is better."""

    key: str
    title: str
    unit: str
    goal: float
    more_is_better: bool = False

    def met(self, ratio: float) -> bool:
        return ratio >= self.goal if self.more_is_better else ratio <= self.goal


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    metrics: tuple[Metric, ...]
    run: Callable[[str, Effort], Figures]


def _check_heartbeat(answer: bytes) -> None:
    must("Heartbeat", wire.error_after_throttle(answer))


def _heartbeats(member: Member) -> Stream:
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
        rate = pump([_heartbeats(member) for member in members], 64, effort.seconds)
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
        return _latency(one_at_a_time(_heartbeats(member), effort.requests))


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


ROWS = (
    Row(
        "heartbeats",
        (Metric("heartbeats", "heartbeats/s, 8 connections, 64 under way each", "/s", 1.5, True),),
        heartbeats,
    ),
    Row(
        "commits",
        (Metric("commits", "OffsetCommit/s, 1 partition, 8 x 64", "/s", 1.5, True),),
        commits,
    ),
    Row(
        "commits_of_ten",
        (Metric("offsets", "OffsetCommit of 10 partitions, 8 x 16, offsets/s", "/s", 1.0, True),),
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
            Metric("p50", "one commit at a time, p50", "µs", 1.0),
            Metric("p99", "one commit at a time, p99", "µs", 1.0),
        ),
        commit_latency,
    ),
    Row("new_groups", (Metric("p50", "new group, join + sync, p50", "µs", 0.7),), new_groups),
)
