"""Producers, on asyncio or blocking: they write records to topics, once and in order, or in transactions."""

from ..client.schema_registry import RegistryError, SchemaRegistry
from ..client.transactions import GroupMetadata
from ..protocol import partition_of_key
from .accumulator import ProducerRecord, RecordMetadata
from .blocking import BlockingProducer
from .errors import (
    ApplicationRecoverableError,
    BufferFullError,
    DeliveryTimeoutError,
    ProducerClosedError,
    ProducerError,
    ProducerFencedError,
    RecordTooLargeError,
    SerializationError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionStateError,
)
from .producer import Producer

__all__ = [
    "ApplicationRecoverableError",
    "BlockingProducer",
    "BufferFullError",
    "DeliveryTimeoutError",
    "GroupMetadata",
    "Producer",
    "ProducerClosedError",
    "ProducerError",
    "ProducerFencedError",
    "ProducerRecord",
    "RecordMetadata",
    "RecordTooLargeError",
    "RegistryError",
    "SchemaRegistry",
    "SerializationError",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionStateError",
    "partition_of_key",
]
