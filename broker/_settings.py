"""The broker's settings: Kafka's ``server.properties`` names with underscores for dots.

A :class:`BrokerSettings` is also the coordinator's :class:`~kohort.coordinator.GroupSettings`: one object,
one table in docs/broker.md, one place where ``--set`` looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from ._kafka_names import meaningful
from ._topic_config import MAX_INT, MAX_LONG, CleanupPolicy, TimestampType
from ._validation import Allowed, Doc, Setting, SettingsError, read_settings, settings_of
from .security._listeners import check_listener_settings, listeners_of, take_listener_settings
from .security._settings import SecuritySettings

_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000

#: Descriptions of the coordinator's settings.
_GROUP_DOCS = {
    "group_min_session_timeout_ms": "shortest session a member may ask for",
    "group_max_session_timeout_ms": "longest session a member may ask for",
    "group_initial_rebalance_delay_ms": "how long a new group waits for more members",
    "group_max_size": "most members of a group",
    "offset_metadata_max_bytes": "longest metadata of a committed offset",
    "offsets_load_buffer_size": "bytes read at a time when groups are loaded, more for a larger batch",
    "offsets_retention_minutes": "how long the offsets of a group without members are kept",
    "offsets_retention_check_interval_ms": "time between two looks for offsets to expire",
    "offsets_commit_timeout_ms": "kept for tools: with no replica to wait for, a write is answered when done",
    "group_coordinator_append_linger_ms": "how long writes wait to share a batch; -1, 0: as short as can be",
    "group_coordinator_threads": "all shards of the coordinator share one event loop",
    "kohort_offsets_load_strict": "groups that cannot be read whole stop the start (not a setting of Kafka)",
    "kohort_group_max_metadata_bytes": "most bytes of metadata of one group (not a setting of Kafka)",
    "kohort_group_max_pending_ids": "most unused member ids of a group (not a setting of Kafka)",
    "kohort_member_max_metadata_bytes": "most bytes of metadata of one member (not a setting of Kafka)",
    "kohort_member_max_protocols": "most protocols that one member offers (not a setting of Kafka)",
    "kohort_commit_max_partitions": "most partitions in one OffsetCommit (not a setting of Kafka)",
    "kohort_group_history_size": "events kept of each group (not a setting of Kafka); 0: none",
}


@dataclass(slots=True)
class BrokerSettings(SecuritySettings):
    """Settings of a broker, defaults as Kafka's."""

    node_id: Annotated[int, Ge(0), Le(MAX_INT), Doc("number of this broker")] = 1
    authorizer_class_name: Annotated[
        Literal["", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"],
        Allowed("empty, or org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        Doc("access rules are kept and obeyed; empty: there are none, and everyone may do everything"),
    ] = ""
    super_users: Annotated[
        str, Doc("principals who may do everything, with semicolons: User:admin;User:ops")
    ] = ""
    allow_everyone_if_no_acl_found: Annotated[
        bool, Doc("what no access rule names is open to everyone, and not only to super users")
    ] = False
    auto_create_topics_enable: Annotated[
        bool, Doc("a Metadata request that allows it creates the topics it names")
    ] = True
    delete_topic_enable: Annotated[bool, Doc("DeleteTopics is obeyed")] = True
    num_partitions: Annotated[
        int, Ge(1), Le(100_000), Doc("partitions of a topic created without a number")
    ] = 1
    default_replication_factor: Annotated[
        int, Ge(1), Le(1), Doc("replicas of a new topic; there is one broker")
    ] = 1
    offsets_topic_num_partitions: Annotated[
        int, Ge(1), Le(10_000), Doc("partitions of __consumer_offsets, fixed when it is created")
    ] = 50
    offsets_topic_replication_factor: Annotated[
        int, Ge(1), Le(1), Doc("replicas of __consumer_offsets; there is one broker")
    ] = 1
    offsets_topic_segment_bytes: Annotated[
        int, Ge(1), Le(MAX_INT), Doc("size at which __consumer_offsets begins a new segment")
    ] = 104_857_600

    offsets_topic_compression_codec: Annotated[
        int, Ge(0), Le(0), Doc("__consumer_offsets is written uncompressed")
    ] = 0

    message_max_bytes: Annotated[int, Ge(0), Le(MAX_INT), Doc("largest record batch, compressed")] = 1_048_588
    fetch_max_bytes: Annotated[int, Ge(1024), Le(MAX_INT), Doc("most record bytes in one Fetch answer")] = (
        57_671_680
    )
    min_insync_replicas: Annotated[int, Ge(1), Le(MAX_INT), Doc("kept for tools; there is one replica")] = 1
    compression_type: Annotated[
        Literal["producer"], Doc("batches are stored as the producer packed them")
    ] = "producer"

    socket_request_max_bytes: Annotated[int, Ge(1), Le(MAX_INT), Doc("largest request")] = 104_857_600
    socket_listen_backlog_size: Annotated[
        int, Ge(1), Le(65_535), Doc("connections waiting to be accepted")
    ] = 50
    connections_max_idle_ms: Annotated[
        int, Ge(-1), Le(MAX_LONG), Doc("a connection silent for this long is closed; -1: never")
    ] = 600_000
    kohort_request_complete_timeout_ms: Annotated[
        int,
        Ge(1),
        Le(MAX_INT),
        Doc("a request must be complete this long after its first byte (not a setting of Kafka)"),
    ] = 30_000
    kohort_response_unread_timeout_ms: Annotated[
        int,
        Ge(1),
        Le(MAX_INT),
        Doc("who takes next to nothing of an answer for this long is cut off (not a setting of Kafka)"),
    ] = 30_000
    kohort_response_unread_max_bytes: Annotated[
        int, Ge(0), Le(MAX_INT), Doc("less than this may be left unread for longer (not a setting of Kafka)")
    ] = 1_048_576
    queued_max_request_bytes: Annotated[
        int, Ge(1), Le(MAX_LONG), Doc("request bytes of all connections that wait; over it reading stops")
    ] = 268_435_456

    quota_window_num: Annotated[
        int, Ge(1), Le(MAX_INT), Doc("windows that the use of client quotas is a rate over")
    ] = 11
    quota_window_size_seconds: Annotated[
        int, Ge(1), Le(MAX_INT), Doc("length of a window of client quotas")
    ] = 1
    controller_quota_window_num: Annotated[
        int, Ge(1), Le(MAX_INT), Doc("windows whose controller_mutation_rate may be used at once")
    ] = 11
    controller_quota_window_size_seconds: Annotated[
        int, Ge(1), Le(MAX_INT), Doc("length of a window of controller_mutation_rate")
    ] = 1

    log_segment_bytes: Annotated[int, Ge(14), Le(MAX_INT), Doc("size at which a new segment is begun")] = (
        1_073_741_824
    )
    log_roll_hours: Annotated[int, Ge(1), Le(MAX_INT), Doc("age at which a new segment is begun")] = 168
    log_roll_ms: Annotated[int | None, Ge(1), Le(MAX_LONG), Doc("as log.roll.hours, before it when set")] = (
        None
    )
    log_retention_hours: Annotated[int, Ge(-1), Le(MAX_INT), Doc("age at which segments go; -1: never")] = 168
    log_retention_minutes: Annotated[
        int | None, Ge(-1), Le(MAX_INT), Doc("as log.retention.hours, before it when set")
    ] = None
    log_retention_ms: Annotated[
        int | None, Ge(-1), Le(MAX_LONG), Doc("as log.retention.minutes, before it when set")
    ] = None
    log_retention_bytes: Annotated[
        int, Ge(-1), Le(MAX_LONG), Doc("a partition over this size loses its oldest segments; -1: no limit")
    ] = -1
    log_retention_check_interval_ms: Annotated[
        int, Ge(1), Le(MAX_LONG), Doc("time between two looks for segments to remove")
    ] = 300_000
    log_cleanup_policy: Annotated[CleanupPolicy, Doc("cleanup.policy of topics that set none")] = "delete"
    log_cleaner_enable: Annotated[bool, Doc("logs whose cleanup.policy asks for it are compacted")] = True
    log_cleaner_threads: Annotated[int, Ge(1), Le(1), Doc("one log is compacted at a time")] = 1
    log_cleaner_backoff_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("time between two looks for logs to compact, when there was none")
    ] = 15_000
    log_cleaner_dedupe_buffer_size: Annotated[
        int, Ge(1), Le(MAX_LONG), Doc("memory for the keys of a compaction; more keys take more passes")
    ] = 134_217_728
    log_cleaner_delete_retention_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("how long compaction keeps a tombstone")
    ] = 86_400_000
    log_cleaner_min_cleanable_ratio: Annotated[
        float, Ge(0), Le(1), Doc("share of a log that must be new before it is compacted")
    ] = 0.5
    log_cleaner_min_compaction_lag_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("a record younger than this is not compacted away")
    ] = 0
    log_cleaner_max_compaction_lag_ms: Annotated[
        int, Ge(1), Le(MAX_LONG), Doc("a record waits no longer than this for compaction")
    ] = MAX_LONG
    log_index_interval_bytes: Annotated[
        int, Ge(0), Le(MAX_INT), Doc("bytes of log between two index entries")
    ] = 4_096
    log_index_size_max_bytes: Annotated[int, Ge(4), Le(MAX_INT), Doc("largest index of a segment")] = (
        10_485_760
    )
    log_segment_delete_delay_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("how long a deleted segment stays on disk for readers")
    ] = 60_000
    log_message_timestamp_type: Annotated[TimestampType, Doc("whose time a record carries")] = "CreateTime"
    log_message_timestamp_before_max_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("how far behind the broker's clock a record's time may be")
    ] = MAX_LONG
    log_message_timestamp_after_max_ms: Annotated[
        int, Ge(0), Le(MAX_LONG), Doc("how far ahead of the broker's clock a record's time may be")
    ] = 3_600_000
    log_flush_interval_messages: Annotated[int, Ge(1), Le(MAX_LONG), Doc("fsync after this many records")] = (
        MAX_LONG
    )
    log_flush_interval_ms: Annotated[
        int | None, Ge(0), Le(MAX_LONG), Doc("fsync what is older than this; empty: left to the system")
    ] = None
    kohort_offsets_ack_flush: Annotated[
        bool,
        Doc("offsets and groups are acknowledged once they are on the disk (not a setting of Kafka)"),
    ] = False
    log_flush_offset_checkpoint_interval_ms: Annotated[
        int, Ge(0), Le(MAX_INT), Doc("time between two writings of the recovery points")
    ] = 60_000

    @property
    def retention_ms(self) -> int:
        """The default of topics: the finest of ms, minutes and hours that is set; -1 is no limit."""
        if self.log_retention_ms is not None:
            chosen = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            chosen = self.log_retention_minutes * _MINUTE_MS
        else:
            chosen = self.log_retention_hours * _HOUR_MS
        return max(chosen, -1)

    @property
    def segment_ms(self) -> int:
        return self.log_roll_hours * _HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @property
    def flush_ms(self) -> int:
        return MAX_LONG if self.log_flush_interval_ms is None else self.log_flush_interval_ms


def documented() -> list[Setting]:
    """Every setting with its description, the coordinator's among them."""
    return [
        setting if setting.doc else setting._replace(doc=_GROUP_DOCS[setting.name])
        for setting in settings_of(BrokerSettings).values()
    ]


def broker_settings(given: Mapping[str, Any] | BrokerSettings) -> BrokerSettings:
    """The settings a user gave, checked; those that mean something to Apache Kafka alone are left out.

    Raises SettingsError.
    """
    if isinstance(given, BrokerSettings):
        return given
    own, of_listeners = take_listener_settings(meaningful(given))
    settings = read_settings(BrokerSettings, own)
    settings.listener_name = of_listeners
    low, high = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if low > high:
        raise SettingsError(
            f"group.min.session.timeout.ms={low} is over group.max.session.timeout.ms={high}: "
            "set it to that or less"
        )
    check_listener_settings(settings, listeners_of(settings))
    parse_principals(settings.super_users)
    return settings


def parse_principals(text: str) -> frozenset[str]:
    """The principals of ``super.users``. Raises SettingsError."""
    principals = frozenset(part for part in map(str.strip, text.split(";")) if part)
    for principal in principals:
        kind, _, name = principal.partition(":")
        if not kind or not name:
            raise SettingsError(
                f"super.users={text} is not allowed: {principal!r} must be TYPE:NAME, as in User:admin"
            )
    return principals
