"""The share coordinator: what is kept of the share partitions of share groups (KIP-932).

It runs on the group coordinator's engine, with one shard for each partition of ``__share_group_state``. Group
coordinators initialize and delete the state of share partitions; the leaders of partitions read and write it.
"""

from .coordinator import ShareCoordinator
from .records import ShareSnapshot, ShareStateDeleted, ShareUpdate, decode
from .settings import ShareCoordinatorSettings

__all__ = [
    "ShareCoordinator",
    "ShareCoordinatorSettings",
    "ShareSnapshot",
    "ShareStateDeleted",
    "ShareUpdate",
    "decode",
]
