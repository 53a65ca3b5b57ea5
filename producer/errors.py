"""Errors of producers, classified by what the caller has to do (KIP-1050).

If a broker refuses a record or a request, that is a KafkaError. The producer retries retriable errors for
``delivery_timeout_ms`` or ``max_block_ms``, then raises DeliveryTimeoutError or the last error.
"""

from __future__ import annotations

from ..client.errors import ClientError


class ProducerError(ClientError):
    """Base class of a producer's own errors."""


class ProducerClosedError(ProducerError):
    """The producer is closed or was not started. Use it in ``async with`` (or ``with``)."""


class SerializationError(ProducerError):
    """A key or value cannot be encoded. The cause is the encoder's error. Nothing was sent."""


class RecordTooLargeError(ProducerError):
    """A record is larger than ``max_request_size`` or ``buffer_memory``. It was not sent."""


class BufferFullError(ProducerError):
    """``buffer_memory`` was full for ``max_block_ms``: records are sent faster than brokers accept them."""


class DeliveryTimeoutError(ProducerError):
    """Records were not acknowledged within ``delivery_timeout_ms``. They may have been written."""


class TransactionStateError(ProducerError):
    """The producer's state does not allow this call, such as ``send`` outside of a transaction."""


class TransactionAbortedError(ProducerError):
    """The transaction of this record was aborted, so consumers of committed records will not see it."""


class TransactionAbortableError(ProducerError):
    """The transaction cannot be committed. Abort it, then repeat it. The cause says why."""


class ApplicationRecoverableError(ProducerError):
    """This producer cannot continue. Create a new one, which first aborts the open transaction."""


class ProducerFencedError(ApplicationRecoverableError):
    """A newer producer uses the transactional id, or the transaction was open for longer than its timeout."""
