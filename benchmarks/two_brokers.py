"""What two brokers on one machine carry beside one: heartbeats and commits of many groups.

``python -m benchmarks.two_brokers [--compare] [--only ROW,...] [--rounds 3]``

``--compare`` starts a broker alone too; the two agree by a ZooKeeper (needs Java). Two have twice the groups
and connections of one, as in use. Rates depend on what the load generator leaves of the machine, so the goal
is about the brokers' processor time: of that which a request takes follows how many a second, and how many
groups, fit a core for each broker.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial

from . import _brokers, _clusters
from . import _wire as wire
from ._comparison import compare
from ._connection import Connection, Member, join_alone, must, new_group, until_ready
from ._load import Stream, checked_stream, pump
from ._processes import tree_seconds
from ._rows import TOPIC, Figures, Metric, Part, check_commit

#: Of each broker, as are connections.
GROUPS = 200
CONNECTIONS, DEPTH = 8, 64
#: How often a client with default settings sends either: heartbeat.interval.ms, auto.commit.interval.ms.
HEARTBEAT_S, COMMIT_S = 3.0, 5.0
SESSION_MS = 18_000


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a rate is measured, and how many groups each broker has."""

    seconds: float = 3.0
    groups: int = GROUPS


@dataclass(slots=True)
class Side:
    """Brokers that serve: where, and the processor time that they have used; members by their coordinator,
    and microseconds of one request, by row.
    """

    bootstrap: str
    version: str
    brokers: int
    work_s: Callable[[], float]
    members: dict[str, list[Member]] = field(default_factory=dict)
    costs_us: dict[str, float] = field(default_factory=dict)

    def settle(self, groups: int) -> None:
        """Found the groups, each with one member, at their coordinators."""
        connections: dict[str, Connection] = {}
        found = defaultdict(list)
        with Connection(self.bootstrap.partition(",")[0]) as first:
            must("CreateTopics", wire.created_error(first.ask(wire.create_topic(TOPIC, 1))))
            for _ in range(groups):
                group = new_group("shared")
                where = self._coordinator_of(first, group)
                connection = connections.get(where) or connections.setdefault(where, Connection(where))
                commit = wire.offset_commit(group, -1, b"", TOPIC, 1, offset=0)

                def is_ready(connection: Connection = connection, commit: bytes = commit) -> int:
                    return max(wire.committed(connection.ask(commit)).values())

                until_ready("OffsetCommit", is_ready)
                found[where].append(join_alone(connection, group, TOPIC)[0])
        for connection in connections.values():
            connection.socket.close()
        self.members = dict(found)

    def _coordinator_of(self, connection: Connection, group: bytes) -> str:
        where = ""

        def find() -> int:
            nonlocal where
            error, where = wire.coordinator_found(connection.ask(wire.find_coordinator(group)))
            return error

        until_ready("FindCoordinator", find)
        return where


@contextmanager
def _alone() -> Iterator[Side]:
    with _brokers.kohort() as running:
        assert running.pid is not None
        yield Side(running.bootstrap, running.version, 1, partial(tree_seconds, running.pid))


@contextmanager
def _two(replicas: int) -> Iterator[Side]:
    more = {"offsets.topic.replication.factor": str(replicas), "default.replication.factor": "1"}
    more |= {"min.insync.replicas": "1", "offsets.topic.num.partitions": "50"}
    with _clusters.kohort(SESSION_MS, nodes=(1, 2), more=more) as brokers:
        yield Side(brokers.bootstrap, brokers.version, 2, brokers.cpu_s)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Brokers to be started."""

    name: str
    start: Callable[[], AbstractContextManager[Side]]


Frame = Callable[[Member, int], bytes]


def _heartbeat(member: Member, number: int) -> bytes:
    return wire.heartbeat(member.group, member.generation, member.member_id, number)


def _commit(member: Member, number: int) -> bytes:
    return wire.offset_commit(
        member.group,
        member.generation,
        member.member_id,
        TOPIC,
        1,
        offset=number,
        correlation_id=number,
    )


def _streams(side: Side, frame: Frame, check: Callable[[bytes], None]) -> list[Stream]:
    """Connections to each of the coordinators; each sends for all groups of its coordinator."""
    return [
        checked_stream(Connection(where), partial(_of_next, frame, own), check)
        for where, own in side.members.items()
        for _ in range(CONNECTIONS)
    ]


def _of_next(frame: Frame, members: list[Member], number: int) -> bytes:
    return frame(members[number % len(members)], number)


@dataclass(frozen=True, slots=True)
class Row(Part):
    """One kind of request."""

    frame: Frame
    check: Callable[[bytes], None]

    def run(self, side: Side, effort: Effort) -> Figures:
        """Rates while all connections have requests under way, and the brokers' processor time."""
        if not side.members:
            side.settle(effort.groups * side.brokers)
        streams = _streams(side, self.frame, self.check)
        pump(streams, DEPTH, effort.seconds / 3)
        before = side.work_s()
        rate = pump(streams, DEPTH, effort.seconds)
        work_us = (side.work_s() - before) / (rate.per_second * effort.seconds) * 1e6
        for stream in streams:
            stream.connection.socket.close()
        side.costs_us[self.name] = work_us
        generator_us = rate.generator_share / rate.per_second * 1e6
        fit = side.brokers * 1e6 / work_us
        return {"rate": rate.per_second, "work": work_us, "fit": fit, "generator_us": generator_us}


def _row(name: str, what: str, frame: Frame, check: Callable[[bytes], None]) -> Row:
    metrics = (
        Metric("fit", f"{what}/s of a core for each broker", "/s", 1.7, True),
        Metric("work", f"processor time of one of the {what}", "µs", 1.2, digits=1),
        Metric("rate", f"{what}/s beside the load generator", "/s", 1.0, True),
    )
    return Row(name, metrics, frame, check)


def _check_heartbeat(answer: bytes) -> None:
    must("Heartbeat", wire.error_after_throttle(answer))


REQUESTS = (
    _row("heartbeats", "heartbeats", _heartbeat, _check_heartbeat),
    _row("commits", "commits", _commit, lambda answer: check_commit(answer, 1)),
)


@dataclass(frozen=True, slots=True)
class Carried(Part):
    """Groups of a member with default settings."""

    def run(self, side: Side, effort: Effort) -> Figures:
        """What follows from both kinds of requests, which are measured unless they have been."""
        for row in REQUESTS:
            if row.name not in side.costs_us:
                row.run(side, effort)
        beat_us, commit_us = (side.costs_us.pop(row.name) for row in REQUESTS)
        return {"carried": side.brokers * 1e6 / (beat_us / HEARTBEAT_S + commit_us / COMMIT_S)}


_TITLE = "groups of a member that fit a core for each broker"
ROWS: tuple[Part, ...] = (*REQUESTS, Carried("groups", (Metric("carried", _TITLE, "", 1.7, True),)))
ARRANGEMENTS = (
    Arrangement("one broker", _alone),
    Arrangement("two, 2 replicas", partial(_two, 2)),
    Arrangement("two brokers", partial(_two, 1)),
)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return compare(
        "two_brokers",
        __doc__,
        ARRANGEMENTS,
        ROWS,
        Effort(),
        argv,
        start=lambda side, _: side.start(),
        at_once=True,
        needs="with a broker alone, and with two that have a replica each of all groups",
    )


if __name__ == "__main__":
    sys.exit(main())
