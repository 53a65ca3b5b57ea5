"""The configs of a topic: Kafka's names with underscores, bounds, and which broker setting gives the default.

All names that Apache Kafka 4.3 knows are here, so that tools find what they look for; what this broker does
not do (tiered storage, recompression) can be set only to the value that means "off".
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Le, Predicate

from ..log import LogConfig
from ._validation import Allowed, Doc

if TYPE_CHECKING:
    from ._settings import BrokerSettings

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


def _is_cleanup_policy(text: str) -> bool:
    return {part.strip() for part in text.split(",")} <= {"delete", "compact", ""}


CleanupPolicy = Annotated[
    str, Predicate(_is_cleanup_policy), Allowed("delete, compact, or both with a comma")
]
Off = Annotated[bool, Predicate(operator.not_), Allowed("false")]
TimestampType = Literal["CreateTime", "LogAppendTime"]


@dataclass(slots=True)
class TopicConfig:
    """Configs of one topic, defaults as Kafka's."""

    cleanup_policy: Annotated[
        CleanupPolicy, Doc("remove old segments, keep the last value of each key, or both")
    ] = "delete"
    compression_gzip_level: Annotated[
        int, Ge(-1), Le(9), Doc("kept for tools; batches stay as they came")
    ] = -1
    compression_lz4_level: Annotated[int, Ge(1), Le(17), Doc("kept for tools; batches stay as they came")] = 9
    compression_type: Annotated[
        Literal["producer"], Doc("batches are stored as the producer packed them")
    ] = "producer"
    compression_zstd_level: Annotated[
        int, Ge(-131072), Le(22), Doc("kept for tools; batches stay as they came")
    ] = 3
    delete_retention_ms: Annotated[int, Ge(0), Le(MAX_LONG), Doc("how long compaction keeps a tombstone")] = (
        86_400_000
    )
    file_delete_delay_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("how long a deleted segment stays on disk for readers")
    ] = 60_000
    flush_messages: Annotated[int, Ge(1), Le(MAX_LONG), Doc("fsync after this many records")] = MAX_LONG
    flush_ms: Annotated[int, Ge(0), Le(MAX_LONG), Doc("fsync what is older than this")] = MAX_LONG
    follower_replication_throttled_replicas: Annotated[str, Doc("kept for tools; there are no followers")] = (
        ""
    )
    index_interval_bytes: Annotated[
        int, Ge(0), Le(MAX_INT), Doc("bytes of log between two index entries")
    ] = 4_096
    kohort_ack_flush: Annotated[
        bool, Doc("acks=all answers once the records are on the disk (not a config of Kafka)")
    ] = False
    kohort_visibility: Annotated[
        Literal["appended", "flushed"],
        Doc(
            "when consumers see a record: once it is appended, or once it is on the disk; then it is flushed "
            "at once unless flush.ms or flush.messages is set (not a config of Kafka)"
        ),
    ] = "appended"
    leader_replication_throttled_replicas: Annotated[str, Doc("kept for tools; there are no followers")] = ""
    local_retention_bytes: Annotated[
        int, Ge(-2), Le(MAX_LONG), Doc("tiered storage, which is not offered")
    ] = -2
    local_retention_ms: Annotated[int, Ge(-2), Le(MAX_LONG), Doc("tiered storage, which is not offered")] = -2
    max_compaction_lag_ms: Annotated[
        int, Ge(1), Le(MAX_LONG), Doc("a record waits no longer than this for compaction")
    ] = MAX_LONG
    max_message_bytes: Annotated[int, Ge(0), Le(MAX_INT), Doc("largest record batch, compressed")] = 1_048_588
    message_timestamp_after_max_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("how far ahead of the broker's clock a record's time may be")
    ] = 3_600_000
    message_timestamp_before_max_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("how far behind the broker's clock a record's time may be")
    ] = MAX_LONG
    message_timestamp_type: Annotated[TimestampType, Doc("whose time a record carries")] = "CreateTime"
    min_cleanable_dirty_ratio: Annotated[
        float, Ge(0), Le(1), Doc("share of the log that must be new before it is compacted")
    ] = 0.5
    min_compaction_lag_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("a record younger than this is not compacted away")
    ] = 0
    min_insync_replicas: Annotated[int, Ge(1), Le(MAX_INT), Doc("kept for tools; there is one replica")] = 1
    preallocate: Annotated[bool, Doc("kept for tools; segments grow as they are written")] = False
    remote_log_copy_disable: Annotated[Off, Doc("tiered storage, which is not offered")] = False
    remote_log_delete_on_disable: Annotated[Off, Doc("tiered storage, which is not offered")] = False
    remote_storage_enable: Annotated[Off, Doc("tiered storage, which is not offered")] = False
    retention_bytes: Annotated[
        int, Ge(-1), Le(MAX_LONG), Doc("a partition over this size loses its oldest segments; -1: no limit")
    ] = -1
    retention_ms: Annotated[
        int, Ge(-1), Le(MAX_LONG), Doc("segments older than this are removed; -1: never")
    ] = 604_800_000
    segment_bytes: Annotated[int, Ge(14), Le(MAX_INT), Doc("size at which a new segment is begun")] = (
        1_073_741_824
    )
    segment_index_bytes: Annotated[int, Ge(4), Le(MAX_INT), Doc("largest index of a segment")] = 10_485_760
    segment_jitter_ms: Annotated[int, Ge(0), Le(MAX_LONG), Doc("kept for tools; rolls are not spread")] = 0
    segment_ms: Annotated[int, Ge(1), Le(MAX_LONG), Doc("age at which a new segment is begun")] = 604_800_000
    unclean_leader_election_enable: Annotated[bool, Doc("kept for tools; there is one replica")] = False

    def log_config(self) -> LogConfig:
        """What the log needs of it."""
        names = {field.name for field in fields(LogConfig)}
        return LogConfig(**{name: value for name, value in asdict(self).items() if name in names})


#: Broker settings that give a topic config its default, where they are one to one.
BROKER_NAMES: Mapping[str, str] = {
    "cleanup_policy": "log_cleanup_policy",
    "compression_type": "compression_type",
    "delete_retention_ms": "log_cleaner_delete_retention_ms",
    "file_delete_delay_ms": "log_segment_delete_delay_ms",
    "flush_messages": "log_flush_interval_messages",
    "index_interval_bytes": "log_index_interval_bytes",
    "max_compaction_lag_ms": "log_cleaner_max_compaction_lag_ms",
    "max_message_bytes": "message_max_bytes",
    "message_timestamp_after_max_ms": "log_message_timestamp_after_max_ms",
    "message_timestamp_before_max_ms": "log_message_timestamp_before_max_ms",
    "message_timestamp_type": "log_message_timestamp_type",
    "min_cleanable_dirty_ratio": "log_cleaner_min_cleanable_ratio",
    "min_compaction_lag_ms": "log_cleaner_min_compaction_lag_ms",
    "min_insync_replicas": "min_insync_replicas",
    "retention_bytes": "log_retention_bytes",
    "segment_bytes": "log_segment_bytes",
    "segment_index_bytes": "log_index_size_max_bytes",
}


def topic_defaults(settings: BrokerSettings) -> dict[str, Any]:
    """The configs of a topic for which nothing was set, by field name."""
    values = {name: getattr(settings, source) for name, source in BROKER_NAMES.items()}
    values["retention_ms"] = settings.retention_ms
    values["segment_ms"] = settings.segment_ms
    values["flush_ms"] = settings.flush_ms
    return values
