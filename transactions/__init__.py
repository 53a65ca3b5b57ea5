"""The transaction coordinator: transactional ids and their transactions (KIP-98, KIP-890).

It runs on the group coordinator's engine, with one shard for each partition of ``__transaction_state``. The
life cycle of a transactional id is a table in ``statemachine``. The broker writes the markers.
"""

from .coordinator import TransactionCoordinator, TransactionMarker
from .moves import EPOCH_BUMP_VERSION
from .records import TransactionMetadata
from .settings import TransactionSettings
from .shards import Add, Identity, Initialize, TransactionEnd

__all__ = [
    "EPOCH_BUMP_VERSION",
    "Add",
    "Identity",
    "Initialize",
    "TransactionCoordinator",
    "TransactionEnd",
    "TransactionMarker",
    "TransactionMetadata",
    "TransactionSettings",
]
