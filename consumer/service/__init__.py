"""ConsumerService: handlers with ordered lanes, retries, dead letters, health checks and a graceful stop."""

from ._deadletter import DeadLetterError
from ._dependencies import SignatureError
from ._handlers import HandlerCancelledError, HandlerFailedError, InvalidRecordError
from ._kafka_output import KafkaOutput, OutputError
from ._retry import Retry
from ._service import ConsumerService
from ._sinks import DbApiSink, Sink, SqlAlchemySink

__all__ = [
    "ConsumerService",
    "DbApiSink",
    "DeadLetterError",
    "HandlerCancelledError",
    "HandlerFailedError",
    "InvalidRecordError",
    "KafkaOutput",
    "OutputError",
    "Retry",
    "SignatureError",
    "Sink",
    "SqlAlchemySink",
]
