"""The steps by which tasks and driver write a batch once. No I/O here: each step is a question to the broker.

A function of this module is a generator. It yields a step and is sent the answer, or the error that the step
ended with; ``_transaction.py`` carries the steps out, and tests do so with a broker of their own and end the
process between any two.

    begin_task      is the task's part of the batch to be written, and under which transactional id?
    start_batch     finish what a former run had decided, end what it left open
    commit_batch    all tasks have written: are all transactions there? -> the ledger's entry, which is the
                    decision -> commit each -> the batch is done
    abort_batch     a task failed: end all that is open

A decided batch may be committed in part: the driver was killed between two commits, and the other
transactions had timed out before it came back. Then the entry keeps which parts stand, and a repeated batch
writes only what is missing: its tasks compare their rows with the digests of the parts that stand.

No transactional id of a decided batch is used again before the outcome is noted. So the coordinator always
knows how each transaction ended: that of an id used since could be read both ways.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from ..client.transactions import ProducerId, Transaction
from ..protocol import KohortError
from ._ledger_entry import Entry, LedgerError, Part, Stage, transaction_name

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Transactional ids that an attempt of a task looks at for one that is not in use.
_SLOTS = 8

#: States of a transaction that was not committed, and never will be.
_ABORTED = frozenset(("PrepareAbort", "CompleteAbort", "PrepareEpochFence"))
#: States in which a transaction's records are open, so that its id is in use.
OPEN = frozenset(("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"))


class TransactionLostError(KohortError):
    """A transaction ended before it could be committed. The next run of the batch writes what is missing."""


class PartialBatchError(LedgerError):
    """A batch is in the topics in part, and its rows come in other tasks now, so it cannot be completed."""


class UndecidedBatchError(LedgerError):
    """Nobody can tell any more whether a transaction of a batch was committed."""


class End(Enum):
    """How the request to commit a transaction was answered."""

    COMMITTED = "committed"
    #: The coordinator has the transaction, and it is not committed.
    ABORTED = "aborted"
    #: Its id has another epoch now, or is not known.
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Status:
    """State of a transactional id, and its producer, as its coordinator has them."""

    state: str
    producer: ProducerId


@dataclass(frozen=True, slots=True)
class ReadLedger:
    """Answered with the Entry."""


@dataclass(frozen=True, slots=True)
class WriteLedger:
    """Makes ``entry`` the ledger's entry, in one step."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class DescribeIds:
    """Answered with the Status of each transactional id that is known; None if brokers do not say."""

    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class ListOpenIds:
    """Answered with the sink's transactional ids whose transactions are open; None if brokers do not say."""


@dataclass(frozen=True, slots=True)
class FenceIds:
    """Aborts what is open under these ids, and takes them away from producers that are still at work."""

    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class CommitAll:
    """Commits transactions. Answered with the End of each."""

    transactions: Sequence[Transaction]


Step = ReadLedger | WriteLedger | DescribeIds | ListOpenIds | FenceIds | CommitAll
Steps = Generator[Step, Any, T]


class Work(Enum):
    """What a task is to do with its rows."""

    WRITE = "write"
    #: They stand: compare them with the digest.
    COMPARE = "compare"
    #: The ledger has the whole batch.
    PASS_OVER = "pass over"


@dataclass(frozen=True, slots=True)
class Order:
    """A task's work, with the transactional id to write under, or the digest to compare with."""

    work: Work
    name: str = ""
    digest: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a task has done; ``transaction`` is None if it had no rows, or writes without transactions."""

    task: int
    work: Work
    digest: int | None = None
    transaction: Transaction | None = None


def begin_task(prefix: str | None, key: str | None, task: int, attempt: int) -> Steps[Order]:
    """Decide what a task is to do, before it writes. ``key`` is None without a ledger, and ``prefix``
    without transactions.

    An attempt never takes an id under which another one has written: that would abort a part that may be
    finished already. Copies of a task, and its attempts in another attempt of the stage, find ids of their
    own so.
    """
    entry: Entry = yield ReadLedger()
    if key is not None and key == entry.key:
        if entry.stage in (Stage.WRITTEN, Stage.PREPARED):
            return Order(Work.PASS_OVER)
        if (part := entry.standing(key).get(task)) is not None:
            return Order(Work.COMPARE, digest=part.digest)
    if prefix is None:
        return Order(Work.WRITE)
    decided = {one.name for one in entry.transactions}
    names = [transaction_name(prefix, task, slot) for slot in range(attempt, attempt + _SLOTS)]
    names = [name for name in names if name not in decided]
    for name in names:
        known: Mapping[str, Status] | None = yield DescribeIds([name])
        if known is None or name not in known or known[name].state not in OPEN:
            return Order(Work.WRITE, name)
    # tried in vain so often that brokers would be left with ids without end
    return Order(Work.WRITE, names[0])


def compare_rows(key: str | None, task: int, order: Order, digest: int) -> Report:
    """Report that a part stands. Raises PartialBatchError if the rows are other ones now."""
    if order.digest != digest:
        why = "other rows than then" if order.digest is not None else "rows that were not noted then"
        raise PartialBatchError(_incomplete_text(key, f"task {task}, whose rows are there, has {why}"))
    return Report(task, Work.COMPARE, digest)


def start_batch() -> Steps[None]:
    """Finish what a former run had decided, and end what it left open. Raises UndecidedBatchError."""
    entry: Entry = yield ReadLedger()
    if entry.stage is Stage.PREPARED:
        yield from _finish_entry(entry)
    yield from _end_open(())


def commit_batch(key: str | None, reports: Sequence[Report]) -> Steps[None]:
    """Commit a batch after all tasks: readers see it from now on, and the ledger has it.

    Raises TransactionLostError, PartialBatchError, UndecidedBatchError and LedgerError.
    """
    entry: Entry = yield ReadLedger()
    if entry.stage is Stage.PREPARED:
        entry = yield from _finish_entry(entry)
    if key is not None and entry.holds(key):
        yield from _end_open(())
        return
    try:
        _check_reports(entry, key, reports)
    except KohortError:
        yield from _end_open(())
        raise
    written = [Part(one.task, one.digest, one.transaction) for one in reports if one.transaction is not None]
    transactions = [part.transaction for part in written if part.transaction is not None]
    yield from _end_open(transactions)
    lost = yield from _find_lost(transactions)
    if lost:
        # nothing is committed yet, so that readers see nothing of the batch
        yield from _end_open(())
        raise TransactionLostError(
            _describe_loss(lost, len(transactions), "nothing of the batch is in the topics")
        )
    standing = entry.standing(key or "")
    parts = sorted([*standing.values(), *written], key=lambda part: part.task)
    entry = Entry(entry.batches, key or "", Stage.PREPARED, tuple(parts))
    if transactions:
        yield WriteLedger(entry)
    entry = yield from _finish_entry(entry)
    if entry.stage is not Stage.WRITTEN:
        gone = {part.task for part in parts} - {part.task for part in entry.parts}
        names = [part.transaction.name for part in written if part.transaction and part.task in gone]
        raise TransactionLostError(_describe_loss(names, len(transactions), "the others are in the topics"))


def abort_batch(reports: Sequence[Report]) -> Steps[None]:
    """End what the tasks of a batch left open, unless it is decided that it is committed."""
    entry: Entry = yield ReadLedger()
    ours = [one.transaction for one in reports if one.transaction is not None]
    yield from _end_open(entry.transactions, ours)


def _finish_entry(entry: Entry) -> Steps[Entry]:
    """Commit the transactions of a decided batch, and note the outcome. Return the new entry."""
    transactions = entry.transactions
    ends: Mapping[Transaction, End] = (yield CommitAll(transactions)) if transactions else {}
    gone = [one for one in transactions if ends[one] is End.GONE]
    known: Mapping[str, Status] = ((yield DescribeIds([one.name for one in gone])) or {}) if gone else {}
    unclear = [one.name for one in gone if not _was_aborted(one, known.get(one.name))]
    if unclear:
        raise UndecidedBatchError(
            f"whether transactions {', '.join(unclear[:5])} of batch {entry.key!r} were committed cannot be "
            "told, because their ids were used by others since or have expired. To have the batch written "
            "again, with rows twice that are in the topics, delete the offsets of the ledger's group"
        )
    standing = tuple(
        replace(part, transaction=None)
        for part in entry.parts
        if part.transaction is None or ends[part.transaction] is End.COMMITTED
    )
    if len(standing) == len(entry.parts):
        after = Entry(entry.batches + 1, entry.key, Stage.WRITTEN)
    elif standing:
        after = Entry(entry.batches, entry.key, Stage.PARTIAL, standing)
        log.warning(
            "batch %r is in the topics in part: %d of the transactions of its %d tasks were committed",
            entry.key,
            len(standing),
            len(entry.parts),
        )
    else:
        after = Entry(entry.batches)
    yield WriteLedger(after)
    return after


def _was_aborted(transaction: Transaction, known: Status | None) -> bool:
    """Return whether the last that happened under the id is the abort of this transaction.

    Coordinators raise the epoch when they abort.
    """
    if known is None or known.state not in _ABORTED:
        return False
    id_, epoch = transaction.producer
    return known.producer in (ProducerId(id_, epoch), ProducerId(id_, epoch + 1))


def _end_open(kept: Iterable[Transaction], others: Iterable[Transaction] = ()) -> Steps[None]:
    """End all that is open but ``kept``; where brokers do not list it, at least ``others``."""
    found: Sequence[str] | None = yield ListOpenIds()
    if found is None:
        found = [one.name for one in others]
    names = {one.name for one in kept}
    left = [name for name in found if name not in names]
    if left:
        yield FenceIds(left)


def _find_lost(transactions: Sequence[Transaction]) -> Steps[list[str]]:
    """Return the ids of the transactions that are not open any more, so far as brokers say."""
    if not transactions:
        return []
    known: Mapping[str, Status] | None = yield DescribeIds([one.name for one in transactions])
    if known is None:
        return []
    return [
        one.name
        for one in transactions
        if (found := known.get(one.name)) is None
        or found.state != "Ongoing"
        or found.producer != one.producer
    ]


def _check_reports(entry: Entry, key: str | None, reports: Sequence[Report]) -> None:
    """Raise an error unless the tasks found the ledger as it is now, and completed the parts that stand."""
    standing = entry.standing(key or "")
    done = {one.task: one.work for one in reports}
    if Work.PASS_OVER in done.values():
        raise TransactionLostError(
            f"batch {key!r} was found to be in the topics in part when its tasks had passed it over: the "
            "next run writes what is missing"
        )
    if any((done.get(task) is Work.COMPARE) != (task in standing) for task in done):
        raise LedgerError(
            f"the ledger changed while batch {key!r} was written: another job writes with its ledgerGroup"
        )
    if missing := sorted(standing.keys() - done.keys()):
        raise PartialBatchError(
            _incomplete_text(
                key, f"the rows of task {missing[0]} are there, and there are only {len(done)} tasks now"
            )
        )
    if entry.stage is Stage.PARTIAL and entry.key != key:
        log.warning("batch %r stays in the topics in part: another batch follows it", entry.key)


def _incomplete_text(key: str | None, why: str) -> str:
    return (
        f"batch {key!r} is in the topics in part and cannot be completed: {why}. Run the job with as many "
        "cores and tasks as it had then, and without values that change with each run. To have the batch "
        "written again, with those rows twice, delete the offsets of the ledger's group"
    )


def _describe_loss(names: Sequence[str], count: int, state: str) -> str:
    return (
        f"{len(names)} of the {count} transactions of the batch ({', '.join(names[:5])}) were over before "
        f"they could be committed, {state}: the batch took longer than kafka.transaction.timeout.ms, or "
        "another job writes with the same ledgerGroup. The next run of the batch writes what is missing"
    )
