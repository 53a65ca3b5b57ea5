"""The life of a transactional id, as its coordinator sees it (KIP-98, KIP-890).

A producer with a transactional id runs one transaction after another. Its coordinator keeps one record for
each id in ``__transaction_state``, and the state in that record is the whole truth: a coordinator that reads
it after a crash goes on where the last one stopped.

The point of no return is the record that says **PrepareCommit** or **PrepareAbort**. Before it nothing is
decided, and a transaction that takes too long, or whose producer was replaced, is aborted. After it the end
is certain: the markers are written to every partition of the transaction, however often that takes a new
try, and then the record says that it is complete.

A newer producer of the same id *fences* the older one: the epoch rises, so that whatever the older one still
sends is refused, by the coordinator and by each partition that has seen the newer epoch.

=================  ===============================================================================
State              Meaning
=================  ===============================================================================
Empty              the producer has an id and an epoch; it has begun nothing yet
Ongoing            partitions were added; records may be in them
PrepareCommit      the commit is decided; markers are being written
PrepareAbort       the abort is decided; markers are being written
CompleteCommit     every marker of the commit is written
CompleteAbort      every marker of the abort is written
PrepareEpochFence  an open transaction is about to be aborted by the coordinator; never durable
Dead               the id was not used for long and is being forgotten; final
=================  ===============================================================================

The moves are data (:data:`TRANSACTION_TRANSITIONS`). Source: KIP-98, KIP-360, KIP-890 and what Apache Kafka
4.3 answers.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from ._machine import LifeCycle, Transition


class TransactionState(Enum):
    """The eight states; the value is Kafka's name for it, as DescribeTransactions prints it.

    * **Empty**: AddPartitionsToTxn and AddOffsetsToTxn begin a transaction; EndTxn gets INVALID_TXN_STATE,
      but an abort of EndTxn 5 bumps the epoch; InitProducerId raises the epoch.
    * **Ongoing**: partitions are added; EndTxn decides; InitProducerId aborts and gets
      CONCURRENT_TRANSACTIONS. The coordinator aborts it when its timeout is over.
    * **PrepareCommit**, **PrepareAbort**: CONCURRENT_TRANSACTIONS for all but an EndTxn that asks for the
      other end (INVALID_TXN_STATE). Left once the markers are written.
    * **CompleteCommit**, **CompleteAbort**: as Empty; an EndTxn that is sent again gets its answer again.
    * **PrepareEpochFence**: a step on the way from Ongoing to PrepareAbort: nobody sees it.
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

#: Every legal move; what is not here raises.
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
            "the producer aborts with EndTxn 5 though nothing is open: its epoch rises",
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
        "at once: the epoch is raised",
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

#: States that a transactional id can be read back in.
TRANSACTION_DURABLE_STATES = tuple(
    state
    for state in TransactionState
    if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
)

#: The life of a transactional id.
TRANSACTION = LifeCycle(
    "transaction", TRANSACTION_TRANSITIONS, begins=TRANSACTION_DURABLE_STATES, final=TransactionState.DEAD
)
