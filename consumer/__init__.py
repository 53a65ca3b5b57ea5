"""Consumers: the group consumer in its async and blocking faces, and the cluster client under them."""

from .cluster import Cluster
from .errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    CommitFailedError,
    ConfigError,
    ConsumerClosedError,
    ConsumerError,
    FatalGroupError,
    NoOffsetError,
    StaleRecordError,
)
from .fetch_requests import AbortedTransaction, FetchedPartition, FetchFrom
from .metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata
from .offset_requests import EARLIEST, LATEST, CommittedOffset, OffsetAndTimestamp
from .pool import Channel

__all__ = [
    "EARLIEST",
    "LATEST",
    "AbortedTransaction",
    "BrokerConnectionError",
    "BrokerTimeoutError",
    "Channel",
    "Cluster",
    "ClusterMetadata",
    "CommitFailedError",
    "CommittedOffset",
    "ConfigError",
    "ConsumerClosedError",
    "ConsumerError",
    "FatalGroupError",
    "FetchFrom",
    "FetchedPartition",
    "NoOffsetError",
    "Node",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "StaleRecordError",
    "TopicMetadata",
]
