"""Transactions of tasks, which the driver ends after all tasks have written; and the ledger of batches.

A task returns transactional id, producer id and epoch to the driver, which is enough to end its transaction.
The driver sends the EndTxn version before KIP-890: every broker with transactions accepts it, and it does not
change the epoch, so the request may be repeated.
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

#: Errors for a transaction that the coordinator has ended, or whose transactional id another producer uses
#: now.
_GONE = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
    }
)


class NoTransactionsError(KohortError):
    """The broker does not support transactions."""


class TransactionLostError(KohortError):
    """A transaction ended before it could be committed: readers never see its records."""


@dataclass(frozen=True, slots=True)
class TransactionRules:
    """Transactional id of a task (``name``), and how long its transaction may stay open, in milliseconds."""

    name: str
    timeout_ms: int


def end(client: Client, transaction: Transaction, *, commit: bool) -> None:
    """Commit or abort a transaction. May be repeated. Raises TransactionLostError and KafkaError."""
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
    """A batch does not fit into the ledger."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Content of the ledger. ``key``: key of the last batch that was written, or empty. ``prepared``: its
    transactions while they are not all committed. ``batches``: number of batches done before.
    """

    batches: int = 0
    key: str = ""
    prepared: tuple[Transaction, ...] = ()

    def holds(self, key: str) -> bool:
        """Return whether the records of a batch are written."""
        return self.key == key


def transaction_name(prefix: str, task: int) -> str:
    """Return the transactional id of a task. Its attempts share it, so a new one fences the old one."""
    return f"{prefix}-{task}"


class Ledger:
    """Record of the last batch that a sink has written: the commit of ``group`` on partition ``place``.

    The commit's metadata has the key of that batch, ``{"k":"3-9f86d081884c7d65"}``; its offset is the number
    of batches. While the transactions of a batch are being committed, the metadata also lists them by task,
    producer id and epoch: ``{"k":"3-9f86d081884c7d65","t":[[0,1000,5],[1,1001,0]]}``. By then all tasks of
    the batch have written their rows, so a driver that finds such an entry only commits the remaining
    transactions.

    One key is enough, because a job starts a batch only after the previous one is committed: only the last
    batch can be repeated. A batch number cannot serve as the key: after a reset of the job's offsets, numbers
    repeat for other records.
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
        """Record that all tasks have written. From now on the batch can only be committed.

        Raises LedgerError for more transactions than the commit's metadata can hold.
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
        """Record that the batch is not in the topics, and must not be committed any more."""
        self._commit(entry.batches, "")

    def _commit(self, offset: int, metadata: str) -> None:
        entry = {self._place: CommittedOffset(offset, metadata=metadata)}
        self._client.run(lambda cluster: cluster.commit(self._group, entry))


def _parsed(group: str, batches: int, metadata: str) -> Entry:
    """Parse the entry in a commit. Other metadata is an entry without a batch."""
    try:
        document = json.loads(metadata)
        transactions = tuple(
            Transaction(transaction_name(group, int(task)), ProducerId(int(producer), int(epoch)))
            for task, producer, epoch in document.get("t", ())
        )
        return Entry(batches, str(document["k"]), transactions)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Entry(batches)
