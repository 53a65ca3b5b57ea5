"""An asyncio client of a Kafka cluster: connections, metadata, and the requests that several rooms send."""

from ..protocol.messages.fetch import AbortedTransaction
from .cluster import Cluster
from .errors import (
    AuthenticationError,
    BrokerConnectionError,
    BrokerRefusedError,
    BrokerTimeoutError,
    ClientError,
    ConfigError,
    ConsumerClosedError,
    ResponseTooLargeError,
    ZooKeeperConnectionError,
)
from .fetch import FetchedPartition, FetchFrom, FetchSession
from .metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata
from .offsets import EARLIEST, LATEST, CommittedOffset, EpochEnd, OffsetAndTimestamp
from .pool import Channel
from .sasl import Sasl

__all__ = [
    "EARLIEST",
    "LATEST",
    "AbortedTransaction",
    "AuthenticationError",
    "BrokerConnectionError",
    "BrokerRefusedError",
    "BrokerTimeoutError",
    "Channel",
    "ClientError",
    "Cluster",
    "ClusterMetadata",
    "CommittedOffset",
    "ConfigError",
    "ConsumerClosedError",
    "EpochEnd",
    "FetchFrom",
    "FetchSession",
    "FetchedPartition",
    "Node",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "ResponseTooLargeError",
    "Sasl",
    "TopicMetadata",
    "ZooKeeperConnectionError",
]
