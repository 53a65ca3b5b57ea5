"""Services: handlers with ordered lanes, retries, dead letters, health checks and a graceful stop.

They are loaded on first use, so that a command that reads dead letters does not load them.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..consumer.reading.user_decoders import InvalidRecordError
    from ._deadletter import DeadLetterError
    from ._deliveries import LastDeliveryError, LockedRecord
    from ._dependencies import SignatureError
    from ._handlers import (
        FailedRecordsError,
        HandlerCancelledError,
        HandlerFailedError,
        HandlerTimeoutError,
        Middleware,
    )
    from ._kafka_output import KafkaOutput, OutputError
    from ._retry import Retry
    from ._service import ConsumerService
    from ._services import Services
    from ._sinks import DbApiSink, Sink, SqlAlchemySink
    from .failed_records import DEAD_LETTER_HEADERS, RETRY_DUE_HEADER, DeadLetter, read_dead_letter
    from .typed_settings import ServiceSettings

_MODULES = {
    "DEAD_LETTER_HEADERS": "failed_records",
    "RETRY_DUE_HEADER": "failed_records",
    "ConsumerService": "_service",
    "DbApiSink": "_sinks",
    "DeadLetter": "failed_records",
    "DeadLetterError": "_deadletter",
    "FailedRecordsError": "_handlers",
    "HandlerCancelledError": "_handlers",
    "HandlerFailedError": "_handlers",
    "HandlerTimeoutError": "_handlers",
    "InvalidRecordError": ".consumer.reading.user_decoders",
    "KafkaOutput": "_kafka_output",
    "LastDeliveryError": "_deliveries",
    "LockedRecord": "_deliveries",
    "Middleware": "_handlers",
    "OutputError": "_kafka_output",
    "Retry": "_retry",
    "ServiceSettings": "typed_settings",
    "Services": "_services",
    "SignatureError": "_dependencies",
    "Sink": "_sinks",
    "SqlAlchemySink": "_sinks",
    "read_dead_letter": "failed_records",
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
