"""Join storms: members of a new group that come within a second, and a deploy that replaces each of them.

``python -m benchmarks.join_storms [--compare] [--large] [--only ROW,...] [--rounds 1]``

Both protocols, with Apache Kafka's default settings but for the largest size of a group. Rounds are the
rebalances of a classic group, and the epochs that members of a consumer group were told. ``--large`` has the
groups of 10,000 members alone, who need a machine that does nothing else.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import _table
from ._brokers import Contender, Running, apache_kafka, kohort
from ._command import Begun, Command, effort_of, publish, say
from ._connection import new_group, prepare
from ._consumer_crowd import ConsumerCrowd
from ._crowd import Crowd
from ._peers import Peers, Settling
from ._processes import tree_seconds
from ._rows import Figures, Metric, Part

TOPIC = b"kohort-benchmark"
#: ``heartbeat.interval.ms`` of classic members, ``group.consumer.heartbeat.interval.ms`` of the others.
CLASSIC_HEARTBEAT_S, CONSUMER_HEARTBEAT_S = 3.0, 5.0
SIZES, LARGE_SIZE = (100, 1_000), 10_000
#: What both brokers are told: their defaults, but that the groups fit in, and their connections.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "3000",
    "group.min.session.timeout.ms": "6000",
    "group.max.size": "20000",
    "group.consumer.max.size": "20000",
    "max.connections": "20000",
    # the record of a classic group has all its members
    "message.max.bytes": "10485760",
    "max.connections.per.ip": "20000",
}


@dataclass(frozen=True, slots=True)
class Effort:
    """How long the members take to come, and a deploy to replace them; the partitions that they read."""

    storm_s: float = 1.0
    deploy_s: float = 10.0
    partitions: int = 1_000
    patience_s: float = 600.0


def _classic(bootstrap: str, effort: Effort) -> Crowd:
    return Crowd(bootstrap, new_group("storm"), TOPIC, CLASSIC_HEARTBEAT_S, effort.patience_s)


def _consumer(bootstrap: str, effort: Effort) -> ConsumerCrowd:
    return ConsumerCrowd(
        bootstrap, new_group("storm"), TOPIC, effort.partitions, CONSUMER_HEARTBEAT_S, effort.patience_s
    )


PROTOCOLS: Mapping[str, Callable[[str, Effort], Peers[Any]]] = {"classic": _classic, "consumer": _consumer}


@dataclass(frozen=True, slots=True)
class Row(Part):
    """A group of one protocol and size."""

    protocol: str
    members: int

    def run(self, running: Running, effort: Effort) -> Figures:
        """The storm, and then the deploy."""
        assert running.pid is not None
        prepare(running.bootstrap, TOPIC, effort.partitions)
        work_s = partial(tree_seconds, running.pid)
        crowd = PROTOCOLS[self.protocol](running.bootstrap, effort)
        with crowd:
            storm = crowd.storm(self.members, effort.storm_s, work_s)
            deploy = crowd.deploy(effort.deploy_s, work_s)
        more = {"connected_again": float(crowd.lost)}
        return self._figures("storm", storm) | self._figures("deploy", deploy) | more

    def _figures(self, what: str, settling: Settling) -> Figures:
        return {
            f"{what}_rounds": settling.rounds,
            f"{what}_seconds": settling.seconds,
            f"{what}_work": settling.work_s / self.members * 1000,
        }


def _row(protocol: str, members: int) -> Row:
    who = f"{members:,} {protocol}"
    metrics = [
        metric
        for what, does in (("storm", "come"), ("deploy", "are replaced"))
        for metric in (
            Metric(f"{what}_rounds", f"{who} {does}: rounds", "", 1.0),
            Metric(f"{what}_seconds", f"{who} {does}: until all have their partitions", "s", 1.0, digits=1),
            Metric(f"{what}_work", f"{who} {does}: processor time of each", "ms", 1.0, digits=2),
        )
    ]
    return Row(f"{protocol}_{members}", tuple(metrics), protocol, members)


ROWS = [_row(protocol, members) for members in SIZES for protocol in PROTOCOLS]
LARGE_ROWS = [_row(protocol, LARGE_SIZE) for protocol in PROTOCOLS]
CONTENDERS = (
    Contender("Apache Kafka", partial(apache_kafka, SETTINGS)),
    Contender("kohort", partial(kohort, SETTINGS)),
)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    large = "--large" in (sys.argv[1:] if argv is None else argv)
    possible = LARGE_ROWS if large else ROWS
    names = [row.name for row in possible]
    needs = "with Apache Kafka; needs Java, Maven once"
    command = Command("join_storms", __doc__, names, compare=needs, rounds=1)
    command.add_argument(
        "--large", action="store_true", help=f"groups of {LARGE_SIZE:,} members, and no others"
    )
    command.takes(Effort())
    options = command.parse(argv)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    begun, effort = Begun(), effort_of(options, Effort())
    chosen = CONTENDERS if options.compare else CONTENDERS[-1:]
    rows = [row for row in possible if row.name in options.wanted]
    measured = {each.name: {row.name: list[Figures]() for row in rows} for each in chosen}
    versions: dict[str, None] = {}
    for _ in range(options.rounds):
        for row in rows:
            for contender in chosen:
                # a broker of its own: sessions of the row before would end in this one
                with contender.start() as running:
                    versions[running.version] = None
                    figures = row.run(running, effort)
                measured[contender.name][row.name].append(figures)
                shown = "  ".join(f"{key} {value:,.2f}" for key, value in figures.items())
                say(f"{row.name:15} {contender.name:14} {shown}")
    again = sum(
        each["connected_again"] for rounds in measured.values() for row in rounds.values() for each in row
    )
    told = {
        "connections that were lost in the queue before they were accepted, and made again": f"{again:,.0f}"
    }
    facts = _table.environment(versions, SETTINGS) | begun.facts() | told
    peers = [each.name for each in chosen[:-1]]
    block = "join-storms-large" if large else "join-storms"
    publish(_table.table(measured, rows, chosen[-1].name, peers), measured, facts, options, block)
    return 0


if __name__ == "__main__":
    sys.exit(main())
