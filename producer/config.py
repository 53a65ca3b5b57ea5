"""A producer's settings: Kafka's names in snake case, checked before anything connects.

This module imports pydantic, so it is loaded when a producer is created and not with the package.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, model_validator

from ..client.config import ClientSettings, positive, read_connected
from ..protocol import Codec
from ..settings import MAX_INT, MAX_LONG, PRODUCER, Row, Scope

#: Most in-flight requests with which idempotent producers keep the order of records, as in Kafka.
_MOST_IN_FLIGHT = 5
_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}

Acks = Annotated[
    Literal[-1, 0, 1],
    BeforeValidator(lambda value: _ACKS.get(value, value) if isinstance(value, str) else value),
]


class ProducerConfig(ClientSettings):
    """A producer's settings. Create it with :func:`producer_config`, which has readable errors.

    Times are in milliseconds. A setting that Kafka has too has Kafka's default.
    """

    SCOPE: ClassVar[Scope] = PRODUCER

    transactional_id: Annotated[
        str | None,
        Row(
            "id under which this producer writes transactions; a newer producer with the same id fences it",
            shortest=1,
            longest=32_767,
        ),
    ] = None
    transaction_timeout_ms: Annotated[
        int, positive("how long a transaction may stay open before the broker aborts it")
    ] = 60_000
    acks: Annotated[
        Acks,
        Row(
            "which replicas must have a record before it is acknowledged: all in-sync ones, the leader, none",
            allowed="'all' (-1), 1 or 0",
        ),
    ] = -1
    enable_idempotence: Annotated[
        bool | None,
        Row("whether records are written once and in order in spite of retries; the default with acks='all'"),
    ] = None
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"],
        Row("how record batches are compressed", kafka="compression.type", also=("compression_type",)),
    ] = "none"
    linger_ms: Annotated[int, Row("how long a batch that is not full waits for more records", 0, MAX_INT)] = 5
    batch_size: Annotated[
        int, Row("bytes of one partition's records that make a batch full", 1, MAX_INT, unit="bytes")
    ] = 16_384
    max_request_size: Annotated[
        int, Row("most bytes of one request, and of one record", 1, MAX_INT, unit="bytes")
    ] = 1_048_576
    buffer_memory: Annotated[
        int,
        Row(
            "most memory for records that are not acknowledged; ``send`` waits while it is used up",
            1,
            MAX_LONG,
            unit="bytes",
        ),
    ] = 33_554_432
    max_in_flight_requests: Annotated[
        int,
        Row(
            "most requests in flight to one broker",
            1,
            _MOST_IN_FLIGHT,
            kafka="max.in.flight.requests.per.connection",
        ),
    ] = _MOST_IN_FLIGHT
    delivery_timeout_ms: Annotated[
        int,
        positive("how long delivery of a record is tried, retries included, before it fails"),
    ] = 120_000
    max_block_ms: Annotated[
        int,
        Row(
            "longest wait for a topic's metadata, for memory, and for requests about transactions",
            0,
            MAX_INT,
        ),
    ] = 60_000

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.enable_idempotence and self.acks != -1:
            raise ValueError(f"enable_idempotence=True needs acks='all', not {self.acks!r}")
        if self.transactional_id is not None and not self.idempotent:
            raise ValueError("transactional_id needs acks='all' and idempotence: leave both settings out")
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            raise ValueError(
                f"delivery_timeout_ms ({self.delivery_timeout_ms}) must not be less than linger_ms "
                f"({self.linger_ms}) and request_timeout_ms ({self.request_timeout_ms}) together"
            )
        return self

    @property
    def idempotent(self) -> bool:
        """Return whether batches have sequence numbers."""
        return self.acks == -1 if self.enable_idempotence is None else self.enable_idempotence

    @property
    def codec(self) -> Codec:
        """The codec that ``compression`` names."""
        return Codec[self.compression.upper()]


def producer_config(**settings: object) -> ProducerConfig:
    """Check settings. Raises ConfigError that names each wrong setting, its value and what is allowed."""
    return read_connected(ProducerConfig, settings)
