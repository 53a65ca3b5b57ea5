"""ConsumerService: handlers with ordered lanes, retries, dead letters, health checks and a graceful stop."""

from ._deadletter import DEAD_LETTER_HEADERS, DeadLetter, DeadLetterError, read_dead_letter
from ._dependencies import SignatureError
from ._handlers import HandlerCancelledError, HandlerFailedError, HandlerTimeoutError, InvalidRecordError
from ._kafka_output import KafkaOutput, OutputError
from ._retry import Retry
from ._service import ConsumerService
from ._sinks import DbApiSink, Sink, SqlAlchemySink

__all__ = [
    "DEAD_LETTER_HEADERS",
    "ConsumerService",
    "DbApiSink",
    "DeadLetter",
    "DeadLetterError",
    "HandlerCancelledError",
    "HandlerFailedError",
    "HandlerTimeoutError",
    "InvalidRecordError",
    "KafkaOutput",
    "OutputError",
    "Retry",
    "SignatureError",
    "Sink",
    "SqlAlchemySink",
    "read_dead_letter",
]
