"""``kohort cluster``: a cluster's brokers, partitions that lack replicas, reassignments and elections."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..commands import add_commands, reader, run_program, whole
from ..screen import OK, REFUSED, Screen
from .features import add_feature_arguments, change_features
from .reassignment import (
    Moving,
    check_reassign,
    join_numbers,
    reassign_replicas,
    reassignments,
    tell_outcomes,
)

if TYPE_CHECKING:
    from ...client import Cluster
    from ...protocol import TopicPartition
    from ..errors import Outcome

_CLIENT: Final = "kohort-cluster"
#: Types of elections.
_PREFERRED, _UNCLEAN = 0, 1
_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Disk:
    """The log dirs of a broker: bytes of their disks, and whether one of them is not written to (kohort: it
    refuses writes now, Apache Kafka: it is offline), or hangs (kohort alone tells). Sizes are None below
    version 4 of DescribeLogDirs.
    """

    free_bytes: int | None
    total_bytes: int | None
    failing: bool
    hanging: bool = False

    def __str__(self) -> str:
        words = ["refuses writes"] * self.failing + ["hangs"] * self.hanging
        if self.total_bytes and self.free_bytes is not None:
            share = self.free_bytes / self.total_bytes
            words.append(f"{share:.0%} of {self.total_bytes / _GIB:,.2f} GiB free")
        return ", ".join(words) or "ok"


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker: how many partitions it leads, how many it has, and in how many it is not in sync. ``disk`` is
    None for a broker that does not tell.
    """

    node_id: int
    address: str
    rack: str | None
    controller: bool
    leads: int
    replicas: int
    lagging: int
    disk: Disk | None


@dataclass(frozen=True, slots=True)
class Ailing:
    """A partition that lacks replicas; ``leader`` is None where it is offline."""

    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The state of a cluster. ``offline`` partitions are among those that are ``under_replicated``."""

    cluster_id: str | None
    brokers: list[BrokerRow]
    partitions: int
    offline: int
    under_replicated: list[Ailing]
    reassignments: list[Moving]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort cluster`` its commands."""
    command = add_commands(parser)
    words = (
        "brokers and their disks, the controller, partitions that lack replicas or a leader, reassignments"
    )
    _add_status(command("status", words))
    _add_reassign(command("reassign", "give partitions other replicas; without --execute the plan is shown"))
    _add_elect(command("elect", "let the first replicas lead, where they are in sync and others do"))
    words = "levels of features, and what a change of them would do; --execute does it"
    add_feature_arguments(command("features", words))


def _add_status(status: argparse.ArgumentParser) -> None:
    status.add_argument(
        "--wait",
        action="store_true",
        help="first wait until every broker answers, all know the same, one is controller, and all replicas "
        "are in sync; exit code 1 if that is not so after --timeout",
    )
    status.add_argument(
        "--brokers",
        metavar="N,...",
        type=reader(_node_ids),
        default=[],
        help="with --wait: these must be there; one that is away and has no replicas is not missed otherwise",
    )
    status.add_argument(
        "--preferred",
        action="store_true",
        help="with --wait: each partition must be led by its first replica, too",
    )


def _add_reassign(reassign: argparse.ArgumentParser) -> None:
    reassign.add_argument("topic", metavar="TOPIC", nargs="?", help="(with --from, default: all topics)")
    reassign.add_argument(
        "--from",
        dest="source",
        metavar="N",
        type=lambda text: whole(text, 0),
        help="partitions that have a replica on this broker get another one in its place",
    )
    reassign.add_argument(
        "--brokers",
        metavar="N,...",
        type=reader(_node_ids),
        default=[],
        help="brokers that have the replicas; each partition begins with the next of them. With --from: those"
        " that may take its place (default: all others)",
    )
    reassign.add_argument(
        "--replication-factor",
        metavar="N",
        type=lambda text: whole(text, 1),
        help="replicas of each partition (default: as many as it has)",
    )
    reassign.add_argument(
        "--cancel", action="store_true", help="give up the reassignments that are under way"
    )
    reassign.add_argument(
        "--throttle",
        metavar="BYTES",
        type=lambda text: whole(text, 1),
        help="with --execute: bytes a second of each broker for the copying, until --verify or --cancel",
    )
    reassign.add_argument(
        "--verify",
        action="store_true",
        help="tell which partitions are still moving, with --from also what the broker still has; throttles "
        "end when there is none",
    )
    reassign.add_argument("--execute", action="store_true", help="do it")
    _add_partitions(reassign)


def _add_elect(elect: argparse.ArgumentParser) -> None:
    elect.add_argument("topics", metavar="TOPIC", nargs="*", help="(default: all topics)")
    elect.add_argument(
        "--unclean",
        action="store_true",
        help="partitions that have no leader get any replica: records that it lacks are lost",
    )
    _add_partitions(elect)


def _add_partitions(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--partition",
        dest="partitions",
        metavar="P",
        type=lambda text: whole(text, 0),
        action="append",
        help="this one alone; may be given many times",
    )


def _node_ids(text: str) -> list[int]:
    found = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in found) or len(set(found)) != len(found):
        raise ValueError(
            f"{text!r} is no list of brokers: give different node ids with commas, such as 1,2,3"
        )
    return [int(part) for part in found]


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort cluster", lambda: asyncio.run(_run_command(options)))


async def _run_command(options: argparse.Namespace) -> int:
    from ...client import ConfigError
    from ..connection import open_cluster

    if options.action == "status":
        if options.wait:
            return await _wait_until_whole(options)
        if options.brokers or options.preferred:
            raise ConfigError("--brokers and --preferred need --wait")
    if options.action == "reassign":
        check_reassign(options)
    if options.action == "elect" and options.partitions and len(options.topics) != 1:
        raise ConfigError("--partition is one of one topic: name the topic")
    screen = Screen(as_json=options.json)
    async with open_cluster(options, _CLIENT) as cluster:
        return await _ACTIONS[options.action](cluster, options, screen)


async def _wait_until_whole(options: argparse.Namespace) -> int:
    from ..connection import cluster_of, connection_of
    from .health import wait_until_whole

    screen = Screen(as_json=options.json)

    def tell(lacking: list[str]) -> None:
        screen.remark(f"waits: {'; '.join(lacking)}")

    cluster = cluster_of(connection_of(options), _CLIENT, max(1, round(options.timeout * 1_000)))
    try:
        lacking = await wait_until_whole(
            cluster, options.timeout, tell, brokers=options.brokers, preferred=options.preferred
        )
        if not lacking:
            return await _show_status(cluster, options, screen)
    finally:
        await cluster.close()
    if screen.as_json:
        screen.document({"lacking": lacking})
    print(f"kohort cluster: after {options.timeout:g} s still: {'; '.join(lacking)}", file=sys.stderr)
    return REFUSED


async def _show_status(cluster: Cluster, _: argparse.Namespace, screen: Screen) -> int:
    from ..visibility import ask_hidden_topics

    found = await status(cluster)
    hidden = await ask_hidden_topics(cluster)
    if screen.as_json:
        screen.document(found)
    else:
        screen.show(*_to_cells(found))
    screen.remark(*hidden)
    return REFUSED if hidden and not found.partitions else OK


async def _elect_leaders(cluster: Cluster, options: argparse.Namespace, screen: Screen) -> int:
    from ...protocol import TopicPartition
    from ..topics.requests import topic_rows

    wanted: list[TopicPartition] | None = None
    if options.topics:
        rows = await topic_rows(cluster, options.topics)
        wanted = [
            TopicPartition(name, each)
            for name, row in rows.items()
            for each in options.partitions or sorted(one.partition_index for one in row.partitions)
        ]
    done = await elect(cluster, wanted, unclean=options.unclean)
    if not done:
        screen.remark("no partition needed an election")
    return tell_outcomes(screen, done, "elected")


_ACTIONS: Final = {
    "status": _show_status,
    "reassign": reassign_replicas,
    "elect": _elect_leaders,
    "features": change_features,
}


# --- requests -----------------------------------------------------------------------------------------------


async def status(cluster: Cluster) -> ClusterStatus:
    """The state of a cluster, as its brokers know it."""
    from ..topics.requests import topic_rows

    rows = await topic_rows(cluster, None)
    known = await cluster.metadata([])
    leads, replicas, lagging = Counter[int](), Counter[int](), Counter[int]()
    ailing: list[Ailing] = []
    count = 0
    for name, row in rows.items():
        for each in sorted(row.partitions, key=lambda one: one.partition_index):
            count += 1
            leads[each.leader_id] += 1
            replicas.update(each.replica_nodes)
            missing = set(each.replica_nodes) - set(each.isr_nodes)
            lagging.update(missing)
            if missing or each.leader_id < 0:
                leader = None if each.leader_id < 0 else each.leader_id
                ailing.append(
                    Ailing(name, each.partition_index, leader, list(each.replica_nodes), list(each.isr_nodes))
                )
    nodes = sorted(known.nodes.values(), key=lambda each: each.node_id)
    disks = (describe_disk(cluster, node.node_id) for node in nodes)
    brokers = [
        BrokerRow(
            node.node_id,
            str(node.address),
            node.rack,
            node.node_id == known.controller_id,
            leads[node.node_id],
            replicas[node.node_id],
            lagging[node.node_id],
            disk,
        )
        for node, disk in zip(nodes, await asyncio.gather(*disks), strict=True)
    ]
    in_sync = {(each.topic, each.partition): set(each.in_sync) for each in ailing}
    moving = [
        Moving(
            each.topic,
            each.partition,
            each.replicas,
            each.adding,
            each.removing,
            [n for n in each.adding if n not in in_sync.get((each.topic, each.partition), set(each.adding))],
        )
        for each in await reassignments(cluster)
    ]
    offline = sum(1 for each in ailing if each.leader is None)
    return ClusterStatus(known.cluster_id, brokers, count, offline, ailing, moving)


async def describe_disk(cluster: Cluster, node_id: int) -> Disk | None:
    """A broker's log dirs; None if it cannot be reached, or does not show them to this user."""
    from ...client import BrokerConnectionError
    from ...protocol import ApiKey, ErrorCode, UnsupportedVersionError
    from ...protocol.messages.describe_log_dirs import DescribeLogDirsRequest

    try:
        # no partition: only the disks are asked for
        answer = await cluster.request(node_id, ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest([]))
    except (BrokerConnectionError, UnsupportedVersionError):
        return None
    found = answer.results
    if not found:
        return None
    errors = {each.error_code for each in found}
    failing, hanging = ErrorCode.KAFKA_STORAGE_ERROR in errors, ErrorCode.REQUEST_TIMED_OUT in errors
    sized = [each for each in found if each.total_bytes >= 0]
    if not sized:
        return Disk(None, None, failing, hanging)
    free, total = sum(each.usable_bytes for each in sized), sum(each.total_bytes for each in sized)
    return Disk(free, total, failing, hanging)


async def elect(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None, *, unclean: bool
) -> dict[TopicPartition, Outcome]:
    """Elect the preferred leaders, or with ``unclean`` any replica; of these partitions, or of all that need
    it (None). Raises KafkaError.
    """
    from ...client.requests import controller, refusal_text
    from ...protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
    from ...protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
    from ..errors import outcome_of

    topics: dict[str, list[int]] | None = None
    if partitions is not None:
        topics = {}
        for key in partitions:
            topics.setdefault(key.topic, []).append(key.partition)
    rows = None if topics is None else [TopicPartitions(*each) for each in topics.items()]
    body = ElectLeadersRequest(_UNCLEAN if unclean else _PREFERRED, rows, cluster.request_timeout_ms)

    async def attempt() -> dict[TopicPartition, Outcome]:
        answer = await cluster.request(await controller(cluster), ApiKey.ELECT_LEADERS, body)
        if answer.error_code:
            raise KafkaError(answer.error_code, "the election")
        return {
            TopicPartition(topic.topic, each.partition_id): outcome_of(
                each.error_code, refusal_text(each, "")
            )
            for topic in answer.replica_election_results
            for each in topic.partition_result
            if each.error_code != ErrorCode.ELECTION_NOT_NEEDED
        }

    return await cluster.retrying(attempt)


# --- what is shown ------------------------------------------------------------------------------------------


def _to_cells(found: ClusterStatus) -> Iterable[object]:
    from ..tables import table

    yield f"cluster {found.cluster_id}: {found.partitions:,} partitions, {found.offline} offline"
    yield table(
        ["BROKER", "ADDRESS", "RACK", "CONTROLLER", "LEADS", "REPLICAS", "NOT IN SYNC", "DISK"],
        (
            (
                str(each.node_id),
                each.address,
                each.rack or "-",
                "yes" if each.controller else "-",
                f"{each.leads:,}",
                f"{each.replicas:,}",
                f"{each.lagging:,}",
                "-" if each.disk is None else str(each.disk),
            )
            for each in found.brokers
        ),
    )
    if found.under_replicated:
        yield "partitions that lack replicas:"
        yield table(
            ["TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN SYNC"],
            (
                (
                    each.topic,
                    str(each.partition),
                    "none" if each.leader is None else str(each.leader),
                    join_numbers(each.replicas),
                    join_numbers(each.in_sync),
                )
                for each in found.under_replicated
            ),
        )
    if found.reassignments:
        yield "reassignments:"
        yield table(
            ["TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING", "NOT IN SYNC YET"],
            (
                (
                    each.topic,
                    str(each.partition),
                    join_numbers(each.replicas),
                    join_numbers(each.adding),
                    join_numbers(each.removing),
                    join_numbers(each.missing) or "-",
                )
                for each in found.reassignments
            ),
        )
