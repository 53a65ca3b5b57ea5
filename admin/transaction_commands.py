"""``kohort transactions``: open transactions of any broker, which of them hold readers back, and their end.

``list`` asks every broker, ``describe`` a transaction's coordinator and the leaders of its partitions. A
transaction *hangs* when a partition has it open and its coordinator knows nothing of it (KIP-664): nobody
will end it, and readers of committed records stop in front of it for ever. ``abort`` ends it there.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ._screen import OK, REFUSED, Screen
from .commands import add_commands, reader, run_program, whole

if TYPE_CHECKING:
    from ..client import Cluster
    from ..protocol import TopicPartition

_STATES: Final = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
    *("CompleteCommit", "CompleteAbort", "PrepareEpochFence", "Dead"),
)
#: States in which partitions have the transaction open.
OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
_CLIENT: Final = "kohort-transactions"


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of ``list``; ``coordinator`` is the node that told of it."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


@dataclass(frozen=True, slots=True)
class OpenPartition:
    """A partition with a transaction open from ``start_offset`` on.

    ``held_back`` is how many offsets readers of committed records are behind those of all records.
    ``coordinator_epoch`` is -1 where no marker of the producer was written yet.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_record_ms: int
    held_back: int


@dataclass(frozen=True, slots=True)
class Described:
    """A transaction as its coordinator knows it; ``open_ms`` is None where none is open."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    open_ms: int | None
    partitions: list[str]
    holds_back: list[OpenPartition]


@dataclass(frozen=True, slots=True)
class Hanging:
    """An open transaction that no coordinator will end."""

    where: OpenPartition
    #: Time since its last record.
    silent_ms: int
    aborted: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give ``kohort transactions`` its commands."""
    command = add_commands(parser)
    listing = command("list", "transactional ids of all coordinators, and the states of their transactions")
    listing.add_argument(
        "--state",
        dest="states",
        metavar="STATE,...",
        type=reader(_states),
        default=[],
        help=f"of {', '.join(_STATES)}",
    )
    listing.add_argument("--open", action="store_true", help=f"the same as --state {','.join(OPEN)}")
    command("describe", "a transaction: how long it is open, and where it holds readers back", "id")
    words = "find transactions that hang, which no coordinator will end, and end them with --execute"
    abort = command("abort", words)
    abort.add_argument(
        "--topic",
        dest="topics",
        metavar="TOPIC",
        action="append",
        help="look at this topic alone; many times",
    )
    abort.add_argument(
        "--partition", metavar="P", type=lambda text: whole(text, 0), help="end those of this one alone"
    )
    abort.add_argument(
        "--producer-id", metavar="ID", type=lambda text: whole(text, 0), help="end this one alone"
    )
    abort.add_argument(
        "--older-than",
        metavar="SECONDS",
        type=lambda text: whole(text, 0),
        default=900,
        help="without a record for so long (default: %(default)s, the broker's longest timeout)",
    )
    abort.add_argument("--execute", action="store_true", help="write the markers that end them")


def _states(text: str) -> list[str]:
    spelled = {name.lower(): name for name in _STATES}
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name.lower() not in spelled:
            raise ValueError(f"{name!r} is no state of a transaction: give {', '.join(_STATES)}")
    return [spelled[name.lower()] for name in wanted]


def run(options: argparse.Namespace) -> int:
    """Run a command that ``add_arguments`` has read; the exit code."""
    return run_program("kohort transactions", lambda: asyncio.run(_perform(options)))


async def _perform(options: argparse.Namespace) -> int:
    from ._requests import connected

    async with connected(options, _CLIENT) as cluster:
        if options.action == "list":
            wanted = [*options.states, *(OPEN if options.open else ())]
            _show(options, await list_transactions(cluster, wanted))
        elif options.action == "describe":
            _show(options, await describe_transaction(cluster, options.id))
        else:
            return await _abort(cluster, options)
    return OK


async def _abort(cluster: Cluster, options: argparse.Namespace) -> int:
    hanging = [
        each
        for each in await find_hanging(cluster, options.topics, options.older_than * 1_000)
        if options.partition in (None, each.where.partition)
        and options.producer_id in (None, each.where.producer_id)
    ]
    if options.execute:
        for at, each in enumerate(hanging):
            await abort_hanging(cluster, each.where)
            hanging[at] = Hanging(each.where, each.silent_ms, aborted=True)
    _show(options, hanging)
    return OK if options.execute or not hanging else REFUSED


# --- requests -----------------------------------------------------------------------------------------------


async def list_transactions(cluster: Cluster, states: Sequence[str] = ()) -> list[Listed]:
    """Transactional ids of every broker, in these states or all, by name. Raises KafkaError."""
    from ..protocol import ApiKey, KafkaError
    from ..protocol.messages.list_transactions import ListTransactionsRequest

    known = await cluster.metadata([])
    body = ListTransactionsRequest(state_filters=list(states), producer_id_filters=[])

    async def ask(node: int) -> list[Listed]:
        return await cluster.retrying(lambda: ask_once(node))

    async def ask_once(node: int) -> list[Listed]:
        answer = await cluster.request(node, ApiKey.LIST_TRANSACTIONS, body)
        if answer.error_code:
            raise KafkaError(answer.error_code, f"listing the transactions of node {node}")
        return [
            Listed(row.transactional_id, row.transaction_state, row.producer_id, node)
            for row in answer.transaction_states
        ]

    found = await asyncio.gather(*map(ask, known.nodes))
    return sorted((row for rows in found for row in rows), key=lambda row: row.transactional_id)


async def coordinated(cluster: Cluster, name: str) -> Any:
    """The row of DescribeTransactions: a transaction as its coordinator knows it. Raises KafkaError."""
    from ..client.requests import TRANSACTION
    from ..protocol import KafkaError
    from ..protocol.messages.describe_transactions import DescribeTransactionsRequest

    async def ask() -> Any:
        body = DescribeTransactionsRequest([name])
        (row,) = (await cluster.request_coordinator(name, body, key_type=TRANSACTION)).transaction_states
        if row.error_code:
            raise KafkaError(row.error_code, f"transactional id {name!r}")
        return row

    return await cluster.at_coordinator(name, ask, TRANSACTION)


async def describe_transaction(cluster: Cluster, name: str) -> Described:
    """A transaction, and what it holds back. Raises KafkaError TRANSACTIONAL_ID_NOT_FOUND."""
    from ..client.requests import partition_name
    from ..protocol import TopicPartition

    row = await coordinated(cluster, name)
    places = [TopicPartition(each.topic, number) for each in row.topics for number in each.partitions]
    is_open = row.transaction_state in OPEN and row.transaction_start_time_ms >= 0
    found = await open_partitions(cluster, places)
    return Described(
        name,
        row.transaction_state,
        row.producer_id,
        row.producer_epoch,
        row.transaction_timeout_ms,
        max(0, _now_ms() - row.transaction_start_time_ms) if is_open else None,
        [partition_name(place) for place in sorted(places)],
        [each for each in found if each.producer_id == row.producer_id],
    )


async def open_partitions(cluster: Cluster, places: Iterable[TopicPartition]) -> list[OpenPartition]:
    """The open transactions of these partitions, as their leaders know them. Raises KafkaError."""
    from ..client import LATEST
    from ..client.requests import leader_or_raise, numbers_by_topic, partition_name
    from ..protocol import ApiKey, KafkaError, TopicPartition
    from ..protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest

    wanted = sorted(places)
    if not wanted:
        return []

    async def attempt() -> list[tuple[TopicPartition, Any]]:
        await cluster.metadata({place.topic for place in wanted})
        by_node: dict[int, list[TopicPartition]] = {}
        for place in wanted:
            by_node.setdefault(leader_or_raise(cluster, place), []).append(place)
        found = []
        for node, some in by_node.items():
            body = DescribeProducersRequest([TopicRequest(t, n) for t, n in numbers_by_topic(some).items()])
            answer = await cluster.request(node, ApiKey.DESCRIBE_PRODUCERS, body)
            for topic in answer.topics:
                for row in topic.partitions:
                    place = TopicPartition(topic.name, row.partition_index)
                    if row.error_code:
                        raise KafkaError(row.error_code, f"producers of {partition_name(place)}")
                    found += [
                        (place, one) for one in row.active_producers if one.current_txn_start_offset >= 0
                    ]
        return found

    rows = await cluster.retrying(attempt)
    ends_of = dict.fromkeys([place for place, _ in rows], LATEST)
    ends = await cluster.list_offsets(ends_of)
    stable = await cluster.list_offsets(ends_of, read_committed=True)
    return [
        OpenPartition(
            place.topic,
            place.partition,
            one.producer_id,
            one.producer_epoch,
            one.coordinator_epoch,
            one.current_txn_start_offset,
            one.last_timestamp,
            # only the oldest one holds readers back
            ends[place].offset - stable[place].offset
            if stable[place].offset == one.current_txn_start_offset
            else 0,
        )
        for place, one in rows
    ]


async def find_hanging(
    cluster: Cluster, topics: Sequence[str] | None = None, older_than_ms: int = 0
) -> list[Hanging]:
    """Open transactions of these topics, or all, that no coordinator knows of.

    Only those without a record for ``older_than_ms``: the coordinator of a young one may be about to hear of
    it.
    """
    from ..protocol import TopicPartition

    known = await cluster.metadata(topics)
    names = topics or [name for name, topic in known.topics.items() if not topic.internal]
    places = [TopicPartition(*place) for name in names for place in known.partitions(name)]
    now_ms = _now_ms()
    old = [
        each
        for each in await open_partitions(cluster, places)
        if now_ms - each.last_record_ms >= older_than_ms
    ]
    if not old:
        return []
    owned: set[tuple[int, str, int]] = set()
    of = {each.producer_id for each in old}
    for listed in await list_transactions(cluster, OPEN):
        if listed.producer_id in of:
            row = await coordinated(cluster, listed.transactional_id)
            owned |= {(row.producer_id, topic.topic, n) for topic in row.topics for n in topic.partitions}
    return [
        Hanging(each, max(0, now_ms - each.last_record_ms))
        for each in old
        if (each.producer_id, each.topic, each.partition) not in owned
    ]


async def abort_hanging(cluster: Cluster, where: OpenPartition) -> None:
    """Write the marker that ends a hanging transaction in its partition. Raises KafkaError."""
    from ..client.requests import leader_or_raise, partition_name
    from ..protocol import ApiKey, KafkaError, TopicPartition
    from ..protocol.messages.write_txn_markers import (
        WritableTxnMarker,
        WritableTxnMarkerTopic,
        WriteTxnMarkersRequest,
    )

    place = TopicPartition(where.topic, where.partition)
    marker = WritableTxnMarker(
        producer_id=where.producer_id,
        producer_epoch=where.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(where.topic, [where.partition])],
        coordinator_epoch=max(0, where.coordinator_epoch),
    )

    async def attempt() -> None:
        await cluster.metadata([where.topic])
        node = leader_or_raise(cluster, place)
        answer = await cluster.request(node, ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest([marker]))
        code = answer.markers[0].topics[0].partitions[0].error_code
        if code:
            doing = f"ending the transaction of producer {where.producer_id} in {partition_name(place)}"
            raise KafkaError(code, doing)

    await cluster.retrying(attempt)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- what is shown ------------------------------------------------------------------------------------------


def _show(options: argparse.Namespace, found: list[Listed] | Described | list[Hanging]) -> None:
    screen = Screen(as_json=options.json)
    if options.json:
        screen.document(found)
    elif isinstance(found, Described):
        screen.show(*_description(found))
    elif options.action == "list":
        screen.show(_listing(found))
    elif not found:
        screen.remark("no transaction hangs")
    else:
        screen.show(_hanging(found))
        if not options.execute:
            screen.remark("nothing was changed: --execute ends them")


def _listing(rows: Iterable[Any]) -> Any:
    from .tables import table

    cells = ((row.transactional_id, row.state, row.producer_id, f"node {row.coordinator}") for row in rows)
    return table(["TRANSACTIONAL ID", "STATE", "PRODUCER", "COORDINATOR"], cells)


def _description(found: Described) -> list[Any]:
    from ._words import span
    from .tables import pairs, table

    head: list[tuple[str, object]] = [
        ("transactional id", found.transactional_id),
        ("state", found.state),
        ("producer", f"{found.producer_id}, epoch {found.producer_epoch}"),
        ("open for", None if found.open_ms is None else span(found.open_ms)),
        ("timeout", span(found.timeout_ms)),
        ("partitions", ", ".join(found.partitions) or None),
    ]
    parts: list[Any] = [pairs(head)]
    if found.holds_back:
        rows = ((p.topic, p.partition, p.start_offset, p.held_back) for p in found.holds_back)
        parts.append(table(["TOPIC", "PARTITION", "START", "HELD BACK"], rows))
    return parts


def _hanging(rows: Iterable[Any]) -> Any:
    from ._words import span
    from .tables import table

    cells = (
        (
            *(row.where.topic, row.where.partition, row.where.start_offset, row.where.held_back),
            f"{row.where.producer_id}, epoch {row.where.producer_epoch}",
            span(row.silent_ms),
            "ended" if row.aborted else "hangs",
        )
        for row in rows
    )
    return table(["TOPIC", "PARTITION", "START", "HELD BACK", "PRODUCER", "SILENT FOR", "NOW"], cells)
