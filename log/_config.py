"""Settings of one partition's log: Kafka's topic settings in snake case, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

_DAY_MS = 86_400_000
_NEVER = 2**63 - 1

CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"

#: Values of ``kohort.visibility``: what readers see.
APPENDED: Final = "appended"
FLUSHED: Final = "flushed"


@dataclass(slots=True)
class LogConfig:
    """Sizes are in bytes, times in milliseconds; -1 stands for unlimited in both retention settings.

    ``producer_id_expiration_ms`` is Kafka's broker setting ``producer.id.expiration.ms``,
    ``kohort_visibility`` kohort's own; every other field is Kafka's topic setting of the same name with dots.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    cleanup_policy: str = "delete"
    max_message_bytes: int = 1_048_588
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = CREATE_TIME
    message_timestamp_before_max_ms: int = _NEVER
    message_timestamp_after_max_ms: int = 3_600_000
    delete_retention_ms: int = _DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _NEVER
    file_delete_delay_ms: int = 60_000
    flush_messages: int = _NEVER
    producer_id_expiration_ms: int = _DAY_MS
    kohort_visibility: Literal["appended", "flushed"] = APPENDED
    #: Whether only the newest record of each key is kept; whether retention by time and size applies.
    compacts: bool = field(init=False, repr=False, compare=False)
    deletes: bool = field(init=False, repr=False, compare=False)
    #: Whether the log writes its own time into batches.
    stamps: bool = field(init=False, repr=False, compare=False)
    #: Whether readers see only what is on the disk.
    shows_flushed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # asked at every append
        policies = {policy.strip() for policy in self.cleanup_policy.split(",")}
        self.compacts, self.deletes = "compact" in policies, "delete" in policies
        self.stamps = self.message_timestamp_type == LOG_APPEND_TIME
        self.shows_flushed = self.kohort_visibility == FLUSHED
