"""A shard of ``__transaction_state``: its transactional ids, their requests and their timeouts.

Requests and responses are plain data; the broker maps errors to those that a version of an API knows.
Requests about an id wait for the pending writes of that id, so that each is decided by the content of the
log.

While the markers of a decided end are written, every request of the id gets CONCURRENT_TRANSACTIONS, as from
Apache Kafka: the response to EndTxn already has the epoch or the producer id of the next transaction, which
takes effect when the markers are there. Only EndTxn below v5 and a verification, whose producers keep their
epoch, are refused to other producers before that.

If a request needs a new producer id, the response is :data:`NEEDS_PRODUCER_ID`, and the caller repeats the
request with one. When a transaction's end is decided, the shard issues the command :class:`WriteMarkers`; the
caller writes the markers and then calls :func:`markers_written`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ..coordinator.engine.effects import Command, Request
from ..coordinator.engine.events import CoordinatorEvent
from ..coordinator.engine.loader import LoadedBatch
from ..coordinator.engine.shard import Api, CoordinatorTopic, Kind, LoadedRecord, Shard, Waits
from ..coordinator.engine.timers import TimerKey
from ..protocol import ApiKey, ErrorCode, TopicPartition
from ..protocol.named_tuples import NamedTuple
from ..statemachine import TransactionState
from . import moves
from .records import NONE, TransactionDeleted, TransactionMetadata, decode, encode_all, largest_bytes
from .settings import TransactionSettings

_OPEN: Final = TransactionState.ONGOING
_PREPARED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

#: Timers: abort transactions after their timeout, write failed completions again, expire unused ids.
_ABORT: Final = "abort"
_COMPLETE: Final = "complete"
_FORGET: Final = "forget"

#: Time in ms before a failed completion is written again.
_RETRY_MS: Final = 1_000

#: Kafka's default for max.message.bytes.
MAX_BYTES: Final = 1_048_588

#: Most ids that a timer checks and writes at a time; it continues a millisecond later. These are low because
#: all shards may do this at the same time.
_SLICE: Final = 1_000
_WRITTEN_SLICE: Final = 4


class Identity(NamedTuple):
    """Error code, and producer id and epoch, in a response. Id and epoch are -1 with an error."""

    error: ErrorCode
    producer_id: int = NONE
    producer_epoch: int = NONE


#: The response to a request that must be repeated with a new producer id as ``fresh_id``.
NEEDS_PRODUCER_ID: Final = Identity(ErrorCode.NONE)


@dataclass(slots=True)
class Initialize:
    """Initialize a producer (InitProducerId).

    ``given``: the producer id and epoch that it already has. ``fresh_id``: an unused producer id; NONE until
    the shard asks for one. ``timeout_ms``: the transaction timeout in milliseconds.
    """

    transactional_id: str
    timeout_ms: int
    given: tuple[int, int] | None = None
    fresh_id: int = NONE


@dataclass(slots=True)
class Add:
    """Add partitions to the transaction. The response is one ErrorCode for all of them."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]
    client_version: int


@dataclass(slots=True)
class TransactionEnd:
    """End the transaction (EndTxn). The response is an Identity."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    client_version: int
    fresh_id: int = NONE


@dataclass(slots=True)
class WriteMarkers(Command):
    """Write the marker that ends this transaction to all of its partitions, then call ``markers_written``."""

    transaction: TransactionMetadata


@dataclass(slots=True)
class AbortLate(Command):
    """Call ``abort_late`` with an unused producer id, as the epochs of this transaction's are used up."""

    late: TransactionMetadata


@dataclass(slots=True, eq=False)
class ShardTransactions:
    """State of a shard: the last record of each id, and the partitions of open transactions.

    ``version`` returns the finalized transaction.version, ``max_bytes`` the largest batch in bytes.
    """

    settings: TransactionSettings
    version: Callable[[], int] = lambda: moves.EPOCH_BUMP_VERSION
    max_bytes: Callable[[], int] = lambda: MAX_BYTES
    by_id: dict[str, TransactionMetadata] = field(default_factory=dict)
    open: dict[str, frozenset[TopicPartition]] = field(default_factory=dict)
    newest_producer_id: int = NONE
    #: Ids that a timer still has to check, by timer.
    queues: dict[str, list[str]] = field(default_factory=dict)

    def store(self, records: Sequence[TransactionMetadata]) -> None:
        """Apply records of ids."""
        for record in records:
            name = record.transactional_id
            self.by_id[name] = record
            self.newest_producer_id = max(
                self.newest_producer_id, record.producer_id, record.next_producer_id
            )
            if record.state is _OPEN:
                self.open[name] = frozenset(record.partitions)
            else:
                self.open.pop(name, None)

    def remove(self, records: Sequence[TransactionDeleted]) -> None:
        """Apply tombstones."""
        for record in records:
            self.by_id.pop(record.transactional_id, None)
            self.open.pop(record.transactional_id, None)


#: A shard of ``__transaction_state``.
TransactionShard: TypeAlias = Shard[ShardTransactions]


# --- InitProducerId -----------------------------------------------------------------------------------------


def handle_initialize(shard: TransactionShard, request: Request, now_ms: int) -> None:
    """Assign epoch 0 to a new id, and the next epoch to a known one.

    If a transaction is open, it is aborted, and the response is CONCURRENT_TRANSACTIONS, so that the producer
    retries.
    """
    init: Initialize = request.body
    now = shard.state.by_id.get(init.transactional_id)
    if not 0 < init.timeout_ms <= shard.state.settings.transaction_max_timeout_ms:
        return shard.reply(request, Identity(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
    if now is None:
        if init.fresh_id == NONE:
            return shard.reply(request, NEEDS_PRODUCER_ID)
        now = TransactionMetadata(init.transactional_id, init.fresh_id, NONE, init.timeout_ms)
    elif now.state in _PREPARED:
        return shard.reply(request, Identity(ErrorCode.CONCURRENT_TRANSACTIONS))
    elif not _may_initialize(now, init.given):
        return shard.reply(request, Identity(ErrorCode.PRODUCER_FENCED))
    if now.state is _OPEN:
        fenced = _fence_record(shard, now, init.fresh_id, now_ms)
        if fenced is None:
            return shard.reply(request, NEEDS_PRODUCER_ID)
        return _append_record(shard, fenced, request, Identity(ErrorCode.CONCURRENT_TRANSACTIONS))
    given_epoch = None if init.given is None else init.given[1]
    after = _with_next_epoch(now, init, given_epoch, now_ms)
    if isinstance(after, Identity):
        return shard.reply(request, after)
    answer = Identity(ErrorCode.NONE, after.producer_id, after.producer_epoch)
    return _append_record(shard, after, request, answer)


def _may_initialize(now: TransactionMetadata, given: tuple[int, int] | None) -> bool:
    """Return whether a producer may initialize.

    It may if it sends no producer id, or the current one, or the previous one with its last epoch.
    """
    if given is None or given[0] == now.producer_id:
        return True
    return given[0] == now.previous_producer_id and given[1] >= moves.LAST_EPOCH


def _with_next_epoch(
    now: TransactionMetadata, init: Initialize, given_epoch: int | None, now_ms: int
) -> TransactionMetadata | Identity:
    known = now.producer_epoch
    if moves.is_exhausted(now):
        if given_epoch in (None, known):
            if init.fresh_id == NONE:
                return NEEDS_PRODUCER_ID
            return moves.rotate_id(now, init.fresh_id, init.timeout_ms, now_ms, given_epoch=given_epoch)
        return Identity(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Apache Kafka: there is no further epoch
    if given_epoch is None or known == NONE or given_epoch == known:
        return moves.initialize(now, init.timeout_ms, now_ms, given_epoch=given_epoch)
    if given_epoch == now.last_epoch:
        return moves.answered_again(now, init.timeout_ms, now_ms)
    return Identity(ErrorCode.PRODUCER_FENCED)


# --- AddPartitionsToTxn, AddOffsetsToTxn, Produce -----------------------------------------------------------


def handle_add(shard: TransactionShard, request: Request, now_ms: int) -> None:
    """Add all partitions, or none."""
    add: Add = request.body
    now = shard.state.by_id.get(add.transactional_id)
    if now is not None and now.state in _PREPARED:
        return shard.reply(request, ErrorCode.CONCURRENT_TRANSACTIONS)
    error = _fence_producer(now, add.producer_id, add.producer_epoch)
    if now is None or error:
        return shard.reply(request, error)
    if now.state is _OPEN and shard.state.open[add.transactional_id].issuperset(add.partitions):
        return shard.reply(request, ErrorCode.NONE)
    after = moves.add_partitions(now, add.partitions, add.client_version, now_ms)
    if why := _too_large(shard.state, after):
        shard.tell(RecordRefused("", add.transactional_id, why))
        return shard.reply(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    return _append_record(shard, after, request, ErrorCode.NONE)


def _too_large(state: ShardTransactions, after: TransactionMetadata) -> str:
    """Return why the partitions must be refused, or "".

    The record that ends a transaction must fit into a batch.
    """
    count, most = len(after.partitions), state.settings.kohort_transaction_max_partitions
    if count > most:
        return f"{count} partitions in a transaction: kohort.transaction.max.partitions is {most}"
    if largest_bytes(after) > state.max_bytes():
        return f"{count} partitions in a transaction: its record would be over max.message.bytes"
    return ""


def verify_partition(
    state: ShardTransactions,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partition: TopicPartition,
) -> ErrorCode:
    """Return NONE if a partition is in the open transaction, TRANSACTION_ABORTABLE if it is not."""
    now = state.by_id.get(transactional_id)
    error = _fence_producer(now, producer_id, producer_epoch)
    if now is None or error:
        return error
    if now.state in _PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    added = state.open.get(transactional_id, ())
    return ErrorCode.NONE if partition in added else ErrorCode.TRANSACTION_ABORTABLE


def _fence_producer(now: TransactionMetadata | None, producer_id: int, producer_epoch: int) -> ErrorCode:
    if now is None or now.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if now.producer_epoch == producer_epoch else ErrorCode.PRODUCER_FENCED


# --- EndTxn -------------------------------------------------------------------------------------------------


def handle_end(shard: TransactionShard, request: Request, now_ms: int) -> None:
    """Write the decision and respond. The markers are written afterwards."""
    end: TransactionEnd = request.body
    now = shard.state.by_id.get(end.transactional_id)
    bumps = end.client_version >= moves.EPOCH_BUMP_VERSION
    if now is None:
        return shard.reply(request, Identity(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
    error = _end_error_with_bump(now, end) if bumps else _end_error(now, end)
    if error is not None:
        same = bumps and not error
        answer = Identity(error, now.producer_id, now.producer_epoch) if same else Identity(error)
        return shard.reply(request, answer)
    next_id = NONE
    if bumps and moves.is_exhausted(now):
        if end.fresh_id == NONE:
            return shard.reply(request, NEEDS_PRODUCER_ID)
        next_id = end.fresh_id
    after = moves.end_transaction(
        now, end.client_version if bumps else 0, now_ms, committed=end.committed, next_producer_id=next_id
    )
    told = moves.complete_transaction(after, now_ms)
    identity = (told.producer_id, told.producer_epoch) if bumps else (NONE, NONE)
    return _append_record(shard, after, request, Identity(ErrorCode.NONE, *identity))


def _end_error(now: TransactionMetadata, end: TransactionEnd) -> ErrorCode | None:
    """Return None if an EndTxn below v5 ends a transaction, else its error code: NONE if it is repeated."""
    if error := _fence_producer(now, end.producer_id, end.producer_epoch):
        return error
    if now.state in _PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if now.state is _OPEN:
        return None
    return ErrorCode.NONE if now.state is _complete_state(end) else ErrorCode.INVALID_TXN_STATE


def _end_error_with_bump(now: TransactionMetadata, end: TransactionEnd) -> ErrorCode | None:
    """As ``_end_error``, for EndTxn from v5 on (KIP-890).

    A request with the previous epoch is a repeated one, unless a transaction is open.
    """
    if now.state in _PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    rotated = (
        now.previous_producer_id == end.producer_id
        and end.producer_epoch == moves.LAST_EPOCH
        and now.producer_epoch == 0
    )
    repeated = rotated or now.producer_epoch == end.producer_epoch + 1
    if now.producer_id != end.producer_id and not rotated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    current = end.producer_epoch == now.producer_epoch
    if now.state in (_OPEN, TransactionState.EMPTY):
        if not current:
            return ErrorCode.PRODUCER_FENCED
        nothing_to_commit = now.state is TransactionState.EMPTY and end.committed
        return ErrorCode.INVALID_TXN_STATE if nothing_to_commit else None
    if repeated:
        return ErrorCode.NONE if now.state is _complete_state(end) else ErrorCode.INVALID_TXN_STATE
    if not current:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.INVALID_TXN_STATE if end.committed else None


def _complete_state(end: TransactionEnd) -> TransactionState:
    """Return the state in which a transaction with this end is complete."""
    return TransactionState.COMPLETE_COMMIT if end.committed else TransactionState.COMPLETE_ABORT


def markers_written(shard: TransactionShard, now_ms: int, *, prepared: TransactionMetadata) -> None:
    """Complete a transaction after all its markers are written."""
    if shard.state.by_id.get(prepared.transactional_id) is prepared:
        _append_record(shard, moves.complete_transaction(prepared, now_ms))


# --- writing ------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class RecordRefused(CoordinatorEvent):
    """The record of a transactional id was refused by the log, or is too large for it."""

    name = "RecordRefused"
    level = "warning"

    transactional_id: str
    cause: str


def _refusal_of(transactional_id: str, error: ErrorCode) -> RecordRefused:
    return RecordRefused("", transactional_id, f"the log did not take its record: {error.name}")


def _append_record(
    shard: TransactionShard,
    record: TransactionMetadata,
    request: Request | None = None,
    answer: Identity | ErrorCode = ErrorCode.NONE,
) -> None:
    """Write an id's record, then respond to ``request`` and write markers or start timers by its state."""

    def then(error: ErrorCode, now_ms: int) -> None:
        if not error:
            if record.state in _PREPARED:
                shard.command(WriteMarkers(record))
            elif record.state is _OPEN:
                _start_abort_timer(shard, now_ms)
        elif record.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
            # the markers are written, so the completion must be written too: try again later
            shard.timers.start((_COMPLETE, record.transactional_id), now_ms + _RETRY_MS)

    answers = () if request is None else ((request, answer),)
    shard.append(record.transactional_id, (record,), then, answers)


# --- timers, loads ------------------------------------------------------------------------------------------


def _fence_record(
    shard: TransactionShard, now: TransactionMetadata, fresh_id: int, now_ms: int
) -> TransactionMetadata | None:
    """Return the record that aborts an open transaction; None if that needs an unused producer id."""
    version = shard.state.version()
    if version < moves.EPOCH_BUMP_VERSION or not moves.is_exhausted(now):
        return moves.fence_producer(now, version, now_ms)
    if fresh_id == NONE:
        return None
    return moves.fence_producer(now, version, now_ms, next_producer_id=fresh_id)


def abort_late(
    shard: TransactionShard, now_ms: int, *, late: TransactionMetadata, fresh_id: int = NONE
) -> None:
    """Abort a transaction that has been open for too long, unless the id has a newer record."""
    if shard.state.by_id.get(late.transactional_id) is not late or shard.is_busy(late.transactional_id):
        return
    after = _fence_record(shard, late, fresh_id, now_ms)
    if after is None:
        shard.command(AbortLate(late))
    else:
        _append_record(shard, after)


def _start_abort_timer(shard: TransactionShard, now_ms: int) -> None:
    if (_ABORT,) not in shard.timers:
        interval_ms = shard.state.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        shard.timers.start((_ABORT,), now_ms + interval_ms)


def _on_abort_timer(shard: TransactionShard, key: TimerKey, now_ms: int) -> None:
    """Abort every transaction that has been open for longer than its producer's timeout."""
    state = shard.state

    def abort(now: TransactionMetadata) -> bool:
        late = now.state is _OPEN and now_ms > now.start_ms + now.timeout_ms
        if late:
            abort_late(shard, now_ms, late=now)
        return late

    if not _pass_over(shard, key, state.open, abort, now_ms) and state.open:
        _start_abort_timer(shard, now_ms)


def _pass_over(
    shard: TransactionShard,
    key: TimerKey,
    names: Iterable[str],
    write: Callable[[TransactionMetadata], bool],
    now_ms: int,
) -> bool:
    """Call ``write`` for the ids without a pending write, in slices, so that requests do not wait for long.

    ``write`` returns whether it wrote a record. Returns whether ids are left; the timer is then started
    again.
    """
    state, written = shard.state, 0
    queue = state.queues.get(key[0]) or list(names)
    at = 0
    while at < len(queue) and at < _SLICE and written < _WRITTEN_SLICE:
        now = state.by_id.get(queue[at])
        if now is not None and not shard.is_busy(queue[at]):
            written += write(now)
        at += 1
    left = state.queues[key[0]] = queue[at:]
    if left:
        shard.timers.start(key, now_ms + 1)
    return bool(left)


def _on_complete_timer(shard: TransactionShard, key: TimerKey, now_ms: int) -> None:
    now = shard.state.by_id.get(key[1])
    if now is not None and now.state in _PREPARED:
        markers_written(shard, now_ms, prepared=now)


def _on_forget_timer(shard: TransactionShard, key: TimerKey, now_ms: int) -> None:
    """Expire ids that were not used for ``transactional.id.expiration.ms``."""
    settings = shard.state.settings

    def forget(now: TransactionMetadata) -> bool:
        unused = now_ms - now.update_ms >= settings.transactional_id_expiration_ms
        if not unused or now.state is _OPEN or now.state in _PREPARED:
            return False
        moves.expire_id(now, now_ms)
        shard.append(now.transactional_id, (TransactionDeleted(now.transactional_id),))
        return True

    if not _pass_over(shard, key, shard.state.by_id, forget, now_ms):
        interval_ms = settings.transaction_remove_expired_transaction_cleanup_interval_ms
        shard.timers.start(key, now_ms + interval_ms)


def _activate_shard(shard: TransactionShard, now_ms: int) -> None:
    """Start the timers, and write the markers of transactions with a decided end, after a load."""
    state = shard.state
    for now in state.by_id.values():
        if now.state in _PREPARED:
            shard.command(WriteMarkers(now))
    if state.open:
        _start_abort_timer(shard, now_ms)
    interval_ms = state.settings.transaction_remove_expired_transaction_cleanup_interval_ms
    shard.timers.start((_FORGET,), now_ms + interval_ms)


def _unload_shard(shard: TransactionShard, _now_ms: int) -> None:
    shard.state.by_id.clear()
    shard.state.open.clear()
    shard.state.queues.clear()


def _records_of(_state: ShardTransactions, batch: LoadedBatch) -> Iterator[LoadedRecord]:
    return (LoadedRecord(offset, key, value) for offset, _, key, value in batch.records)


def _identity_error(_request: Request, error: int) -> Identity:
    return Identity(ErrorCode(error))


def _error_code(_request: Request, error: int) -> ErrorCode:
    return ErrorCode(error)


_BUSY: Final = ErrorCode.CONCURRENT_TRANSACTIONS

#: The transactions' part of a shard: their APIs, records and timers.
_TRANSACTIONS: Final[Kind[ShardTransactions]] = Kind(
    apis={
        ApiKey.INIT_PRODUCER_ID: Api(handle_initialize, _identity_error, Waits.WRITES, overdue=_BUSY),
        ApiKey.ADD_PARTITIONS_TO_TXN: Api(handle_add, _error_code, Waits.WRITES, overdue=_BUSY),
        ApiKey.END_TXN: Api(handle_end, _identity_error, Waits.WRITES, overdue=_BUSY),
    },
    applies={
        TransactionMetadata: lambda state, run, _at, _producer_id: state.store(run),
        TransactionDeleted: lambda state, run, _at, _producer_id: state.remove(run),
    },
    timers={_ABORT: _on_abort_timer, _COMPLETE: _on_complete_timer, _FORGET: _on_forget_timer},
    activate=_activate_shard,
    unload=_unload_shard,
)

TRANSACTIONS_TOPIC: Final[CoordinatorTopic[ShardTransactions]] = CoordinatorTopic(
    "__transaction_state",
    (_TRANSACTIONS,),
    key_of=lambda body: body.transactional_id,
    encode=encode_all,
    decode=decode,
    append_refused=_refusal_of,
    load=_records_of,
    count=lambda state: len(state.by_id),
)
