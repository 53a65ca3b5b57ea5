"""Services: handlers with ordered lanes, retries, dead letters, health checks and a graceful stop.

They are loaded on first use, so that a command that reads dead letters does not load them.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..consumer.reading.user_decoders import InvalidRecordError
    from ._service import ConsumerService
    from ._services import Services
    from .exactly_once.kafka_output import KafkaOutput, OutputError
    from .exactly_once.sinks import DbApiSink, Sink, SqlAlchemySink
    from .handlers.dependencies import SignatureError
    from .handlers.handler import (
        FailedRecordsError,
        HandlerCancelledError,
        HandlerFailedError,
        HandlerTimeoutError,
        Middleware,
    )
    from .handlers.retry import Retry
    from .letters.deadletter import DeadLetterError
    from .letters.failed_records import (
        DEAD_LETTER_HEADERS,
        RETRY_DUE_HEADER,
        DeadLetter,
        read_dead_letter,
    )
    from .share.deliveries import LastDeliveryError, LockedRecord
    from .typed_settings import ServiceSettings

_MODULES = {
    "DEAD_LETTER_HEADERS": "letters.failed_records",
    "RETRY_DUE_HEADER": "letters.failed_records",
    "ConsumerService": "_service",
    "DbApiSink": "exactly_once.sinks",
    "DeadLetter": "letters.failed_records",
    "DeadLetterError": "letters.deadletter",
    "FailedRecordsError": "handlers.handler",
    "HandlerCancelledError": "handlers.handler",
    "HandlerFailedError": "handlers.handler",
    "HandlerTimeoutError": "handlers.handler",
    "InvalidRecordError": ".consumer.reading.user_decoders",
    "KafkaOutput": "exactly_once.kafka_output",
    "LastDeliveryError": "share.deliveries",
    "LockedRecord": "share.deliveries",
    "Middleware": "handlers.handler",
    "OutputError": "exactly_once.kafka_output",
    "Retry": "handlers.retry",
    "ServiceSettings": "typed_settings",
    "Services": "_services",
    "SignatureError": "handlers.dependencies",
    "Sink": "exactly_once.sinks",
    "SqlAlchemySink": "exactly_once.sinks",
    "read_dead_letter": "letters.failed_records",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DEAD_LETTER_HEADERS",
    "RETRY_DUE_HEADER",
    "ConsumerService",
    "DbApiSink",
    "DeadLetter",
    "DeadLetterError",
    "FailedRecordsError",
    "HandlerCancelledError",
    "HandlerFailedError",
    "HandlerTimeoutError",
    "InvalidRecordError",
    "KafkaOutput",
    "LastDeliveryError",
    "LockedRecord",
    "Middleware",
    "OutputError",
    "Retry",
    "ServiceSettings",
    "Services",
    "SignatureError",
    "Sink",
    "SqlAlchemySink",
    "read_dead_letter",
]
