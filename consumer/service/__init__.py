"""ConsumerService: handlers with lanes, retries, dead letters, health and a graceful end."""

from ._exactly_once import DbApiSink, Sink, SqlAlchemySink
from ._handlers import HandlerFailedError, InvalidRecordError
from ._retry import Retry
from ._service import ConsumerService

__all__ = [
    "ConsumerService",
    "DbApiSink",
    "HandlerFailedError",
    "InvalidRecordError",
    "Retry",
    "Sink",
    "SqlAlchemySink",
]
