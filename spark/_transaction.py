"""The sink's transactions and its ledger at the brokers: carries out the steps of ``_batch_steps.py``.

A task returns transactional id, producer id and epoch to the driver, which is enough to end its transaction.
The driver sends the EndTxn version before KIP-890: every broker with transactions accepts it, and it does not
change the epoch, so the request may be repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..client import BrokerConnectionError, Cluster, CommittedOffset
from ..client.requests import TRANSACTION
from ..client.transactions import (
    END_VERSION,
    ProducerId,
    Transaction,
    describe_transaction,
    end_transaction,
    init_producer_id,
    list_transactions_of,
)
from ..protocol import ErrorCode, KafkaError, KohortError, TopicPartition, UnsupportedVersionError
from ._batch_steps import (
    OPEN,
    CommitAll,
    DescribeIds,
    End,
    FenceIds,
    ListOpenIds,
    ReadLedger,
    Status,
    Step,
    Steps,
    WriteLedger,
)
from ._client import Client
from ._group import REFUSALS, count_partitions
from ._ledger_entry import Entry, LedgerError, encode_entry, is_name_of, parse_entry

log = logging.getLogger(__name__)

T = TypeVar("T")
A = TypeVar("A")

#: Errors for a transaction that the coordinator has ended, or whose transactional id another producer uses
#: now.
_GONE = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.PRODUCER_FENCED,
    }
)
#: Requests that are under way at the same time.
_SIDE_BY_SIDE = 50
#: Pause before a coordinator is asked again whether it has aborted a transaction, in seconds.
_PAUSE_S = 0.02


class NoTransactionsError(KohortError):
    """The broker offers no transactions, or not to this user."""


def describe_missing_right(name: str) -> str:
    """Return the text of the error of a user who may not use a transactional id."""
    prefix = name.rpartition("-")[0]
    return (
        f"this user may not use transactional ids (TRANSACTIONAL_ID_AUTHORIZATION_FAILED for {name!r}): the "
        f"sink needs the rights Write and Describe on transactional ids with the prefix '{prefix}-'"
    )


@dataclass(frozen=True, slots=True)
class TransactionRules:
    """Transactional id of a task (``name``), and how long its transaction may stay open, in milliseconds."""

    name: str
    timeout_ms: int


class Ledger:
    """Record of the last batch that a sink has written: commits of ``group`` on partitions of ``topic``.

    One batch is enough, because a job starts a batch only after the previous one is committed: only the last
    one can be repeated. A batch number cannot serve as its key: after a reset of the job's offsets, numbers
    repeat for other records.
    """

    def __init__(self, client: Client, group: str, topic: str) -> None:
        self._client = client
        self._group = group
        self._topic = topic

    def read(self) -> Entry:
        """Return the entry. Raises LedgerError if it is damaged, UnknownTopicError without its topic."""
        return self._client.run(self.fetch)

    def write(self, entry: Entry) -> None:
        """Write the entry. Raises LedgerError if it is too long, or the group has members."""
        self._client.run(lambda cluster: self.commit(cluster, entry))

    async def fetch(self, cluster: Cluster) -> Entry:
        """Return the entry as the group's commits have it."""
        found = await cluster.committed(self._group)
        if not found:
            # without its topic a batch would be written before its commit fails
            await count_partitions(cluster, self._topic)
        commits = [found.get(TopicPartition(self._topic, number)) for number in range(len(found))]
        if not commits or commits[0] is None:
            return Entry()
        return parse_entry(self._group, commits[0].offset, ["" if c is None else c.metadata for c in commits])

    async def commit(self, cluster: Cluster, entry: Entry) -> None:
        """Commit the entry as metadata, in as many partitions as it needs."""
        partitions = 1
        if len(entry.parts) > 1:
            partitions = await self.count_partitions(cluster)
        offsets = {
            TopicPartition(self._topic, number): CommittedOffset(entry.batches, metadata=text)
            for number, text in enumerate(encode_entry(entry, partitions))
        }
        try:
            await cluster.commit(self._group, offsets)
        except KafkaError as error:
            if error.code not in REFUSALS:
                raise
            raise LedgerError(
                f"the ledger cannot be written ({error.code.name}): group {self._group!r} has members. Give "
                "the sink a ledgerGroup of its own, to which nothing else commits"
            ) from error

    async def count_partitions(self, cluster: Cluster) -> int:
        """Return the number of partitions of the ledger's topic, at least 1."""
        return await count_partitions(cluster, self._topic)


class StepRunner:
    """Runs generators of steps at the brokers.

    ``ledger`` is None for a sink without one. ``prefix`` begins the transactional ids; None: there are none.
    """

    def __init__(self, client: Client, ledger: Ledger | None, prefix: str | None, timeout_ms: int) -> None:
        self._client = client
        self._ledger = ledger
        self._prefix = prefix
        self._timeout_ms = timeout_ms

    def run(self, steps: Steps[T]) -> T:
        """Return what the steps return. Raises their errors, KafkaError and BrokerConnectionError."""
        return self._client.run(lambda cluster: self._run(cluster, steps))

    async def _run(self, cluster: Cluster, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._carry_out(cluster, step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _carry_out(self, cluster: Cluster, step: Step) -> Any:
        match step:
            case ReadLedger():
                return Entry() if self._ledger is None else await self._ledger.fetch(cluster)
            case WriteLedger(entry):
                return None if self._ledger is None else await self._ledger.commit(cluster, entry)
            case CommitAll(transactions):
                return await _for_each(transactions, lambda one: _commit_transaction(cluster, one))
            case DescribeIds(names):
                return await self._describe_transactions(cluster, names)
            case ListOpenIds():
                return [] if self._prefix is None else await _list_open(cluster, self._prefix)
            case FenceIds(names):
                return await _for_each(names, lambda name: _fence_id(cluster, name, self._timeout_ms))

    async def _describe_transactions(
        self, cluster: Cluster, names: Sequence[str]
    ) -> Mapping[str, Status] | None:
        try:
            found = await _for_each(names, lambda name: _transaction_status(cluster, name))
        except UnsupportedVersionError:
            return None
        return {name: status for name, status in found.items() if status is not None}


async def _for_each(keys: Iterable[A], ask: Callable[[A], Awaitable[T]]) -> dict[A, T]:
    """Ask for each key, some at the same time; when all have ended, return the results or raise an error."""
    limit = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def ask_in_turn(key: A) -> T:
        async with limit:
            return await ask(key)

    keys = list(keys)
    found = await asyncio.gather(*map(ask_in_turn, keys), return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return dict(zip(keys, found, strict=True))  # type: ignore[arg-type]


async def _commit_transaction(cluster: Cluster, transaction: Transaction) -> End:
    async def attempt() -> None:
        await end_transaction(cluster, transaction, commit=True, max_version=END_VERSION)

    try:
        await cluster.at_coordinator(transaction.name, attempt, TRANSACTION)
    except KafkaError as error:
        if error.code is ErrorCode.INVALID_TXN_STATE:
            return End.ABORTED
        if error.code not in _GONE:
            raise
        return End.GONE
    return End.COMMITTED


async def _transaction_status(cluster: Cluster, name: str) -> Status | None:
    async def attempt() -> Status | None:
        row = await describe_transaction(cluster, name)
        if row.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        if row.error_code:
            raise KafkaError(row.error_code, f"describing transactional id {name!r}")
        return Status(row.transaction_state, ProducerId(row.producer_id, row.producer_epoch))

    try:
        return await cluster.at_coordinator(name, attempt, TRANSACTION)
    except KafkaError as error:
        if error.code is not ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            raise
        raise NoTransactionsError(describe_missing_right(name)) from error


async def _list_open(cluster: Cluster, prefix: str) -> list[str] | None:
    """Return the ids with an open transaction. A broker that does not answer is left out.

    What it coordinates is found by the next batch, or ends by its timeout.
    """
    known = await cluster.metadata([])

    async def ask(node: int) -> list[str]:
        try:
            return [row.transactional_id for row in await list_transactions_of(cluster, node, ["Ongoing"])]
        except (KafkaError, BrokerConnectionError) as error:
            log.warning("open transactions of node %d are left to their timeouts: %s", node, error)
            return []

    try:
        found = await _for_each(known.nodes, ask)
    except UnsupportedVersionError:
        return None
    return sorted({name for names in found.values() for name in names if is_name_of(prefix, name)})


async def _fence_id(cluster: Cluster, name: str, timeout_ms: int) -> None:
    """Abort what is open under an id by a new producer of it. Errors are only logged.

    The coordinator's first answer, CONCURRENT_TRANSACTIONS, says that it aborts and that the old producer is
    fenced. No second request follows: the id's state goes on telling that the transaction was aborted.
    """

    async def attempt() -> None:
        try:
            await init_producer_id(cluster, name, timeout_ms=timeout_ms)
        except KafkaError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                raise

    async def await_end() -> None:
        while (  # noqa: ASYNC110 - the coordinator tells nobody
            status := await _transaction_status(cluster, name)
        ) is not None and status.state in OPEN:
            await asyncio.sleep(_PAUSE_S)

    try:
        await cluster.at_coordinator(name, attempt, TRANSACTION)
        async with asyncio.timeout(cluster.default_api_timeout_ms / 1000):
            await await_end()
    except UnsupportedVersionError:
        pass  # brokers before 3.0 do not say when it is over
    except (KafkaError, BrokerConnectionError, TimeoutError) as error:
        log.warning("transaction %r is left to its timeout: %s", name, error)
