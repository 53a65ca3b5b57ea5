"""The transaction coordinator: who produces in which transaction, and how it ends (KIP-98, KIP-890).

Built on the engine of the group coordinator: one shard for each partition of ``__transaction_state``. The
life cycle of a transactional id is a table in ``statemachine``; its markers the broker writes.
"""

from .coordinator import TransactionCoordinator, TransactionMarker
from .moves import EPOCH_BUMP_VERSION
from .records import Transaction
from .settings import TransactionSettings
from .shards import Add, End, Identity, Initialize

__all__ = [
    "EPOCH_BUMP_VERSION",
    "Add",
    "End",
    "Identity",
    "Initialize",
    "Transaction",
    "TransactionCoordinator",
    "TransactionMarker",
    "TransactionSettings",
]
