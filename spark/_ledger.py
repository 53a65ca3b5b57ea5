"""Which batches are in the topics: a commit of a group that serves as the ledger of one sink.

Its offset is the number of the next batch. While the transactions of a batch are being committed, its
metadata names them: ``{"b":3,"t":[[0,1000,5],[1,1001,0]]}``, task, producer id and epoch. All tasks of that
batch have written all they had, so whoever finds such an entry commits the rest and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ..consumer import CommittedOffset
from ..protocol import KohortError, TopicPartition
from ._client import Client
from ._transaction import Transaction

#: Brokers take 4,096 bytes by default.
_MAX_METADATA_BYTES = 4_096


class LedgerError(KohortError):
    """A batch that the ledger cannot note."""


@dataclass(frozen=True, slots=True)
class Entry:
    """``next_number`` is the first batch that is not done; ``prepared`` are its transactions, if it is ready
    to be committed."""

    next_number: int = 0
    prepared: tuple[Transaction, ...] = ()

    def holds(self, number: int) -> bool:
        """Whether the records of a batch are written."""
        return self.next_number > number or (self.next_number == number and bool(self.prepared))


def transaction_name(prefix: str, task: int) -> str:
    """The same for every attempt of a task, so that a new one puts an end to the old."""
    return f"{prefix}-{task}"


class Ledger:
    """Reads and writes the entry: the commit of ``group`` on ``place``."""

    def __init__(self, client: Client, group: str, place: TopicPartition) -> None:
        self._client = client
        self._group = group
        self._place = place

    def read(self) -> Entry:
        found = self._client.run(lambda cluster: cluster.committed(self._group, [self._place]))
        commit = found.get(self._place)
        if commit is None:
            return Entry()
        return Entry(commit.offset, _parsed(self._group, commit.offset, commit.metadata or ""))

    def prepare(self, number: int, transactions: Sequence[Transaction]) -> None:
        """All tasks have written: from here on the batch is only to be committed. Raises LedgerError."""
        rows = [
            [int(one.name.rpartition("-")[2]), one.producer_id, one.producer_epoch] for one in transactions
        ]
        metadata = json.dumps({"b": number, "t": rows}, separators=(",", ":"))
        if len(metadata) > _MAX_METADATA_BYTES:
            raise LedgerError(
                f"the transactions of {len(rows)} tasks do not fit into the ledger's entry: write with fewer "
                "tasks (df.coalesce(100)), or with option transactions=never"
            )
        self._commit(number, metadata)

    def note(self, number: int) -> None:
        """The batch is in the topics."""
        self._commit(number + 1, "")

    def cancel(self, number: int) -> None:
        """The batch is not in the topics, and no longer to be committed."""
        self._commit(number, "")

    def _commit(self, offset: int, metadata: str) -> None:
        entry = {self._place: CommittedOffset(offset, metadata=metadata)}
        self._client.run(lambda cluster: cluster.commit(self._group, entry))


def _parsed(group: str, number: int, metadata: str) -> tuple[Transaction, ...]:
    """The transactions in an entry; none where somebody else wrote it."""
    try:
        document = json.loads(metadata or "{}")
        if document.get("b") != number:
            return ()
        return tuple(
            Transaction(transaction_name(group, int(task)), int(producer), int(epoch))
            for task, producer, epoch in document["t"]
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()
