"""The group consumer, async and blocking, and the consumer service; also the cluster client's public names.

Consumers and services are loaded on first use, so that this package is cheap to import.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .. import client
from ..client import *  # noqa: F403 - its public names are the consumer's as well
from .errors import (
    BatchTooLargeError,
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
    from ..client.schema_registry import RegistryError, SchemaRegistry
    from .blocking import GroupConsumer
    from .config import ConsumerConfig
    from .consumer import AsyncGroupConsumer, ConsumerStatus
    from .decoding import InvalidRecordError
    from .service import (
        ConsumerService,
        DbApiSink,
        DeadLetterError,
        FailedRecordsError,
        HandlerCancelledError,
        HandlerFailedError,
        HandlerTimeoutError,
        KafkaOutput,
        Middleware,
        OutputError,
        Retry,
        Services,
        SignatureError,
        Sink,
        SqlAlchemySink,
    )
    from .typed_settings import ConsumerSettings, ServiceSettings

_MODULES = {
    "AsyncGroupConsumer": "consumer",
    "ConsumerConfig": "config",
    "ConsumerSettings": "typed_settings",
    "ConsumerStatus": "consumer",
    "GroupConsumer": "blocking",
    "InvalidRecordError": "decoding",
    "RegistryError": ".client.schema_registry",
    "SchemaRegistry": ".client.schema_registry",
    "ServiceSettings": "typed_settings",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f".{_MODULES.get(name, 'service')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AsyncGroupConsumer",
    "BatchTooLargeError",
    "CommitFailedError",
    "ConsumerConfig",
    "ConsumerError",
    "ConsumerService",
    "ConsumerSettings",
    "ConsumerStatus",
    "DbApiSink",
    "DeadLetterError",
    "FailedRecordsError",
    "FatalGroupError",
    "ForkedError",
    "GroupConsumer",
    "HandlerCancelledError",
    "HandlerFailedError",
    "HandlerTimeoutError",
    "Headers",
    "InvalidRecordError",
    "KafkaOutput",
    "LogTruncatedError",
    "Middleware",
    "NoOffsetError",
    "OutputError",
    "Record",
    "RegistryError",
    "Retry",
    "SchemaRegistry",
    "ServiceSettings",
    "Services",
    "SignatureError",
    "Sink",
    "SqlAlchemySink",
    "StaleRecordError",
]
__all__ += client.__all__
