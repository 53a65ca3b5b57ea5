"""Configs of a topic: Kafka's names with underscores, bounds, and the broker's setting that is the default.

All names that Apache Kafka 4.3 knows are here, so that tools find them; configs of features that this broker
lacks (tiered storage) accept only the value that means "off".
"""

import operator
from dataclasses import dataclass, fields, replace
from typing import Annotated, ClassVar, Final, Literal

from ...log import CompressionType, LogConfig
from ...protocol import GZIP_LEVEL, LZ4_LEVEL, ZSTD_LEVEL
from ...protocol.compared_fields import ComparedFields
from ...settings import MAX_LONG, TOPIC, Row, Scope, settings_of
from ..quotas import are_replicas
from ..settings import BrokerSettings, TimestampType

_NOT_TIERED = Row("tiered storage, which is not offered", allowed="false", check=operator.not_)


def _row_of(setting: str) -> Row:
    """The row of the broker's setting that is a config's default."""
    return replace(settings_of(BrokerSettings)[setting].row, dynamic="", default_from=setting)


def _throttled_replicas_row(doc: str) -> Row:
    """The row of throttled replicas."""
    return Row(doc, allowed="PARTITION:BROKER with commas, or * for all", check=are_replicas, commas=True)


@dataclass(slots=True, eq=False, repr=False)
class TopicConfig(ComparedFields):
    """Configs of one topic, defaults as Kafka's."""

    SCOPE: ClassVar[Scope] = TOPIC

    cleanup_policy: Annotated[str, _row_of("log_cleanup_policy")] = "delete"
    compression_gzip_level: Annotated[int, _row_of("compression_gzip_level")] = GZIP_LEVEL
    compression_lz4_level: Annotated[int, _row_of("compression_lz4_level")] = LZ4_LEVEL
    compression_type: Annotated[CompressionType, _row_of("compression_type")] = "producer"
    compression_zstd_level: Annotated[int, _row_of("compression_zstd_level")] = ZSTD_LEVEL
    delete_retention_ms: Annotated[int, _row_of("log_cleaner_delete_retention_ms")] = 86_400_000
    file_delete_delay_ms: Annotated[int, _row_of("log_segment_delete_delay_ms")] = 60_000
    flush_messages: Annotated[int, _row_of("log_flush_interval_messages")] = MAX_LONG
    flush_ms: Annotated[int, Row("fsync what is older than this", 0, MAX_LONG)] = MAX_LONG
    follower_replication_throttled_replicas: Annotated[
        str,
        _throttled_replicas_row(
            "followers that take no more than follower.replication.throttled.rate to get in sync"
        ),
    ] = ""
    index_interval_bytes: Annotated[int, _row_of("log_index_interval_bytes")] = 4_096
    kohort_ack_flush: Annotated[bool, Row("acks=all waits for the disk (not a config of Kafka)")] = False
    kohort_visibility: Annotated[
        Literal["appended", "flushed"],
        Row(
            "when consumers see a record: once it is appended, or once it is on the disk; then it is flushed "
            "at once unless flush.ms or flush.messages is set (not a config of Kafka)"
        ),
    ] = "appended"
    leader_replication_throttled_replicas: Annotated[
        str,
        _throttled_replicas_row(
            "leaders that give followers to get in sync no more than their throttled.rate"
        ),
    ] = ""
    local_retention_bytes: Annotated[int, Row("tiered storage, which is not offered", -2, MAX_LONG)] = -2
    local_retention_ms: Annotated[int, Row("tiered storage, which is not offered", -2, MAX_LONG)] = -2
    max_compaction_lag_ms: Annotated[int, _row_of("log_cleaner_max_compaction_lag_ms")] = MAX_LONG
    max_message_bytes: Annotated[int, _row_of("message_max_bytes")] = 1_048_588
    message_timestamp_after_max_ms: Annotated[int, _row_of("log_message_timestamp_after_max_ms")] = 3_600_000
    message_timestamp_before_max_ms: Annotated[int, _row_of("log_message_timestamp_before_max_ms")] = MAX_LONG
    message_timestamp_type: Annotated[TimestampType, _row_of("log_message_timestamp_type")] = "CreateTime"
    min_cleanable_dirty_ratio: Annotated[float, _row_of("log_cleaner_min_cleanable_ratio")] = 0.5
    min_compaction_lag_ms: Annotated[int, _row_of("log_cleaner_min_compaction_lag_ms")] = 0
    min_insync_replicas: Annotated[int, _row_of("min_insync_replicas")] = 1
    preallocate: Annotated[bool, Row("kept for tools; segments grow as they are written")] = False
    remote_log_copy_disable: Annotated[bool, _NOT_TIERED] = False
    remote_log_delete_on_disable: Annotated[bool, _NOT_TIERED] = False
    remote_storage_enable: Annotated[bool, _NOT_TIERED] = False
    retention_bytes: Annotated[int, _row_of("log_retention_bytes")] = -1
    retention_ms: Annotated[int, Row("segments older than this are removed; -1: never", -1, MAX_LONG)] = (
        604_800_000
    )
    segment_bytes: Annotated[int, _row_of("log_segment_bytes")] = 1_073_741_824
    segment_index_bytes: Annotated[int, _row_of("log_index_size_max_bytes")] = 10_485_760
    segment_jitter_ms: Annotated[int, Row("kept for tools; rolls are not spread", 0, MAX_LONG)] = 0
    segment_ms: Annotated[int, Row("age at which a new segment is begun", 1, MAX_LONG)] = 604_800_000
    unclean_leader_election_enable: Annotated[bool, _row_of("unclean_leader_election_enable")] = False

    def log_config(self) -> LogConfig:
        """The part that the log needs."""
        return LogConfig(**{name: getattr(self, name) for name in _OF_THE_LOG})


_OF_THE_LOG: Final = {field.name for field in fields(LogConfig)} & {
    field.name for field in fields(TopicConfig)
}


def topic_defaults(settings: BrokerSettings) -> dict[str, object]:
    """Configs of a topic for which nothing was set, by field name."""
    values = {
        name: getattr(settings, config.row.default_from)
        for name, config in settings_of(TopicConfig).items()
        if config.row.default_from
    }
    values["retention_ms"] = settings.retention_ms
    values["segment_ms"] = settings.segment_ms
    values["flush_ms"] = settings.flush_ms
    return values
