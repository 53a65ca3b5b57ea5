"""Transitions of a transactional id, by the table in ``statemachine``.

Each function returns the id's next record. A transition takes effect when its record is in the log. Times are
in milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..protocol import TopicPartition
from ..statemachine import TRANSACTION, TransactionState, TransactionTrigger
from .records import NONE, TransactionMetadata

#: The transaction.version from which on the epoch is raised at the end of every transaction (KIP-890).
EPOCH_BUMP_VERSION: Final = 2

#: The last epoch that a producer gets. The one above it is reserved to fence that producer.
LAST_EPOCH: Final = 2**15 - 2
_MAX_EPOCH: Final = 2**15 - 1


def initialize(
    now: TransactionMetadata, timeout_ms: int, now_ms: int, *, given_epoch: int | None
) -> TransactionMetadata:
    """Give a producer its next epoch; ``given_epoch`` is the one that it sent, None if it sent none."""
    return _move_state(
        now,
        TransactionTrigger.INITIALIZE,
        now_ms,
        producer_epoch=now.producer_epoch + 1,
        last_epoch=NONE if given_epoch is None else now.producer_epoch,
        timeout_ms=timeout_ms,
        start_ms=NONE,
    )


def answered_again(now: TransactionMetadata, timeout_ms: int, now_ms: int) -> TransactionMetadata:
    """Keep the epoch, for a producer that repeats its request because it did not get the response."""
    return _move_state(now, TransactionTrigger.INITIALIZE, now_ms, timeout_ms=timeout_ms, start_ms=NONE)


def rotate_id(
    now: TransactionMetadata, producer_id: int, timeout_ms: int, now_ms: int, *, given_epoch: int | None
) -> TransactionMetadata:
    """Change to a new producer id with epoch 0, because the epochs of the old one are used up."""
    return _move_state(
        now,
        TransactionTrigger.INITIALIZE,
        now_ms,
        producer_id=producer_id,
        producer_epoch=0,
        last_epoch=NONE if given_epoch is None else now.producer_epoch,
        timeout_ms=timeout_ms,
        start_ms=NONE,
    )


def add_partitions(
    now: TransactionMetadata, partitions: Iterable[TopicPartition], client_version: int, now_ms: int
) -> TransactionMetadata:
    """Add partitions to the transaction, which begins if none is open."""
    after = _move_state(
        now,
        TransactionTrigger.ADD,
        now_ms,
        partitions=tuple(dict.fromkeys((*now.partitions, *partitions))),
        client_version=client_version,
    )
    return after if now.state is after.state else after._replace(start_ms=now_ms)


def end_transaction(
    now: TransactionMetadata,
    client_version: int,
    now_ms: int,
    *,
    committed: bool,
    next_producer_id: int = NONE,
) -> TransactionMetadata:
    """Prepare the commit or the abort.

    From EPOCH_BUMP_VERSION on the epoch is raised. If the epochs are used up, the producer continues with
    ``next_producer_id`` afterwards.
    """
    trigger = TransactionTrigger.COMMIT if committed else TransactionTrigger.ABORT
    after = _move_state(
        now, trigger, now_ms, client_version=client_version, next_producer_id=next_producer_id
    )
    if now.state not in (TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE):
        after = after._replace(start_ms=now_ms)
    if client_version < EPOCH_BUMP_VERSION:
        return after
    epoch = min(now.producer_epoch + 1, _MAX_EPOCH)
    return after._replace(producer_epoch=epoch, last_epoch=now.producer_epoch)


def fence_producer(
    now: TransactionMetadata, version: int, now_ms: int, *, next_producer_id: int = NONE
) -> TransactionMetadata:
    """Abort an open transaction by decision of the coordinator, and fence its producer by raising the epoch.

    ``version``: the finalized transaction.version. ``next_producer_id``: as for ``ended``.
    """
    fencing = _move_state(now, TransactionTrigger.FENCE, now_ms)
    after = end_transaction(fencing, version, now_ms, committed=False, next_producer_id=next_producer_id)
    if version >= EPOCH_BUMP_VERSION:
        return after
    return after._replace(producer_epoch=min(now.producer_epoch + 1, _MAX_EPOCH), last_epoch=NONE)


def complete_transaction(now: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Complete the transaction, after all markers are written."""
    after = _move_state(now, TransactionTrigger.COMPLETE, now_ms, partitions=())
    if now.next_producer_id == NONE:
        return after
    return after._replace(producer_id=now.next_producer_id, producer_epoch=0, next_producer_id=NONE)


def expire_id(now: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Expire an id that was not used for too long. Its tombstone is written next."""
    return _move_state(now, TransactionTrigger.EXPIRE, now_ms)


def is_exhausted(now: TransactionMetadata) -> bool:
    """Return whether the producer id's epochs are used up, so that a new producer id is needed."""
    return now.producer_epoch >= LAST_EPOCH


def _move_state(
    now: TransactionMetadata, trigger: TransactionTrigger, now_ms: int, **changes: Any
) -> TransactionMetadata:
    return now._replace(
        state=TRANSACTION.next(now.state, trigger),
        previous_producer_id=now.producer_id,
        update_ms=now_ms,
        **changes,
    )
