"""Open transactions of any broker, which of them hold readers back, and their end.

A transaction *hangs* when a partition has it open and its coordinator does not know it (KIP-664): no
coordinator will end it, and ``read_committed`` consumers never get past it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...client import LATEST, Cluster
from ...client import transactions as client_transactions
from ...client.requests import TRANSACTION, leader_or_raise, numbers_by_topic, partition_name
from ...protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ...protocol.messages.describe_producers import DescribeProducersRequest, ProducerState, TopicRequest
from ...protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ..errors import advise_error
from ..visibility import sees_every_transaction

if TYPE_CHECKING:
    from ...protocol.messages.describe_transactions import TransactionState

#: States in which partitions have the transaction open.
OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
#: Partitions that an error names.
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A row of ``list``; ``coordinator`` is the node that listed it."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


@dataclass(frozen=True, slots=True)
class OpenPartition:
    """A partition with a transaction open from ``start_offset`` on.

    ``held_back`` is by how many offsets ``read_committed`` consumers lag behind ``read_uncommitted`` ones.
    ``coordinator_epoch`` is -1 if no marker of the producer has been written yet.
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
class DescribedTransaction:
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


async def list_transactions(cluster: Cluster, states: Sequence[str] = ()) -> list[ListedTransaction]:
    """Transactional ids of every broker, in the given states or in any, by name. Raises KafkaError."""
    known = await cluster.metadata([])

    async def ask(node: int) -> list[ListedTransaction]:
        rows = await cluster.retrying(lambda: client_transactions.list_transactions_of(cluster, node, states))
        return [
            ListedTransaction(row.transactional_id, row.transaction_state, row.producer_id, node)
            for row in rows
        ]

    found = await asyncio.gather(*map(ask, known.nodes))
    return sorted((row for rows in found for row in rows), key=lambda row: row.transactional_id)


async def describe_at_coordinator(cluster: Cluster, name: str) -> TransactionState:
    """The row of DescribeTransactions: a transaction as its coordinator knows it. Raises KafkaError."""

    async def ask() -> TransactionState:
        row = await client_transactions.describe_transaction(cluster, name)
        if row.error_code:
            raise KafkaError(row.error_code, f"transactional id {name!r}")
        return row

    return await cluster.at_coordinator(name, ask, TRANSACTION)


async def describe_transaction(cluster: Cluster, name: str) -> DescribedTransaction:
    """A transaction and the partitions in which it is open. Raises KafkaError TRANSACTIONAL_ID_NOT_FOUND."""
    row = await describe_at_coordinator(cluster, name)
    places = [TopicPartition(each.topic, number) for each in row.topics for number in each.partitions]
    is_open = row.transaction_state in OPEN and row.transaction_start_time_ms >= 0
    known = await cluster.metadata({place.topic for place in places})
    # partitions of a deleted topic stay in the transaction until it ends
    found = await open_partitions(cluster, [each for each in places if each in known.partitions(each.topic)])
    return DescribedTransaction(
        name,
        row.transaction_state,
        row.producer_id,
        row.producer_epoch,
        row.transaction_timeout_ms,
        max(0, _now_ms() - row.transaction_start_time_ms) if is_open else None,
        [partition_name(place) for place in sorted(places)],
        [each for each in found if each.producer_id == row.producer_id],
    )


async def _open_producers(
    cluster: Cluster, places: Iterable[TopicPartition]
) -> list[tuple[TopicPartition, ProducerState]]:
    """Rows of DescribeProducers for producers with an open transaction. Raises KafkaError."""
    wanted = sorted(places)

    async def attempt() -> list[tuple[TopicPartition, ProducerState]]:
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

    return await cluster.retrying(attempt) if wanted else []


async def open_partitions(cluster: Cluster, places: Iterable[TopicPartition]) -> list[OpenPartition]:
    """The open transactions of these partitions, as their leaders know them. Raises KafkaError."""
    rows = await _open_producers(cluster, places)
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
    """Open transactions of these topics, or of all, that no coordinator knows.

    Only those that wrote no record for ``older_than_ms``: a younger one's coordinator may not have heard of
    it yet. Of all topics, partitions without a leader are left out. Raises KafkaError.
    """
    known = await cluster.metadata(topics)
    for name in topics or ():
        if code := known.errors.get(name):
            raise KafkaError(code, f"topic {name!r}: nothing was looked at")
    names = topics or [name for name, topic in known.topics.items() if not topic.internal]
    places = [
        place
        for name in names
        for place in known.partitions(name)
        if topics or known.leader(place) is not None
    ]
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
            row = await describe_at_coordinator(cluster, listed.transactional_id)
            owned |= {(row.producer_id, topic.topic, n) for topic in row.topics for n in topic.partitions}
    unknown = [each for each in old if (each.producer_id, each.topic, each.partition) not in owned]
    if unknown and not await sees_every_transaction(cluster):
        where = ", ".join(sorted({f"{each.topic}-{each.partition}" for each in unknown})[:_MOST_NAMED])
        text = f"whether open transactions in {where} hang: their coordinators may hide them from this user"
        raise advise_error(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, text)
    # one that has ended since it was seen is not known to its coordinator either
    again = {TopicPartition(each.topic, each.partition) for each in unknown}
    still_open = {_identity(place, one) for place, one in await _open_producers(cluster, again)}
    return [
        Hanging(each, max(0, now_ms - each.last_record_ms))
        for each in unknown
        if (each.topic, each.partition, each.producer_id, each.start_offset) in still_open
    ]


def _identity(place: TopicPartition, one: ProducerState) -> tuple[str, int, int, int]:
    return place.topic, place.partition, one.producer_id, one.current_txn_start_offset


async def abort_hanging(cluster: Cluster, where: OpenPartition) -> None:
    """Write the marker that ends a hanging transaction in its partition, unless it has ended meanwhile.

    Raises KafkaError.
    """
    place = TopicPartition(where.topic, where.partition)
    marker = WritableTxnMarker(
        producer_id=where.producer_id,
        producer_epoch=where.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(where.topic, [where.partition])],
        coordinator_epoch=max(0, where.coordinator_epoch),
    )

    async def attempt() -> None:
        # a marker may be written although its response was lost: a second would end the next transaction
        if not any(
            (one.producer_id, one.producer_epoch, one.current_txn_start_offset)
            == (where.producer_id, where.producer_epoch, where.start_offset)
            for _, one in await _open_producers(cluster, [place])
        ):
            return
        node = leader_or_raise(cluster, place)
        answer = await cluster.request(node, ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest([marker]))
        code = answer.markers[0].topics[0].partitions[0].error_code
        if code:
            doing = f"ending the transaction of producer {where.producer_id} in {partition_name(place)}"
            raise KafkaError(code, doing)

    await cluster.retrying(attempt)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
