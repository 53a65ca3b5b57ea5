"""Transactions of tasks, which the driver ends once all have written; and the ledger of batches.

What a task hands to the driver is enough to end its transaction from there: name, producer id and epoch. The
request is that of clients before KIP-890, which every broker with transactions accepts and which leaves the
epoch as it is: the same end may be requested again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ..client import Cluster, CommittedOffset
from ..client.requests import TRANSACTION
from ..client.transactions import END_VERSION, ProducerId, Transaction, end_transaction
from ..protocol import ErrorCode, KafkaError, KohortError, TopicPartition
from ._client import Client

log = logging.getLogger(__name__)

#: The coordinator has ended the transaction, or somebody else has its transactional id now.
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
    """A transaction ended before it could be committed: readers never see its records."""


@dataclass(frozen=True, slots=True)
class TransactionRules:
    """Transactional id of a task's transaction, and how long it may stay open before the broker ends it."""

    name: str
    timeout_ms: int


def end(client: Client, transaction: Transaction, *, commit: bool) -> None:
    """Commit or abort; repeating the same changes nothing. Raises TransactionLostError and KafkaError."""
    client.run(lambda cluster: _end(cluster, transaction, commit))


async def _end(cluster: Cluster, transaction: Transaction, commit: bool) -> None:
    async def attempt() -> None:
        await end_transaction(cluster, transaction, commit=commit, max_version=END_VERSION)

    try:
        await cluster.at_coordinator(transaction.name, attempt, TRANSACTION)
    except KafkaError as error:
        if error.code not in _GONE:
            raise
        raise TransactionLostError(
            f"transaction {transaction.name!r} was over before it could be "
            f"{'committed' if commit else 'aborted'} ({error.code.name}): a batch took longer than "
            "kafka.transaction.timeout.ms, or another job writes with the same ledgerGroup"
        ) from error


#: Brokers accept 4,096 bytes by default.
_MAX_METADATA_BYTES = 4_096


class LedgerError(KohortError):
    """A batch that the ledger cannot record."""


@dataclass(frozen=True, slots=True)
class Entry:
    """``key`` is that of the last batch, empty where there is none; its records are written. ``prepared`` are
    its transactions while they are still to be committed; ``batches`` is how many were done before."""

    batches: int = 0
    key: str = ""
    prepared: tuple[Transaction, ...] = ()

    def holds(self, key: str) -> bool:
        """Return whether the records of a batch are written."""
        return self.key == key


def transaction_name(prefix: str, task: int) -> str:
    """Return the transactional id of a task: the same for every attempt, so that a new one ends the old one's
    transaction."""
    return f"{prefix}-{task}"


class Ledger:
    """Record of which batches are in the topics: the commit of ``group`` on ``place``, for one sink.

    Its metadata has the key of the last batch that is done, ``{"k":"3-9f86d081884c7d65"}``; its offset counts
    the batches. While the transactions of a batch are being committed, the metadata names them, too:
    ``{"k":"3-9f86d081884c7d65","t":[[0,1000,5],[1,1001,0]]}``, task, producer id and epoch. All tasks of that
    batch have written all they had, so a driver that finds such an entry commits the rest and writes nothing.

    One key is enough: a job begins no batch before the one before it is committed, so that only the last one
    can come again. A number is no key: after a reset of the job's offsets it comes again for other records.
    """

    def __init__(self, client: Client, group: str, place: TopicPartition) -> None:
        self._client = client
        self._group = group
        self._place = place

    def read(self) -> Entry:
        found = self._client.run(lambda cluster: cluster.committed(self._group, [self._place]))
        commit = found.get(self._place)
        if commit is None:
            return Entry()
        return _parsed(self._group, commit.offset, commit.metadata or "")

    def prepare(self, entry: Entry, key: str, transactions: Sequence[Transaction]) -> Entry:
        """Record that all tasks have written: from here on the batch can only be committed. Raises
        LedgerError.
        """
        rows = [[int(one.name.rpartition("-")[2]), *one.producer] for one in transactions]
        metadata = json.dumps({"k": key, "t": rows}, separators=(",", ":"))
        if len(metadata) > _MAX_METADATA_BYTES:
            raise LedgerError(
                f"the transactions of {len(rows)} tasks do not fit into the ledger's entry: write with fewer "
                "tasks (df.coalesce(100)), or with option transactions=never"
            )
        self._commit(entry.batches, metadata)
        return Entry(entry.batches, key, tuple(transactions))

    def note(self, entry: Entry, key: str) -> None:
        """Record that the batch is in the topics."""
        self._commit(entry.batches + 1, json.dumps({"k": key}, separators=(",", ":")))

    def cancel(self, entry: Entry) -> None:
        """Record that the batch is not in the topics and is no longer to be committed."""
        self._commit(entry.batches, "")

    def _commit(self, offset: int, metadata: str) -> None:
        entry = {self._place: CommittedOffset(offset, metadata=metadata)}
        self._client.run(lambda cluster: cluster.commit(self._group, entry))


def _parsed(group: str, batches: int, metadata: str) -> Entry:
    """Return the entry in a commit; it holds no batch if somebody else wrote it."""
    try:
        document = json.loads(metadata)
        transactions = tuple(
            Transaction(transaction_name(group, int(task)), ProducerId(int(producer), int(epoch)))
            for task, producer, epoch in document.get("t", ())
        )
        return Entry(batches, str(document["k"]), transactions)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Entry(batches)
