"""Requests of producers about producer ids and transactions.

Each makes one attempt, at the cached coordinator. All raise KafkaError with the error code and what was
refused, and BrokerConnectionError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ..protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ..protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ..protocol.messages.describe_transactions import DescribeTransactionsRequest
from ..protocol.messages.describe_transactions import TransactionState as DescribedTransactionState
from ..protocol.messages.end_txn import EndTxnRequest
from ..protocol.messages.init_producer_id import InitProducerIdRequest
from ..protocol.messages.list_transactions import ListTransactionsRequest, TransactionState
from ..protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ..protocol.named_tuples import NamedTuple
from .offsets import CommittedOffset
from .requests import TRANSACTION, Requests, numbers_by_topic, partition_name

#: Version 6 adds two-phase commit (KIP-939), which is not used.
_INIT_VERSION = 5
#: From version 4 on only brokers send AddPartitionsToTxn.
_ADD_PARTITIONS_VERSION = 3
#: Up to these versions (TxnOffsetCommit, EndTxn) producers add partitions and offsets with requests of their
#: own, and keep their epoch after a transaction. Later ones are for transactions version 2 (KIP-890).
ADDED_OFFSETS_VERSION, END_VERSION = 4, 4

#: The transaction timeout of a producer that has no transactions.
_UNUSED_TIMEOUT_MS = 60_000


class ProducerId(NamedTuple):
    """Id and epoch of a producer. Each new producer of a transactional id gets a higher epoch."""

    id: int
    epoch: int


#: Stands for no producer, as in the protocol.
NO_PRODUCER = ProducerId(-1, -1)


class Transaction(NamedTuple):
    """Transactional id (``name``) and producer: enough to write to a transaction, and to end it, anywhere."""

    name: str
    producer: ProducerId


class GroupMetadata(NamedTuple):
    """A member in one generation, so that the group's coordinator can refuse a fenced member (KIP-447)."""

    group: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


async def init_producer_id(
    cluster: Requests,
    transactional_id: str | None = None,
    *,
    timeout_ms: int = _UNUSED_TIMEOUT_MS,
    last: ProducerId = NO_PRODUCER,
) -> ProducerId:
    """Get a new producer id or, for a transactional id, its next epoch, which fences all earlier producers.

    ``timeout_ms``: how long a transaction may stay open before the broker aborts it. ``last``: the id and
    epoch that the producer has; the broker refuses if they are not the current ones (KIP-360).
    """
    body = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=last.id,
        producer_epoch=last.epoch,
    )
    if transactional_id is None:
        answer = await cluster.request(None, ApiKey.INIT_PRODUCER_ID, body, max_version=_INIT_VERSION)
        doing = "asking for a producer id"
        if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            doing += "; ask for the right to WRITE to the topic"
    else:
        answer = await cluster.request_coordinator(
            transactional_id, body, key_type=TRANSACTION, max_version=_INIT_VERSION
        )
        doing = f"starting the producer of transactional id {transactional_id!r}"
    if answer.error_code:
        raise KafkaError(answer.error_code, doing)
    return ProducerId(answer.producer_id, answer.producer_epoch)


async def add_partitions(
    cluster: Requests, transaction: Transaction, partitions: Iterable[TopicPartition]
) -> None:
    """Add partitions to a transaction; required before the first batch of each."""
    rows = numbers_by_topic(partitions).items()
    body = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transaction.name,
        v3_and_below_producer_id=transaction.producer.id,
        v3_and_below_producer_epoch=transaction.producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=some) for name, some in rows],
    )
    answer = await cluster.request_coordinator(
        transaction.name, body, key_type=TRANSACTION, max_version=_ADD_PARTITIONS_VERSION
    )
    refused = [
        (row.partition_error_code, TopicPartition(topic.name, row.partition_index))
        for topic in answer.results_by_topic_v3_and_below
        for row in topic.results_by_partition
        if row.partition_error_code
    ]
    if refused:
        # OPERATION_NOT_ATTEMPTED only says that another partition was refused: report that one's error
        code, partition = max(
            refused, key=lambda each: not KafkaError(each[0]).code.name.startswith("OPERATION_")
        )
        raise KafkaError(code, f"adding {partition_name(partition)} to transaction {transaction.name!r}")


async def add_offsets(cluster: Requests, transaction: Transaction, group: str) -> None:
    """Add a group to a transaction; required before offsets of the group are committed in it."""
    body = AddOffsetsToTxnRequest(
        transactional_id=transaction.name,
        producer_id=transaction.producer.id,
        producer_epoch=transaction.producer.epoch,
        group_id=group,
    )
    answer = await cluster.request_coordinator(transaction.name, body, key_type=TRANSACTION)
    if answer.error_code:
        raise KafkaError(
            answer.error_code, f"adding offsets of group {group!r} to transaction {transaction.name!r}"
        )


async def commit_offsets(
    cluster: Requests,
    transaction: Transaction,
    member: GroupMetadata,
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    max_version: int | None = None,
) -> None:
    """Commit offsets in a transaction, by a request to the group's coordinator.

    They take effect when the transaction is committed.
    """
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, number), offset in offsets.items():
        row = TxnOffsetCommitRequestPartition(number, offset.offset, offset.leader_epoch, offset.metadata)
        topics.setdefault(topic, []).append(row)
    body = TxnOffsetCommitRequest(
        transactional_id=transaction.name,
        group_id=member.group,
        producer_id=transaction.producer.id,
        producer_epoch=transaction.producer.epoch,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in topics.items()],
    )
    answer = await cluster.request_coordinator(member.group, body, max_version=max_version)
    for found in answer.topics:
        for result in found.partitions:
            if result.error_code:
                name = partition_name(TopicPartition(found.name, result.partition_index))
                raise KafkaError(
                    result.error_code,
                    f"committing {name} in group {member.group!r} and transaction {transaction.name!r}",
                )


async def end_transaction(
    cluster: Requests, transaction: Transaction, *, commit: bool, max_version: int | None = None
) -> ProducerId:
    """Commit or abort a transaction. Return the producer's id and epoch after it.

    Up to END_VERSION these do not change, so that the request may be repeated by anyone who has the
    Transaction.
    """
    body = EndTxnRequest(
        transactional_id=transaction.name,
        producer_id=transaction.producer.id,
        producer_epoch=transaction.producer.epoch,
        committed=commit,
    )
    answer = await cluster.request_coordinator(
        transaction.name, body, key_type=TRANSACTION, max_version=max_version
    )
    if answer.error_code:
        doing = "committing" if commit else "aborting"
        raise KafkaError(answer.error_code, f"{doing} transaction {transaction.name!r}")
    if answer.producer_id < 0:
        return transaction.producer
    return ProducerId(answer.producer_id, answer.producer_epoch)


async def describe_transaction(cluster: Requests, name: str) -> DescribedTransactionState:
    """Return the row of DescribeTransactions: a transaction as its coordinator knows it, or an error code."""
    body = DescribeTransactionsRequest([name])
    (row,) = (await cluster.request_coordinator(name, body, key_type=TRANSACTION)).transaction_states
    return row


async def list_transactions_of(
    cluster: Requests, node: int, states: Sequence[str] = ()
) -> Sequence[TransactionState]:
    """Return the transactional ids that a node coordinates, in the given states or in any."""
    body = ListTransactionsRequest(state_filters=list(states))
    answer = await cluster.request(node, ApiKey.LIST_TRANSACTIONS, body)
    if answer.error_code:
        raise KafkaError(answer.error_code, f"listing the transactions of node {node}")
    return answer.transaction_states
