"""Settings of a share consumer: ShareConsumerConfig is their table.

This module imports pydantic, so it is loaded when a consumer is made and not with the package.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import model_validator

from ...client.config import ClientSettings, positive, read_connected
from ...protocol import MAX_FRAME_BYTES
from ...settings import MAX_INT, SHARE_CONSUMER, Row, Scope
from ..config import (
    CheckCrcs,
    DefaultApiTimeoutMs,
    FetchMaxBytes,
    FetchMaxWaitMs,
    FetchMinBytes,
    check_fetch_wait,
)


class ShareConsumerConfig(ClientSettings):
    """Settings of a share consumer. Make it with :func:`share_consumer_config`.

    Times are milliseconds. How long locks last, how often a record is delivered and where a new group begins
    are configs of the group (``share.record.lock.duration.ms``, ``share.auto.offset.reset``).
    """

    SCOPE: ClassVar[Scope] = SHARE_CONSUMER

    group: Annotated[
        str, Row("share group", kafka="group.id", also=("group_id",), shortest=1, longest=32_767)
    ]
    client_rack: Annotated[str, Row("rack of this client")] = ""
    max_locked_records: Annotated[
        int,
        Row(
            "most records that are locked for this member: those it works on, and those that wait to be "
            "delivered. Unless it is set, more than 500 only while it is done with so many in 50 ms. Brokers "
            "before Apache Kafka 4.2 may give more, whole record batches",
            1,
            MAX_INT,
        ),
    ] = 2_000
    renew_locks: Annotated[
        bool, Row("locks are renewed while records are worked on, up to max_processing_ms")
    ] = True
    max_processing_ms: Annotated[
        int, positive("locks of records are renewed until they are held for so long")
    ] = 300_000
    fetch_min_bytes: FetchMinBytes = 1
    fetch_max_bytes: FetchMaxBytes = 52_428_800
    fetch_max_wait_ms: FetchMaxWaitMs = 500
    max_decompressed_batch_bytes: Annotated[
        int, positive("largest record batch after decompression; a larger one cannot be read")
    ] = 67_108_864
    check_crcs: CheckCrcs = True
    default_api_timeout_ms: DefaultApiTimeoutMs = 60_000

    @model_validator(mode="after")
    def _check_waits(self) -> Self:
        check_fetch_wait(self.fetch_max_wait_ms, self.request_timeout_ms)
        return self

    @property
    def adapts(self) -> bool:
        """Whether how many records are locked depends on how quickly they are done with."""
        return "max_locked_records" not in self.model_fields_set

    @property
    def max_response_bytes(self) -> int:
        """Size of the largest response that is received: one batch may be larger than a fetch."""
        return max(MAX_FRAME_BYTES, 2 * self.fetch_max_bytes)


def share_consumer_config(**settings: object) -> ShareConsumerConfig:
    """Check settings. Raises ConfigError naming each wrong setting, its value and what is allowed."""
    return read_connected(ShareConsumerConfig, settings)
