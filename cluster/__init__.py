"""The metadata of a cluster: everything that is not a record and must last.

``MetadataStore`` is the interface through which it is read and written, with ZooKeeper's semantics; the
homes behind it are a data folder (``FolderStore``), memory (``MemoryHome``) and Apache ZooKeeper
(``open_zookeeper``). ``ClusterImage`` is what a broker goes by: brokers,
topics and the states of their partitions, immutable and replaced as a whole.
"""

from ._files import StateFileError
from ._folder_store import Document, FolderStore
from ._image import NO_LEADER, UNKNOWN_EPOCH, BrokerRegistration, ClusterImage, PartitionState, TopicImage
from ._layout import DELETED_TOPICS, PRODUCER_IDS, TOPICS, TopicRecord, deleted_topic_path, topic_path
from ._memory_store import MemoryHome, MemoryStore
from ._producer_ids import BLOCK_SIZE, ProducerIds
from ._store import (
    ANY_VERSION,
    Change,
    Check,
    ConflictError,
    Create,
    Delete,
    Entry,
    MetadataStore,
    Put,
    SessionState,
)
from ._zookeeper_store import ZooKeeperSettings, ZooKeeperStore, open_zookeeper

__all__ = [
    "ANY_VERSION",
    "BLOCK_SIZE",
    "DELETED_TOPICS",
    "NO_LEADER",
    "PRODUCER_IDS",
    "TOPICS",
    "UNKNOWN_EPOCH",
    "BrokerRegistration",
    "Change",
    "Check",
    "ClusterImage",
    "ConflictError",
    "Create",
    "Delete",
    "Document",
    "Entry",
    "FolderStore",
    "MemoryHome",
    "MemoryStore",
    "MetadataStore",
    "PartitionState",
    "ProducerIds",
    "Put",
    "SessionState",
    "StateFileError",
    "TopicImage",
    "TopicRecord",
    "ZooKeeperSettings",
    "ZooKeeperStore",
    "deleted_topic_path",
    "open_zookeeper",
    "topic_path",
]
