"""The states of a transactional id, as its coordinator sees them (KIP-98, KIP-890).

A producer with a transactional id runs one transaction after another. Its coordinator keeps one record for
each id in ``__transaction_state``. That record is all of the state: a coordinator that reads it after a crash
continues where the last one stopped.

The outcome is decided by the record with **PrepareCommit** or **PrepareAbort**. Before it, a transaction that
takes too long, or whose producer was replaced, is aborted. After it, the coordinator writes the markers to
every partition of the transaction, with as many attempts as that takes, and then a record with the state that
the transaction is complete.

A newer producer of the same id *fences* the older one: the epoch is bumped, so that everything that the older
one still sends is refused, by the coordinator and by each partition that has seen the newer epoch.

=================  ===============================================================================
State              Meaning
=================  ===============================================================================
Empty              the producer has an id and an epoch; it has begun no transaction yet
Ongoing            partitions were added; records may be in them
PrepareCommit      the commit is decided; markers are being written
PrepareAbort       the abort is decided; markers are being written
CompleteCommit     every marker of the commit is written
CompleteAbort      every marker of the abort is written
PrepareEpochFence  an open transaction is about to be aborted by the coordinator; never durable
Dead               the id was not used for long and is being removed; final
=================  ===============================================================================

The moves are data (:data:`TRANSACTION_TRANSITIONS`). Source: KIP-98, KIP-360, KIP-890 and the behaviour of
Apache Kafka 4.3.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from ._machine import LifeCycle, Transition


class TransactionState(Enum):
    """The eight states; the value is Kafka's name of the state, which DescribeTransactions returns.

    * **Empty**: AddPartitionsToTxn and AddOffsetsToTxn begin a transaction; EndTxn gets INVALID_TXN_STATE,
      except that an abort with EndTxn v5 bumps the epoch; InitProducerId bumps the epoch.
    * **Ongoing**: partitions are added; EndTxn decides; InitProducerId aborts and gets
      CONCURRENT_TRANSACTIONS. The coordinator aborts it when its timeout is over.
    * **PrepareCommit**, **PrepareAbort**: requests get CONCURRENT_TRANSACTIONS, except an EndTxn for the
      opposite outcome (INVALID_TXN_STATE). Ends when the markers are written.
    * **CompleteCommit**, **CompleteAbort**: as Empty; a repeated EndTxn gets the same response again.
    * **PrepareEpochFence**: an intermediate step from Ongoing to PrepareAbort, which no client sees.
    * **Dead**: the id is not known.
    """

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


class TransactionTrigger(Enum):
    """Triggers that move a transactional id. The value is the name of the machine's event."""

    INITIALIZE = "initialize"
    ADD = "add"
    COMMIT = "commit"
    ABORT = "abort"
    FENCE = "fence"
    COMPLETE = "complete"
    EXPIRE = "expire"


_Move: TypeAlias = Transition[TransactionState, TransactionTrigger]

_AT_REST = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

#: Every legal move; all others raise IllegalTransitionError.
TRANSACTION_TRANSITIONS: tuple[_Move, ...] = (
    *(
        _Move(TransactionTrigger.INITIALIZE, state, TransactionState.EMPTY, "a producer asks for an epoch")
        for state in _AT_REST
    ),
    *(
        _Move(TransactionTrigger.ADD, state, TransactionState.ONGOING, "a partition or a group is added")
        for state in (*_AT_REST, TransactionState.ONGOING)
    ),
    _Move(
        TransactionTrigger.COMMIT,
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        "the producer commits",
    ),
    _Move(
        TransactionTrigger.ABORT,
        TransactionState.ONGOING,
        TransactionState.PREPARE_ABORT,
        "the producer aborts",
    ),
    *(
        _Move(
            TransactionTrigger.ABORT,
            state,
            TransactionState.PREPARE_ABORT,
            "the producer aborts with EndTxn v5 although no transaction is open: its epoch is bumped",
        )
        for state in _AT_REST
    ),
    _Move(
        TransactionTrigger.FENCE,
        TransactionState.ONGOING,
        TransactionState.PREPARE_EPOCH_FENCE,
        "its timeout is over, or another producer of the id begins",
    ),
    _Move(
        TransactionTrigger.ABORT,
        TransactionState.PREPARE_EPOCH_FENCE,
        TransactionState.PREPARE_ABORT,
        "at once, with a bumped epoch",
    ),
    _Move(
        TransactionTrigger.COMPLETE,
        TransactionState.PREPARE_COMMIT,
        TransactionState.COMPLETE_COMMIT,
        "every marker is written",
    ),
    _Move(
        TransactionTrigger.COMPLETE,
        TransactionState.PREPARE_ABORT,
        TransactionState.COMPLETE_ABORT,
        "every marker is written",
    ),
    *(
        _Move(TransactionTrigger.EXPIRE, state, TransactionState.DEAD, "the id was not used for long")
        for state in _AT_REST
    ),
)

#: States that a transactional id can have when it is loaded from the log.
TRANSACTION_DURABLE_STATES = tuple(
    state
    for state in TransactionState
    if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
)

#: The life cycle of a transactional id.
TRANSACTION = LifeCycle(
    "transaction", TRANSACTION_TRANSITIONS, begins=TRANSACTION_DURABLE_STATES, ends=[TransactionState.DEAD]
)
