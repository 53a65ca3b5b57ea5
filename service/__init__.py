"""ConsumerService: handlers with ordered lanes, retries, dead letters, health checks and a graceful stop."""

from ..consumer.reading.user_decoders import InvalidRecordError
from ._deadletter import DeadLetterError
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
