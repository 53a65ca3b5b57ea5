"""The group consumer, async and blocking; also the cluster client's public names.

Consumers are loaded on first use, so that this package is cheap to import.
"""

import importlib
from typing import TYPE_CHECKING

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
    from .reading.user_decoders import InvalidRecordError
    from .share.blocking import BlockingShareConsumer
    from .share.config import ShareConsumerConfig
    from .share.consumer import ShareConsumer, ShareConsumerStatus
    from .share.records import (
        AlreadyAcknowledgedError,
        LockLostError,
        ShareRecord,
        WrongConsumerError,
    )
    from .typed_settings import ConsumerSettings, ShareConsumerSettings

_MODULES = {
    "AlreadyAcknowledgedError": "share.records",
    "AsyncGroupConsumer": "consumer",
    "BlockingShareConsumer": "share.blocking",
    "ConsumerConfig": "config",
    "ConsumerSettings": "typed_settings",
    "ConsumerStatus": "consumer",
    "GroupConsumer": "blocking",
    "InvalidRecordError": "reading.user_decoders",
    "LockLostError": "share.records",
    "RegistryError": ".client.schema_registry",
    "SchemaRegistry": ".client.schema_registry",
    "ShareConsumer": "share.consumer",
    "ShareConsumerConfig": "share.config",
    "ShareConsumerSettings": "typed_settings",
    "ShareConsumerStatus": "share.consumer",
    "ShareRecord": "share.records",
    "WrongConsumerError": "share.records",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AlreadyAcknowledgedError",
    "AsyncGroupConsumer",
    "BatchTooLargeError",
    "BlockingShareConsumer",
    "CommitFailedError",
    "ConsumerConfig",
    "ConsumerError",
    "ConsumerSettings",
    "ConsumerStatus",
    "FatalGroupError",
    "ForkedError",
    "GroupConsumer",
    "Headers",
    "InvalidRecordError",
    "LockLostError",
    "LogTruncatedError",
    "NoOffsetError",
    "Record",
    "RegistryError",
    "SchemaRegistry",
    "ShareConsumer",
    "ShareConsumerConfig",
    "ShareConsumerSettings",
    "ShareConsumerStatus",
    "ShareRecord",
    "StaleRecordError",
    "WrongConsumerError",
]
__all__ += client.__all__
