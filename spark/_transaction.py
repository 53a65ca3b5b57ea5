"""A task's transaction, which the driver ends: all tasks of a batch first, then the commits.

A task asks for its transaction, adds partitions and writes. What it hands to the driver is enough to end the
transaction from there: name, producer id and epoch. Requests are those of clients from before KIP-890, which
every broker with transactions takes and which leave the epoch as it is: an end may be asked for again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..client import Cluster
from ..client.producer import init_producer_id
from ..client.requests import TRANSACTION, find_coordinator
from ..protocol import (
    ApiKey,
    ErrorCode,
    KafkaError,
    KohortError,
    TopicPartition,
    UnsupportedVersionError,
    request_class,
)
from ._client import Client

log = logging.getLogger(__name__)

#: The coordinator has ended the transaction itself, or somebody else has its name now.
_GONE = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
    }
)


class NoTransactionsError(KohortError):
    """The broker does not offer transactions."""


class TransactionLostError(KohortError):
    """A transaction was over before it could be committed: its records are not to be seen."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """What it takes to write into a transaction, and to end it from anywhere."""

    name: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class TransactionRules:
    """Under which name, and how long it may stay open before the broker ends it."""

    name: str
    timeout_ms: int


def begin(client: Client, rules: TransactionRules) -> Transaction:
    """A new producer of this name; what an earlier one had open is aborted, and it can write no more.

    Raises NoTransactionsError, and KafkaError where the broker refuses.
    """
    return client.run(lambda cluster: _begin(cluster, rules))


def end(client: Client, transaction: Transaction, *, commit: bool) -> None:
    """Commit or abort; the same again changes nothing. Raises TransactionLostError and KafkaError."""
    client.run(lambda cluster: _end(cluster, transaction, commit))


async def _begin(cluster: Cluster, rules: TransactionRules) -> Transaction:
    async def attempt() -> Transaction:
        node = await _coordinator(cluster, rules.name)
        producer = await init_producer_id(cluster, rules.name, node_id=node, timeout_ms=rules.timeout_ms)
        return Transaction(rules.name, producer.id, producer.epoch)

    return await cluster.retrying(attempt)


async def add_partition(cluster: Cluster, transaction: Transaction, place: TopicPartition) -> None:
    """To be called before the first batch for a partition."""
    make = request_class(ApiKey.ADD_PARTITIONS_TO_TXN)
    topic = make.AddPartitionsToTxnTopic(name=place.topic, partitions=[place.partition])
    body = make(
        v3_and_below_transactional_id=transaction.name,
        v3_and_below_producer_id=transaction.producer_id,
        v3_and_below_producer_epoch=transaction.producer_epoch,
        v3_and_below_topics=[topic],
    )

    async def attempt() -> None:
        node = await _coordinator(cluster, transaction.name)
        answer = await cluster.request(node, ApiKey.ADD_PARTITIONS_TO_TXN, body)
        found = answer.results_by_topic_v3_and_below[0].results_by_partition[0]
        if code := found.partition_error_code:
            raise KafkaError(code, f"adding {place} to transaction {transaction.name!r}")

    await cluster.retrying(attempt)


async def _end(cluster: Cluster, transaction: Transaction, commit: bool) -> None:
    body = request_class(ApiKey.END_TXN)(
        transactional_id=transaction.name,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        committed=commit,
    )

    async def attempt() -> None:
        node = await _coordinator(cluster, transaction.name)
        answer = await cluster.request(node, ApiKey.END_TXN, body)
        if answer.error_code in _GONE:
            raise TransactionLostError(
                f"transaction {transaction.name!r} was over before it could be "
                f"{'committed' if commit else 'aborted'} ({ErrorCode(answer.error_code).name}): a batch took "
                "longer than kafka.transaction.timeout.ms, or another job writes with the same ledgerGroup"
            )
        if answer.error_code:
            raise KafkaError(answer.error_code, f"ending transaction {transaction.name!r}")

    await cluster.retrying(attempt)


async def _coordinator(cluster: Cluster, name: str) -> int:
    """The node that keeps the transaction, asked for anew: a batch does so a few times at most."""
    try:
        node_id = (await find_coordinator(cluster, name, TRANSACTION)).node_id
    except UnsupportedVersionError as error:
        raise NoTransactionsError(str(error)) from error
    except KafkaError as error:
        if error.code is ErrorCode.INVALID_REQUEST:
            raise NoTransactionsError(f"the broker offers no transactions: {error.message}") from error
        raise
    if node_id not in cluster.known.nodes:
        await cluster.metadata([])
    return node_id
