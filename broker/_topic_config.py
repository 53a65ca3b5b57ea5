"""Configs of a topic: Kafka's names with underscores, bounds, and the broker's setting that is the default.

All names that Apache Kafka 4.3 knows are here, so that tools find what they look for; what this broker does
not do (tiered storage, recompression) can be set only to the value that means "off".
"""

import operator
from dataclasses import asdict, dataclass, fields
from typing import Annotated, ClassVar, Literal

from ..log import LogConfig
from ..settings import MAX_INT, MAX_LONG, TOPIC, Row, Scope

#: Words for the allowed values of a cleanup policy.
CLEANUP_POLICIES = "delete, compact, or both with a comma"
TimestampType = Literal["CreateTime", "LogAppendTime"]


def is_cleanup_policy(text: str) -> bool:
    """Return whether ``text`` names policies that there are."""
    return {part.strip() for part in text.split(",")} <= {"delete", "compact", ""}


@dataclass(slots=True)
class TopicConfig:
    """Configs of one topic, defaults as Kafka's."""

    SCOPE: ClassVar[Scope] = TOPIC

    cleanup_policy: Annotated[
        str,
        Row(
            "remove old segments, keep the last value of each key, or both",
            allowed=CLEANUP_POLICIES,
            check=is_cleanup_policy,
            default_from="log_cleanup_policy",
            commas=True,
        ),
    ] = "delete"
    compression_gzip_level: Annotated[int, Row("kept for tools; batches stay as they came", -1, 9)] = -1
    compression_lz4_level: Annotated[int, Row("kept for tools; batches stay as they came", 1, 17)] = 9
    compression_type: Annotated[
        Literal["producer"],
        Row("batches are stored as the producer packed them", default_from="compression_type"),
    ] = "producer"
    compression_zstd_level: Annotated[int, Row("kept for tools; batches stay as they came", -131_072, 22)] = 3
    delete_retention_ms: Annotated[
        int,
        Row(
            "how long compaction keeps a tombstone",
            0,
            MAX_LONG,
            default_from="log_cleaner_delete_retention_ms",
        ),
    ] = 86_400_000
    file_delete_delay_ms: Annotated[
        int,
        Row(
            "how long a deleted segment stays on disk for readers",
            0,
            MAX_LONG,
            default_from="log_segment_delete_delay_ms",
        ),
    ] = 60_000
    flush_messages: Annotated[
        int, Row("fsync after this many records", 1, MAX_LONG, default_from="log_flush_interval_messages")
    ] = MAX_LONG
    flush_ms: Annotated[int, Row("fsync what is older than this", 0, MAX_LONG)] = MAX_LONG
    follower_replication_throttled_replicas: Annotated[
        str, Row("kept for tools; there are no followers", commas=True)
    ] = ""
    index_interval_bytes: Annotated[
        int,
        Row("bytes of log between two index entries", 0, MAX_INT, default_from="log_index_interval_bytes"),
    ] = 4_096
    kohort_ack_flush: Annotated[
        bool, Row("acks=all answers once the records are on the disk (not a config of Kafka)")
    ] = False
    kohort_visibility: Annotated[
        Literal["appended", "flushed"],
        Row(
            "when consumers see a record: once it is appended, or once it is on the disk; then it is flushed "
            "at once unless flush.ms or flush.messages is set (not a config of Kafka)"
        ),
    ] = "appended"
    leader_replication_throttled_replicas: Annotated[
        str, Row("kept for tools; there are no followers", commas=True)
    ] = ""
    local_retention_bytes: Annotated[int, Row("tiered storage, which is not offered", -2, MAX_LONG)] = -2
    local_retention_ms: Annotated[int, Row("tiered storage, which is not offered", -2, MAX_LONG)] = -2
    max_compaction_lag_ms: Annotated[
        int,
        Row(
            "a record waits no longer than this for compaction",
            1,
            MAX_LONG,
            default_from="log_cleaner_max_compaction_lag_ms",
        ),
    ] = MAX_LONG
    max_message_bytes: Annotated[
        int, Row("largest record batch, compressed", 0, MAX_INT, default_from="message_max_bytes")
    ] = 1_048_588
    message_timestamp_after_max_ms: Annotated[
        int,
        Row(
            "how far ahead of the broker's clock a record's time may be",
            0,
            MAX_LONG,
            default_from="log_message_timestamp_after_max_ms",
        ),
    ] = 3_600_000
    message_timestamp_before_max_ms: Annotated[
        int,
        Row(
            "how far behind the broker's clock a record's time may be",
            0,
            MAX_LONG,
            default_from="log_message_timestamp_before_max_ms",
        ),
    ] = MAX_LONG
    message_timestamp_type: Annotated[
        TimestampType, Row("whose time a record carries", default_from="log_message_timestamp_type")
    ] = "CreateTime"
    min_cleanable_dirty_ratio: Annotated[
        float,
        Row(
            "share of the log that must be new before it is compacted",
            0,
            1,
            default_from="log_cleaner_min_cleanable_ratio",
        ),
    ] = 0.5
    min_compaction_lag_ms: Annotated[
        int,
        Row(
            "a record younger than this is not compacted away",
            0,
            MAX_LONG,
            default_from="log_cleaner_min_compaction_lag_ms",
        ),
    ] = 0
    min_insync_replicas: Annotated[
        int, Row("kept for tools; there is one replica", 1, MAX_INT, default_from="min_insync_replicas")
    ] = 1
    preallocate: Annotated[bool, Row("kept for tools; segments grow as they are written")] = False
    remote_log_copy_disable: Annotated[
        bool, Row("tiered storage, which is not offered", allowed="false", check=operator.not_)
    ] = False
    remote_log_delete_on_disable: Annotated[
        bool, Row("tiered storage, which is not offered", allowed="false", check=operator.not_)
    ] = False
    remote_storage_enable: Annotated[
        bool, Row("tiered storage, which is not offered", allowed="false", check=operator.not_)
    ] = False
    retention_bytes: Annotated[
        int,
        Row(
            "a partition over this size loses its oldest segments; -1: no limit",
            -1,
            MAX_LONG,
            default_from="log_retention_bytes",
        ),
    ] = -1
    retention_ms: Annotated[int, Row("segments older than this are removed; -1: never", -1, MAX_LONG)] = (
        604_800_000
    )
    segment_bytes: Annotated[
        int, Row("size at which a new segment is begun", 14, MAX_INT, default_from="log_segment_bytes")
    ] = 1_073_741_824
    segment_index_bytes: Annotated[
        int, Row("largest index of a segment", 4, MAX_INT, default_from="log_index_size_max_bytes")
    ] = 10_485_760
    segment_jitter_ms: Annotated[int, Row("kept for tools; rolls are not spread", 0, MAX_LONG)] = 0
    segment_ms: Annotated[int, Row("age at which a new segment is begun", 1, MAX_LONG)] = 604_800_000
    unclean_leader_election_enable: Annotated[bool, Row("kept for tools; there is one replica")] = False

    def log_config(self) -> LogConfig:
        """Part that the log needs."""
        names = {field.name for field in fields(LogConfig)}
        return LogConfig(**{name: value for name, value in asdict(self).items() if name in names})
