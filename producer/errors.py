"""Errors of producers, by what the caller has to do (KIP-1050).

A broker's refusal of a record or a request is a KafkaError. The producer retries retriable errors within
``delivery_timeout_ms`` and ``max_block_ms``, then raises DeliveryTimeoutError or the last of them.
"""

from __future__ import annotations

from ..client.errors import ClientError


class ProducerError(ClientError):
    """Root of a producer's own errors."""


class ProducerClosedError(ProducerError):
    """The producer is closed, or was not started: use it in ``async with``."""


class SerializationError(ProducerError):
    """A key or value that cannot be encoded. Its cause is the encoder's error; nothing was sent."""


class RecordTooLargeError(ProducerError):
    """A record that fits into no request, by ``max_request_size`` or ``buffer_memory``. It was not sent."""


class BufferFullError(ProducerError):
    """No room for a record within ``max_block_ms``: records come faster than brokers take them."""


class DeliveryTimeoutError(ProducerError):
    """Records without an acknowledgement within ``delivery_timeout_ms``.

    They may have been written all the same.
    """


class TransactionStateError(ProducerError):
    """A call that the producer's state does not allow: a send outside of a transaction, for example."""


class TransactionAbortedError(ProducerError):
    """The transaction of a record was aborted: no reader of committed records will see it."""


class TransactionAbortableError(ProducerError):
    """The transaction cannot be committed: abort it, then start again. The cause says why."""


class ApplicationRecoverableError(ProducerError):
    """This producer cannot continue, but a new one can; it aborts the open transaction first."""


class ProducerFencedError(ApplicationRecoverableError):
    """A newer producer has the transactional id, or the transaction was open for longer than its timeout."""
