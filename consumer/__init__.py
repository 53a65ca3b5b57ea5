"""The group consumer, async and blocking, and the consumer service; with the cluster client's public names.

Consumers and services are loaded on first use, so that this package is cheap to import.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ..client.cluster import Cluster
from ..client.errors import (
    AuthenticationError,
    BrokerConnectionError,
    BrokerTimeoutError,
    ConfigError,
    ConsumerClosedError,
)
from ..client.fetch import FetchedPartition, FetchFrom, FetchSession
from ..client.metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata
from ..client.offsets import EARLIEST, LATEST, CommittedOffset, EpochEnd, OffsetAndTimestamp
from ..client.pool import Channel
from ..client.sasl import Sasl
from ..protocol.messages.fetch import AbortedTransaction
from .errors import (
    CommitFailedError,
    ConsumerError,
    FatalGroupError,
    ForkedError,
    LogTruncatedError,
    NoOffsetError,
    StaleRecordError,
)
from .record import Headers, Record

if TYPE_CHECKING:
    from .blocking import GroupConsumer
    from .config import ConsumerConfig
    from .consumer import AsyncGroupConsumer, ConsumerStatus
    from .service import (
        ConsumerService,
        DbApiSink,
        DeadLetterError,
        HandlerCancelledError,
        HandlerFailedError,
        InvalidRecordError,
        Retry,
        SignatureError,
        Sink,
        SqlAlchemySink,
    )

_MODULES = {
    "AsyncGroupConsumer": "consumer",
    "ConsumerConfig": "config",
    "ConsumerStatus": "consumer",
    "GroupConsumer": "blocking",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f".{_MODULES.get(name, 'service')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "EARLIEST",
    "LATEST",
    "AbortedTransaction",
    "AsyncGroupConsumer",
    "AuthenticationError",
    "BrokerConnectionError",
    "BrokerTimeoutError",
    "Channel",
    "Cluster",
    "ClusterMetadata",
    "CommitFailedError",
    "CommittedOffset",
    "ConfigError",
    "ConsumerClosedError",
    "ConsumerConfig",
    "ConsumerError",
    "ConsumerService",
    "ConsumerStatus",
    "DbApiSink",
    "DeadLetterError",
    "EpochEnd",
    "FatalGroupError",
    "FetchFrom",
    "FetchSession",
    "FetchedPartition",
    "ForkedError",
    "GroupConsumer",
    "HandlerCancelledError",
    "HandlerFailedError",
    "Headers",
    "InvalidRecordError",
    "LogTruncatedError",
    "NoOffsetError",
    "Node",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "Record",
    "Retry",
    "Sasl",
    "SignatureError",
    "Sink",
    "SqlAlchemySink",
    "StaleRecordError",
    "TopicMetadata",
]
