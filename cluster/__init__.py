"""The metadata of a cluster: everything durable that is not a record.

``MetadataStore`` is the interface to read and write it, with ZooKeeper's semantics; the homes behind it are a
data folder (``FolderStore``), Apache ZooKeeper (``open_zookeeper``) and, in tests, memory
(``testing.memory_store``). ``ClusterImage`` is the broker's view of the cluster: brokers, topics and the
states of their partitions, immutable and replaced as a whole. Modules that only brokers of a cluster need are
imported on first use.
"""

import importlib
from typing import TYPE_CHECKING

from ._document import Document
from ._files import StateFileError
from ._folder_store import FolderStore
from ._image import (
    INTERNAL,
    NO_LEADER,
    UNKNOWN_EPOCH,
    BrokerRegistration,
    ClusterImage,
    Endpoint,
    PartitionState,
    TopicImage,
)
from ._producer_ids import BLOCK_SIZE, ProducerIds
from ._store import (
    ANY_VERSION,
    Change,
    Check,
    ConflictError,
    Create,
    Delete,
    MetadataStore,
    Put,
    SessionState,
    StoreEntry,
)
from .layout import (
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETED_TOPICS,
    DOCUMENTS,
    PRODUCER_IDS,
    TOPICS,
    TopicAssignment,
    TopicDeletion,
    TopicRecord,
    deleted_topic_path,
    stored_controller,
    topic_path,
)

if TYPE_CHECKING:
    from ._format import NewerFormatError, own_version
    from ._registration import Registration, WrongClusterError, shared_cluster_id
    from ._view import ClusterView
    from ._zookeeper_store import ZooKeeperStore, open_zookeeper

_MODULES = {
    "ClusterView": "_view",
    "NewerFormatError": "_format",
    "Registration": "_registration",
    "WrongClusterError": "_registration",
    "ZooKeeperStore": "_zookeeper_store",
    "open_zookeeper": "_zookeeper_store",
    "own_version": "_format",
    "shared_cluster_id": "_registration",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ANY_VERSION",
    "BLOCK_SIZE",
    "CLUSTER_ID",
    "CONTROLLER",
    "CONTROLLER_EPOCH",
    "DELETED_TOPICS",
    "DOCUMENTS",
    "INTERNAL",
    "NO_LEADER",
    "PRODUCER_IDS",
    "TOPICS",
    "UNKNOWN_EPOCH",
    "BrokerRegistration",
    "Change",
    "Check",
    "ClusterImage",
    "ClusterView",
    "ConflictError",
    "Create",
    "Delete",
    "Document",
    "Endpoint",
    "FolderStore",
    "MetadataStore",
    "NewerFormatError",
    "PartitionState",
    "ProducerIds",
    "Put",
    "Registration",
    "SessionState",
    "StateFileError",
    "StoreEntry",
    "TopicAssignment",
    "TopicDeletion",
    "TopicImage",
    "TopicRecord",
    "WrongClusterError",
    "ZooKeeperStore",
    "deleted_topic_path",
    "open_zookeeper",
    "own_version",
    "shared_cluster_id",
    "stored_controller",
    "topic_path",
]
