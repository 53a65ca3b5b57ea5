"""Compares what producers did with what readers saw: T1 to T4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..engine._schedule import Schedule


class EndOutcome(Enum):
    """Outcome of a transaction as its producer knows it."""

    OPEN = "it was never ended"
    COMMITTING = "nobody answered its commit"
    COMMITTED = "it was committed"
    ABORTED = "it was aborted"


@dataclass(slots=True, eq=False)
class PlannedTransaction:
    """One transaction: input from ``start`` to ``end``, and its output by partition, in order."""

    number: int
    who: str
    source: int
    start: int
    end: int
    output: dict[int, list[bytes]] = field(default_factory=dict)
    outcome: EndOutcome = EndOutcome.OPEN

    def __repr__(self) -> str:
        return f"transaction {self.number} of {self.who} ({self.outcome.value})"


class TransactionLedger:
    """All transactions of a schedule; ``ends`` is how many records each input partition has, and ``outputs``
    partitions of ``topic`` take what is made of them.
    """

    def __init__(self, schedule: Schedule[Any], ends: Iterable[int], topic: str, outputs: int) -> None:
        self.topic = topic
        self.ends = list(ends)
        self.transactions: list[PlannedTransaction] = []
        #: What each output partition's reader was given, in order.
        self.read: list[list[bytes]] = [[] for _ in range(outputs)]
        #: The newest identity that a producer received, by transactional id.
        self.newest: dict[str, tuple[int, int]] = {}
        self._schedule = schedule

    def begin(self, who: str, source: int, start: int, end: int) -> PlannedTransaction:
        """A transaction that ``who`` begins, with the numbers from ``start`` to ``end``."""
        made = PlannedTransaction(len(self.transactions), who, source, start, end)
        self.transactions.append(made)
        return made

    def write(self, transaction: PlannedTransaction, partition: int, offset: int) -> bytes:
        """Return a value to write for a record of the input."""
        value = b"%d %d %d" % (transaction.number, transaction.source, offset)
        transaction.output.setdefault(partition, []).append(value)
        return value

    def on_identified(self, transactional_id: str, identity: tuple[int, int]) -> None:
        """A producer received its identity."""
        self.newest[transactional_id] = max(identity, self.newest.get(transactional_id, identity))

    def on_committed(self, transaction: PlannedTransaction) -> None:
        """A commit was acknowledged."""
        transaction.outcome = EndOutcome.COMMITTED
        self._schedule.stats.commits += 1

    def on_seen(self, partition: int, value: bytes) -> None:
        """A read_committed reader received a record."""
        transaction = self.transactions[int(value.split()[0])]
        if transaction.outcome is EndOutcome.ABORTED:
            self._schedule.found("T1", f"{value!r} is read, of {transaction}")
        elif transaction.outcome is EndOutcome.OPEN:
            self._schedule.found("T2", f"{value!r} is read, of {transaction}")
        self.read[partition].append(value)
        self._schedule.stats.records += 1

    def compare(self, committed: list[int]) -> None:
        """Compare everything that was read with what was promised; ``committed`` are the group's offsets."""
        by_number: dict[int, dict[int, list[bytes]]] = {}
        for partition, values in enumerate(self.read):
            for value in values:
                number = int(value.split()[0])
                by_number.setdefault(number, {}).setdefault(partition, []).append(value)
        for transaction in self.transactions:
            found = by_number.get(transaction.number, {})
            whole = found == transaction.output
            if transaction.outcome is EndOutcome.COMMITTED and not whole:
                self._schedule.fail("T3", f"of {transaction} is read {found}, not {transaction.output}")
            if found and not whole:
                self._schedule.fail("T2", f"of {transaction} is read {found}, not all {transaction.output}")
            if found and transaction.outcome in (EndOutcome.ABORTED, EndOutcome.OPEN):
                self._schedule.fail("T1", f"of {transaction} is read {found}")
        counts = Counter(tuple(value.split()[1:]) for values in self.read for value in values)
        for source, end in enumerate(self.ends):
            if committed[source] != end:
                self._schedule.fail("T4", f"of input {source} {committed[source]} is committed, not {end}")
            for offset in range(end):
                count = counts[b"%d" % source, b"%d" % offset]
                if count != 1:
                    self._schedule.fail("T4", f"record {offset} of input {source} has {count} outputs")
