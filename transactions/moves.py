"""Transitions of a transactional id: each function returns the id's next record, by the table in
``statemachine``. A transition takes effect when its record is in the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..protocol import TopicPartition
from ..statemachine import TRANSACTION, TransactionState, TransactionTrigger
from .records import NONE, Transaction

#: The transaction.version from which the epoch rises with every transaction (KIP-890).
EPOCH_BUMP_VERSION: Final = 2

#: The last epoch that a producer gets; the one above it is kept to fence that producer.
LAST_EPOCH: Final = 2**15 - 2
_MAX_EPOCH: Final = 2**15 - 1


def initialized(now: Transaction, timeout_ms: int, now_ms: int, *, given_epoch: int | None) -> Transaction:
    """Give a producer its next epoch; ``given_epoch`` is the one that it sent, None if it sent none."""
    return _moved(
        now,
        TransactionTrigger.INITIALIZE,
        now_ms,
        producer_epoch=now.producer_epoch + 1,
        last_epoch=NONE if given_epoch is None else now.producer_epoch,
        timeout_ms=timeout_ms,
        start_ms=NONE,
    )


def answered_again(now: Transaction, timeout_ms: int, now_ms: int) -> Transaction:
    """Keep the epoch, for a producer that missed the response and asks again."""
    return _moved(now, TransactionTrigger.INITIALIZE, now_ms, timeout_ms=timeout_ms, start_ms=NONE)


def rotated(
    now: Transaction, producer_id: int, timeout_ms: int, now_ms: int, *, given_epoch: int | None
) -> Transaction:
    """Change to a new producer id, when the epochs of the old one are used up."""
    return _moved(
        now,
        TransactionTrigger.INITIALIZE,
        now_ms,
        producer_id=producer_id,
        producer_epoch=0,
        last_epoch=NONE if given_epoch is None else now.producer_epoch,
        timeout_ms=timeout_ms,
        start_ms=NONE,
    )


def added(
    now: Transaction, partitions: Iterable[TopicPartition], client_version: int, now_ms: int
) -> Transaction:
    """Add partitions to the transaction, which begins if none is open."""
    after = _moved(
        now,
        TransactionTrigger.ADD,
        now_ms,
        partitions=tuple(dict.fromkeys((*now.partitions, *partitions))),
        client_version=client_version,
    )
    return after if now.state is after.state else after._replace(start_ms=now_ms)


def ended(
    now: Transaction, client_version: int, now_ms: int, *, committed: bool, next_producer_id: int = NONE
) -> Transaction:
    """Prepare the commit or the abort. From EPOCH_BUMP_VERSION on the epoch rises, and a producer whose
    epochs are used up continues with ``next_producer_id``.
    """
    trigger = TransactionTrigger.COMMIT if committed else TransactionTrigger.ABORT
    after = _moved(now, trigger, now_ms, client_version=client_version, next_producer_id=next_producer_id)
    if now.state not in (TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE):
        after = after._replace(start_ms=now_ms)
    if client_version < EPOCH_BUMP_VERSION:
        return after
    epoch = min(now.producer_epoch + 1, _MAX_EPOCH)
    return after._replace(producer_epoch=epoch, last_epoch=now.producer_epoch)


def fenced(now: Transaction, version: int, now_ms: int, *, next_producer_id: int = NONE) -> Transaction:
    """Abort an open transaction on the coordinator's own decision, and fence its producer by raising the
    epoch. ``version`` is the transaction.version in force; ``next_producer_id`` is as for ``ended``.
    """
    fencing = _moved(now, TransactionTrigger.FENCE, now_ms)
    after = ended(fencing, version, now_ms, committed=False, next_producer_id=next_producer_id)
    if version >= EPOCH_BUMP_VERSION:
        return after
    return after._replace(producer_epoch=min(now.producer_epoch + 1, _MAX_EPOCH), last_epoch=NONE)


def completed(now: Transaction, now_ms: int) -> Transaction:
    """Complete the transaction: all markers are written."""
    after = _moved(now, TransactionTrigger.COMPLETE, now_ms, partitions=())
    if now.next_producer_id == NONE:
        return after
    return after._replace(producer_id=now.next_producer_id, producer_epoch=0, next_producer_id=NONE)


def expired(now: Transaction, now_ms: int) -> Transaction:
    """Expire an id that was unused for too long; its tombstone is the next record."""
    return _moved(now, TransactionTrigger.EXPIRE, now_ms)


def is_exhausted(now: Transaction) -> bool:
    """Return whether the next producer needs another producer id."""
    return now.producer_epoch >= LAST_EPOCH


def _moved(now: Transaction, trigger: TransactionTrigger, now_ms: int, **changes: Any) -> Transaction:
    return now._replace(
        state=TRANSACTION.next(now.state, trigger),
        previous_producer_id=now.producer_id,
        update_ms=now_ms,
        **changes,
    )
