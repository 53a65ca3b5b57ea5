"""Settings of one partition's log: Kafka's topic settings in snake case, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from ..protocol import GZIP_LEVEL, LZ4_LEVEL, ZSTD_LEVEL, Codec

_DAY_MS = 86_400_000
_NEVER = 2**63 - 1

CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"

#: Values of ``compression.type``. AS_SENT: each batch keeps its producer's codec.
CompressionType: TypeAlias = Literal["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]
AS_SENT: Final = "producer"
_UNCOMPRESSED: Final = "uncompressed"

#: Values of ``kohort.visibility``: which records readers see.
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
    compression_type: CompressionType = AS_SENT
    compression_gzip_level: int = GZIP_LEVEL
    compression_lz4_level: int = LZ4_LEVEL
    compression_zstd_level: int = ZSTD_LEVEL
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

    @property
    def deletes(self) -> bool:
        """Return whether retention by time and size applies."""
        return "delete" in _parse_policies(self.cleanup_policy)

    @property
    def compacts(self) -> bool:
        """Return whether only the newest record of each key is kept."""
        return "compact" in _parse_policies(self.cleanup_policy)

    def codec_of(self, sent: int) -> int:
        """Return the codec in which a batch is stored that its producer has ``sent`` in another one."""
        if self.compression_type == AS_SENT:
            return sent
        return Codec.NONE if self.compression_type == _UNCOMPRESSED else Codec[self.compression_type.upper()]

    def level_of(self, codec: int) -> int | None:
        """Return the level of a codec; None for one without levels."""
        levels = {
            Codec.GZIP: self.compression_gzip_level,
            Codec.LZ4: self.compression_lz4_level,
            Codec.ZSTD: self.compression_zstd_level,
        }
        return levels.get(Codec(codec))

    @property
    def stamps(self) -> bool:
        """Return whether the log writes its own time into batches."""
        return self.message_timestamp_type == LOG_APPEND_TIME

    @property
    def shows_flushed(self) -> bool:
        """Return whether readers see only records that are on the disk."""
        return self.kohort_visibility == FLUSHED


@lru_cache(maxsize=16)
def _parse_policies(text: str) -> frozenset[str]:
    # cached because every append needs it
    return frozenset(policy.strip() for policy in text.split(","))
