"""A producer's transactions: their stages, the calls that each allows, and the requests to the coordinator.

With ``transaction.version`` 2 (KIP-890) brokers add partitions and offsets to a transaction themselves, and
the end of each transaction returns the next epoch. Before that, the producer adds them with separate
requests, and requests the next epoch after an abort (KIP-360), since it does not know which of its batches
were written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import TypeVar

from ..client.cluster import Cluster
from ..client.offsets import CommittedOffset
from ..client.requests import GROUP, TRANSACTION
from ..client.transactions import (
    ADDED_OFFSETS_VERSION,
    END_VERSION,
    NO_PRODUCER,
    GroupMetadata,
    ProducerId,
    Transaction,
    add_offsets,
    add_partitions,
    commit_offsets,
    end_transaction,
    init_producer_id,
)
from ..protocol import ErrorCode, KafkaError, KohortError, TopicPartition
from .accumulator import CONCURRENT_MS
from .errors import (
    ApplicationRecoverableError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionStateError,
)

T = TypeVar("T")

_E = ErrorCode
_FEATURE, _IMPLICIT_FROM = "transaction.version", 2
_FENCED = frozenset((_E.PRODUCER_FENCED, _E.INVALID_PRODUCER_EPOCH))
#: Errors after which no transaction of this producer can succeed.
_FATAL = frozenset(
    (
        _E.PRODUCER_FENCED,
        _E.INVALID_PRODUCER_ID_MAPPING,
        _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        _E.CLUSTER_AUTHORIZATION_FAILED,
        _E.UNSUPPORTED_VERSION,
        _E.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    )
)


class TransactionStage(Enum):
    """Stages of a transactional producer."""

    STARTING = "it was not started"
    READY = "no transaction is open"
    OPEN = "a transaction is open"
    FAILED = "its transaction can only be aborted"
    ENDING = "its transaction is being ended"
    FATAL = "it cannot go on"


class ProducerTransactions:
    """The transactions of one producer, one after the other.

    ``restart`` is called when the producer's id or epoch changes, with both and whether brokers accept only 0
    as the first sequence number. ``wake`` is called when batches may be sent to more partitions, or to none
    any more.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        timeout_ms: int,
        *,
        restart: Callable[[ProducerId, bool], None],
        wake: Callable[[], None],
    ) -> None:
        self.stage = TransactionStage.STARTING
        #: The reason of FAILED or FATAL.
        self.error: Exception | None = None
        self._cluster = cluster
        self._name = name
        self._timeout_ms = timeout_ms
        self._restart = restart
        self._wake = wake
        self._producer = NO_PRODUCER
        #: Number of the current transaction, counted by this producer.
        self.number = 0
        #: Whether brokers add partitions and offsets to the open transaction themselves (KIP-890).
        self.implicit = False
        #: Whether the coordinator may know of the transaction; otherwise it need not be ended there.
        self._begun = False
        self._added: set[TopicPartition] = set()
        self._to_add: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._adding: asyncio.Task[None] | None = None
        #: Whether the end requested while ENDING is a commit.
        self._committing = False

    @property
    def current(self) -> Transaction:
        """Identity of the open transaction."""
        return Transaction(self._name, self._producer)

    def require(self, *stages: TransactionStage) -> None:
        """Raise an error unless the stage is one of ``stages``.

        That is TransactionAbortableError if the transaction has failed, the error that ended this producer if
        it has one, else TransactionStateError.
        """
        if self.stage in stages:
            return
        if self.stage is TransactionStage.FATAL:
            assert self.error is not None, "there is a reason"
            raise self.error
        if self.stage is TransactionStage.FAILED:
            raise TransactionAbortableError(
                f"transaction {self._name!r} can only be aborted: {self.error}"
            ) from self.error
        what = self.stage.value
        if self.stage is TransactionStage.ENDING:
            end = "commit" if self._committing else "abort"
            what += f" by a {end} whose outcome is not known: repeat the {end}, nothing else is possible"
        raise TransactionStateError(f"transactional id {self._name!r}: {what}")

    async def init(self) -> None:
        """Request a producer id and epoch. This aborts a transaction that an earlier producer with the same
        transactional id left open.
        """
        await self._init_producer_id(NO_PRODUCER)

    async def _init_producer_id(self, last: ProducerId) -> None:
        async def ask() -> ProducerId:
            return await init_producer_id(self._cluster, self._name, timeout_ms=self._timeout_ms, last=last)

        try:
            producer = await self._ask_coordinator(self._name, TRANSACTION, ask)
        except KafkaError as error:
            if error.retriable:
                raise
            raise self._fail_for_good(error) from error
        self._use_producer(producer)
        self._reset_transaction()

    def _use_producer(self, producer: ProducerId) -> None:
        if producer != self._producer:
            self._producer = producer
            self._restart(producer, self._has_kip890)

    @property
    def _has_kip890(self) -> bool:
        return self._cluster.features.get(_FEATURE, 0) >= _IMPLICIT_FROM

    def _reset_transaction(self) -> None:
        self.stage, self.error, self._begun = TransactionStage.READY, None, False
        self._added.clear()
        self._to_add.clear()
        self._groups.clear()

    def begin(self) -> None:
        """Open a transaction. No request is sent before its first batch or offsets."""
        self.require(TransactionStage.READY)
        self.stage, self.implicit = TransactionStage.OPEN, self._has_kip890
        self.number += 1

    @property
    def writes(self) -> bool:
        """Return whether batches may still be sent; if not, waiting ones must be dropped."""
        return self.stage is TransactionStage.OPEN or (
            self.stage is TransactionStage.ENDING and self._committing
        )

    def admits(self, partition: TopicPartition) -> bool:
        """Return whether batches of the partition may be sent; if not yet, add it to the transaction."""
        if not self.writes:
            return False
        if self.implicit or partition in self._added:
            self._begun = True
            return True
        self._to_add.add(partition)
        if self._adding is None:
            self._adding = asyncio.get_running_loop().create_task(self._add_partitions())
        return False

    async def _add_partitions(self) -> None:
        try:
            await asyncio.sleep(0)  # collect the partitions of all tasks that run in this step of the loop
            while self._to_add:
                adding, self._to_add = self._to_add, set()
                transaction = self.current
                self._begun = True

                async def ask(some: set[TopicPartition] = adding, of: Transaction = transaction) -> None:
                    await add_partitions(self._cluster, of, sorted(some))

                await self._ask_coordinator(self._name, TRANSACTION, ask)
                self._added |= adding
        except KohortError as error:
            self.on_failed(error)
        finally:
            self._adding = None
            self._wake()

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, CommittedOffset], member: GroupMetadata
    ) -> None:
        """Commit offsets of a group with the transaction."""
        self.require(TransactionStage.OPEN)
        transaction = self.current
        self._begun = True
        try:
            if not self.implicit and member.group not in self._groups:
                await self._ask_coordinator(
                    self._name, TRANSACTION, lambda: add_offsets(self._cluster, transaction, member.group)
                )
                self._groups.add(member.group)
            version = None if self.implicit else ADDED_OFFSETS_VERSION
            await self._ask_coordinator(
                member.group,
                GROUP,
                lambda: commit_offsets(self._cluster, transaction, member, offsets, max_version=version),
            )
        except KohortError as error:
            self.on_failed(error)
            self.require(TransactionStage.OPEN)
        except asyncio.CancelledError:
            self.on_failed(
                TransactionStateError("send_offsets was cancelled: the offsets may be added or not")
            )
            raise

    def on_failed(self, error: Exception) -> None:
        """Called when part of the transaction, such as a batch, has failed: it can only be aborted then."""
        if not self.writes:
            return
        if isinstance(error, KafkaError) and error.code in _FATAL:
            self._fail_for_good(error)
        else:
            self.stage, self.error = TransactionStage.FAILED, error
        self._wake()

    def _fail_for_good(self, error: KafkaError) -> Exception:
        """Make every later call fail with an error that explains ``error``; return it."""
        fatal: Exception = error
        if error.code in _FENCED or error.code is _E.INVALID_PRODUCER_ID_MAPPING:
            kind = ProducerFencedError if error.code in _FENCED else ApplicationRecoverableError
            fatal = kind(
                f"transactional id {self._name!r}: {error}. Another producer of the name has begun since, or "
                f"a transaction was open for more than transaction_timeout_ms ({self._timeout_ms}): make a "
                "new producer, and do again what was not committed"
            )
            fatal.__cause__ = error
        self.stage, self.error = TransactionStage.FATAL, fatal
        return fatal

    async def commit(self, written: Callable[[], Awaitable[None]]) -> None:
        """Commit after ``written`` has returned, when no batch is left. May be repeated after an error."""
        self.require(TransactionStage.OPEN, *((TransactionStage.ENDING,) if self._committing else ()))
        self.stage, self._committing = TransactionStage.ENDING, True
        await written()
        self.require(TransactionStage.ENDING)
        await self._end_transaction(commit=True)

    async def abort(self, dropped: Callable[[], Awaitable[None]]) -> None:
        """Abort after ``dropped`` has returned, when no batch is left. May be repeated after an error."""
        if self.stage is not TransactionStage.FAILED:
            self.require(TransactionStage.OPEN, *(() if self._committing else (TransactionStage.ENDING,)))
        self.stage, self._committing, self._to_add = TransactionStage.ENDING, False, set()
        await dropped()
        if self._adding is not None:
            await asyncio.wait([self._adding])
        if self.stage is TransactionStage.FATAL:
            self.require()
        self.stage = TransactionStage.ENDING
        await self._end_transaction(commit=False)

    async def _end_transaction(self, *, commit: bool) -> None:
        transaction, version = self.current, None if self.implicit else END_VERSION
        if self._begun:
            try:
                producer = await self._ask_coordinator(
                    self._name,
                    TRANSACTION,
                    lambda: end_transaction(self._cluster, transaction, commit=commit, max_version=version),
                )
            except KafkaError as error:
                if error.retriable:
                    raise  # whether it has ended is unknown; the caller repeats the call
                if commit and error.code in (_E.INVALID_TXN_STATE, _E.TRANSACTION_ABORTABLE):
                    self.on_failed(error)
                    self.require()
                never_began = not (commit or self.implicit or self._added or self._groups)
                if not (never_began and error.code is _E.INVALID_TXN_STATE):
                    raise self._fail_for_good(error) from error
                producer = self._producer  # all requests were refused, so there is nothing to abort
            self._use_producer(producer)
            if not commit and not self.implicit:
                await self._init_producer_id(self._producer)
        self._committing = False
        self._reset_transaction()

    async def end_again(self, dropped: Callable[[], Awaitable[None]]) -> None:
        """Repeat the commit or abort that was requested, in stage ENDING."""
        await (self.commit if self._committing else self.abort)(dropped)

    def detach(self) -> Transaction:
        """Return the open transaction, to be ended elsewhere. This producer cannot be used any more."""
        self.require(TransactionStage.OPEN)
        self.stage = TransactionStage.FATAL
        self.error = TransactionStateError(f"transaction {self._name!r} was detached, to be ended elsewhere")
        return self.current

    @property
    def is_empty(self) -> bool:
        """Return whether the coordinator cannot know of the transaction, as no request was sent in it."""
        return not self._begun

    async def _ask_coordinator(self, key: str, key_type: int, call: Callable[[], Awaitable[T]]) -> T:
        """As Cluster.at_coordinator, but with short pauses while the previous transaction is still ending."""
        until = asyncio.get_running_loop().time() + self._cluster.default_api_timeout_ms / 1000

        async def patient() -> T:
            while True:
                try:
                    return await call()
                except KafkaError as error:
                    late = asyncio.get_running_loop().time() > until
                    if error.code is not _E.CONCURRENT_TRANSACTIONS or late:
                        raise
                await asyncio.sleep(CONCURRENT_MS / 1000)

        return await self._cluster.at_coordinator(key, patient, key_type)
