"""An asyncio client of a Kafka cluster: connections, metadata, and the requests that several rooms send.

Their modules are loaded on first use: a broker that is alone needs a few of them only.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_MODULES = {
    "AbortedTransaction": "fetch",
    "AuthenticationError": "errors",
    "BrokerConnectionError": "errors",
    "BrokerRefusedError": "errors",
    "BrokerTimeoutError": "errors",
    "Channel": "pool",
    "ClientError": "errors",
    "Cluster": "cluster",
    "ClusterMetadata": "metadata",
    "CommittedOffset": "offsets",
    "ConfigError": "errors",
    "ConsumerClosedError": "errors",
    "EARLIEST": "offsets",
    "EpochEnd": "offsets",
    "FetchFrom": "fetch",
    "FetchSession": "fetch",
    "FetchedPartition": "fetch",
    "LATEST": "offsets",
    "Node": "metadata",
    "OffsetAndTimestamp": "offsets",
    "PartitionMetadata": "metadata",
    "ResponseTooLargeError": "errors",
    "Sasl": "sasl",
    "TopicMetadata": "metadata",
    "ZooKeeperConnectionError": "errors",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
