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
from ..client.fetch import FetchFrom, FetchSession
from ..client.fetch_answers import AbortedTransaction, FetchedPartition
from ..client.metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata
from ..client.offsets import EARLIEST, LATEST, CommittedOffset, EpochEnd, OffsetAndTimestamp
from ..client.pool import Channel
from ..client.sasl import Sasl
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

_LAZY = {
    "AsyncGroupConsumer": "consumer",
    "ConsumerConfig": "config",
    "ConsumerService": "service",
    "ConsumerStatus": "consumer",
    "DbApiSink": "service",
    "DeadLetterError": "service",
    "GroupConsumer": "blocking",
    "HandlerCancelledError": "service",
    "HandlerFailedError": "service",
    "InvalidRecordError": "service",
    "Retry": "service",
    "SignatureError": "service",
    "Sink": "service",
    "SqlAlchemySink": "service",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
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
