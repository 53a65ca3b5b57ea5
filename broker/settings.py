"""The broker's settings: Kafka's ``server.properties`` names with underscores for dots.

A :class:`BrokerSettings` is also the coordinator's :class:`~kohort.coordinator.GroupSettings`: one object,
one table in docs/broker.md, one place where ``--set`` looks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from ..coordinator import GroupSettings
from ..log import CompressionType
from ..protocol import GZIP_LEVEL, LZ4_LEVEL, ZSTD_LEVEL
from ..settings import BROKER, MAX_INT, MAX_LONG, Row, Scope, SettingsError, read_settings, read_settings_file
from ..share_state import ShareCoordinatorSettings
from ..transactions import TransactionSettings
from .kafka_names import find_meaningful, with_node_id
from .security._listeners import check_listener_settings, listeners_of, take_listener_settings
from .security._settings import SecuritySettings

if TYPE_CHECKING:
    import argparse

#: A setting that may change while the broker runs.
Live = partial(Row, dynamic="broker")

_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000

TimestampType = Literal["CreateTime", "LogAppendTime"]


def _is_cleanup_policy(text: str) -> bool:
    return {part.strip() for part in text.split(",")} <= {"delete", "compact", ""}


def _is_recording_size(size: int) -> bool:
    return size == 0 or size >= 1 << 20


@dataclass(slots=True, eq=False, repr=False)
class BrokerSettings(SecuritySettings, ShareCoordinatorSettings, TransactionSettings, GroupSettings):
    """Settings of a broker, defaults as Kafka's: its own, and those of its parts."""

    SCOPE: ClassVar[Scope] = BROKER

    node_id: Annotated[int, Row("number of this broker", 0, MAX_INT)] = 1
    authorizer_class_name: Annotated[
        Literal["", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"],
        Row(
            "access rules are kept and obeyed; empty: there are none, and everyone may do everything",
            allowed="empty, or org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        ),
    ] = ""
    super_users: Annotated[str, Row("principals who may do everything: User:admin;User:ops")] = ""
    allow_everyone_if_no_acl_found: Annotated[
        bool, Row("what no access rule names is open to everyone, and not only to super users")
    ] = False
    auto_create_topics_enable: Annotated[bool, Row("Metadata requests that allow it create topics")] = True
    delete_topic_enable: Annotated[bool, Row("DeleteTopics is obeyed")] = True
    num_partitions: Annotated[int, Row("partitions of a topic created without a number", 1, 100_000)] = 1
    default_replication_factor: Annotated[
        int, Row("replicas of a new topic; no more than there are brokers", 1, 32_767)
    ] = 1

    zookeeper_connect: Annotated[
        str, Row("HOST:PORT,.../CHROOT: be a broker of the cluster there; empty: be alone", commas=True)
    ] = ""
    zookeeper_session_timeout_ms: Annotated[
        int, Row("a broker that is silent for so long is missed by its cluster", 1, MAX_INT)
    ] = 6_000
    zookeeper_connection_timeout_ms: Annotated[
        int | None,
        Row(
            "how long a start waits for a connection with ZooKeeper; empty: as long as a session lasts",
            1,
            MAX_INT,
        ),
    ] = None
    zookeeper_ssl_client_enable: Annotated[bool, Row("TLS to ZooKeeper")] = False
    zookeeper_ssl_truststore_location: Annotated[str, Row("PEM file with ZooKeeper's authorities")] = ""
    zookeeper_ssl_keystore_location: Annotated[
        str, Row("PEM file with the private key and the certificate chain that are shown to ZooKeeper")
    ] = ""
    zookeeper_set_acl: Annotated[
        bool,
        Row(
            "entries in ZooKeeper are to change by who made them alone, as ZooKeeper knows them by TLS or "
            "kohort.zookeeper.digest, which implies it; access rules and credentials are theirs to read, too"
        ),
    ] = False
    kohort_zookeeper_digest: Annotated[
        str,
        Row(
            "USER:PASSWORD: log in at ZooKeeper, and let entries be this user's alone to change (not a "
            "setting of Kafka)",
            sensitive=True,
        ),
    ] = field(default="", repr=False)
    unclean_leader_election_enable: Annotated[
        bool,
        Live("a replica that is not in sync may lead where there is no other: what it lacks is lost"),
    ] = False
    auto_leader_rebalance_enable: Annotated[
        bool, Row("the controller gives partitions back to their first replicas now and then")
    ] = True
    leader_imbalance_check_interval_seconds: Annotated[int, Row("time between two looks", 1, MAX_INT)] = 300
    leader_imbalance_per_broker_percentage: Annotated[
        int, Row("it does so for brokers that lack more than this share of what they are to lead", 0, MAX_INT)
    ] = 10
    controlled_shutdown_enable: Annotated[
        bool, Row("a broker of a cluster that stops lets others lead its partitions first")
    ] = True

    leader_replication_throttled_rate: Annotated[
        int,
        Live("bytes a second to followers of leader.replication.throttled.replicas of topics", 0, MAX_LONG),
    ] = MAX_LONG
    follower_replication_throttled_rate: Annotated[
        int, Live("bytes a second of follower.replication.throttled.replicas of topics", 0, MAX_LONG)
    ] = MAX_LONG
    replica_alter_log_dirs_io_max_bytes_per_second: Annotated[
        int, Live("kept for tools; there is one log folder", 0, MAX_LONG)
    ] = MAX_LONG
    replication_quota_window_num: Annotated[
        int, Row("windows that these rates are measured over", 1, MAX_INT)
    ] = 11
    replication_quota_window_size_seconds: Annotated[int, Row("length of such a window", 1, MAX_INT)] = 1
    replica_selector_class: Annotated[
        Literal[
            "",
            "org.apache.kafka.common.replica.LeaderSelector",
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        ],
        Row("with the rack-aware one consumers read from a replica in their own rack (client.rack)"),
    ] = ""
    broker_rack: Annotated[str, Row("rack of this broker: replicas are spread over racks")] = ""

    replica_lag_time_max_ms: Annotated[
        int,
        Row("a replica that has not had all that its leader had for this long is out of sync", 1, MAX_INT),
    ] = 30_000
    replica_fetch_wait_max_ms: Annotated[
        int, Row("a follower's Fetch waits no longer than this for records", 1, MAX_INT)
    ] = 500
    replica_fetch_max_bytes: Annotated[int, Row("most bytes of one partition in it", 0, MAX_INT)] = 1_048_576
    replica_fetch_response_max_bytes: Annotated[int, Row("most bytes of it", 0, MAX_INT)] = 10_485_760

    message_max_bytes: Annotated[int, Live("largest record batch, compressed", 0, MAX_INT)] = 1_048_588
    max_incremental_fetch_session_cache_slots: Annotated[
        int, Row("most fetch sessions (KIP-227)", 0, MAX_INT)
    ] = 1_000
    fetch_max_bytes: Annotated[int, Row("most record bytes in one Fetch answer", 1024, MAX_INT)] = 57_671_680
    min_insync_replicas: Annotated[
        int,
        Live("replicas that must be in sync for acks=all; a broker alone does not look at it", 1, MAX_INT),
    ] = 1
    compression_type: Annotated[
        CompressionType,
        Live(
            "how batches are stored: producer keeps them as they came, else the broker compresses them anew"
        ),
    ] = "producer"
    compression_gzip_level: Annotated[
        int,
        Live(
            "level where the broker compresses with gzip; -1: zlib's default",
            -1,
            9,
            check=bool,
            allowed="-1 or a whole number from 1 to 9",
        ),
    ] = GZIP_LEVEL
    compression_lz4_level: Annotated[
        int, Live("level where it compresses with LZ4; 9: its fast compressor", 1, 17)
    ] = LZ4_LEVEL
    compression_zstd_level: Annotated[int, Live("level where it compresses with zstd", -131_072, 22)] = (
        ZSTD_LEVEL
    )

    socket_request_max_bytes: Annotated[int, Row("largest request", 1, MAX_INT)] = 104_857_600
    socket_listen_backlog_size: Annotated[int, Row("connections waiting to be accepted", 1, 65_535)] = 1_024
    connections_max_idle_ms: Annotated[
        int, Row("a connection silent for this long is closed; -1: never", -1, MAX_LONG)
    ] = 600_000
    kohort_request_complete_timeout_ms: Annotated[
        int,
        Row("a request must be complete this long after its first byte (not a setting of Kafka)", 1, MAX_INT),
    ] = 30_000
    kohort_response_unread_timeout_ms: Annotated[
        int,
        Row(
            "who takes next to nothing of an answer for this long is cut off (not a setting of Kafka)",
            1,
            MAX_INT,
        ),
    ] = 30_000
    kohort_response_unread_max_bytes: Annotated[
        int, Row("less than this may be left unread for longer (not a setting of Kafka)", 0, MAX_INT)
    ] = 1_048_576
    queued_max_request_bytes: Annotated[
        int, Row("waiting request bytes of all connections; over it reading and accepting stop", 1, MAX_LONG)
    ] = 268_435_456

    quota_window_num: Annotated[
        int, Row("windows that the rate of a client is measured over", 1, MAX_INT)
    ] = 11
    quota_window_size_seconds: Annotated[int, Row("length of a window of client quotas", 1, MAX_INT)] = 1
    controller_quota_window_num: Annotated[
        int, Row("windows whose controller_mutation_rate may be used at once", 1, MAX_INT)
    ] = 11
    controller_quota_window_size_seconds: Annotated[int, Row("length of such a window", 1, MAX_INT)] = 1

    log_segment_bytes: Annotated[int, Live("size at which a new segment is begun", 14, MAX_INT)] = (
        1_073_741_824
    )
    log_roll_hours: Annotated[int, Row("age at which a new segment is begun", 1, MAX_INT)] = 168
    log_roll_ms: Annotated[int | None, Live("used before log.roll.hours", 1, MAX_LONG)] = None
    log_retention_hours: Annotated[int, Row("age at which segments go; -1: never", -1, MAX_INT)] = 168
    log_retention_minutes: Annotated[int | None, Row("used before log.retention.hours", -1, MAX_INT)] = None
    log_retention_ms: Annotated[int | None, Live("used before log.retention.minutes", -1, MAX_LONG)] = None
    log_retention_bytes: Annotated[
        int, Live("a partition over this size loses its oldest segments; -1: no limit", -1, MAX_LONG)
    ] = -1
    log_retention_check_interval_ms: Annotated[int, Row("time between two checks", 1, MAX_LONG)] = 300_000
    log_cleanup_policy: Annotated[
        str,
        Live(
            "remove old segments, keep the last value of each key, or both",
            allowed="delete, compact, or both with a comma",
            check=_is_cleanup_policy,
            commas=True,
        ),
    ] = "delete"
    log_cleaner_enable: Annotated[bool, Row("logs whose cleanup.policy asks for it are compacted")] = True
    log_cleaner_threads: Annotated[int, Row("one log is compacted at a time", 1, 1)] = 1
    log_cleaner_backoff_ms: Annotated[
        int, Live("time between two looks for logs to compact, when there was none", 0, MAX_LONG)
    ] = 15_000
    log_cleaner_dedupe_buffer_size: Annotated[
        int, Live("memory for the keys of a compaction; more keys take more passes", 1, MAX_LONG)
    ] = 134_217_728
    log_cleaner_delete_retention_ms: Annotated[int, Live("how long tombstones stay", 0, MAX_LONG)] = (
        86_400_000
    )
    log_cleaner_min_cleanable_ratio: Annotated[
        float, Live("share of the log that must be new before it is compacted", 0, 1)
    ] = 0.5
    log_cleaner_min_compaction_lag_ms: Annotated[int, Live("a younger record is kept", 0, MAX_LONG)] = 0
    log_cleaner_max_compaction_lag_ms: Annotated[
        int, Live("a record waits no longer than this for compaction", 1, MAX_LONG)
    ] = MAX_LONG
    log_index_interval_bytes: Annotated[int, Live("bytes of log between two index entries", 0, MAX_INT)] = (
        4_096
    )
    log_index_size_max_bytes: Annotated[int, Live("largest index of a segment", 4, MAX_INT)] = 10_485_760
    log_segment_delete_delay_ms: Annotated[
        int,
        Live("how long a deleted segment stays on disk for readers; deleted topics go at once", 0, MAX_LONG),
    ] = 60_000
    log_message_timestamp_type: Annotated[TimestampType, Live("whose time a record carries")] = "CreateTime"
    log_message_timestamp_before_max_ms: Annotated[
        int, Live("how far behind the broker's clock a record's time may be", 0, MAX_LONG)
    ] = MAX_LONG
    log_message_timestamp_after_max_ms: Annotated[
        int, Live("how far ahead of the broker's clock a record's time may be", 0, MAX_LONG)
    ] = 3_600_000
    log_flush_interval_messages: Annotated[int, Live("fsync after this many records", 1, MAX_LONG)] = MAX_LONG
    log_flush_interval_ms: Annotated[
        int | None, Live("fsync what is older than this; empty: left to the system", 0, MAX_LONG)
    ] = None
    kohort_offsets_ack_flush: Annotated[
        bool, Row("offsets and groups are acknowledged once they are on the disk (not a setting of Kafka)")
    ] = False
    kohort_recording_max_bytes: Annotated[
        int,
        Row(
            "size of the recording of groups in the data folder (not a setting of Kafka); 0: none is kept",
            0,
            MAX_LONG,
            check=_is_recording_size,
            allowed="0, or 1048576 and more",
        ),
    ] = 104_857_600
    kohort_recording_retention_hours: Annotated[
        int, Row("age at which what is recorded of groups goes (not a setting of Kafka)", 1, 87_600)
    ] = 168
    kohort_recording_details_hours: Annotated[
        int,
        Row(
            "age at which moves, refusals and members go from it, and causes stay (not a setting of Kafka)",
            1,
            87_600,
        ),
    ] = 24
    log_flush_offset_checkpoint_interval_ms: Annotated[
        int, Row("time between two writings of the recovery points", 0, MAX_INT)
    ] = 60_000
    kohort_log_dir_low_space_percent: Annotated[
        int,
        Live(
            "the broker warns when less of the disk of the data folder is free; 0: never (not a setting of "
            "Kafka)",
            0,
            100,
        ),
    ] = 10
    kohort_log_dir_hang_ms: Annotated[
        int,
        Live(
            "a write or a flush that does not return within this time is told: the disk hangs; 0: never (not "
            "a setting of Kafka)",
            0,
            MAX_INT,
        ),
    ] = 10_000

    kohort_lag_interval_ms: Annotated[
        int,
        Row(
            "time between two looks at the lag of groups, for metrics (not a setting of Kafka); 0: none",
            0,
            MAX_INT,
        ),
    ] = 10_000
    kohort_lag_metrics_max: Annotated[
        int,
        Row("most groups, and most partitions, whose lag is a metric (not a setting of Kafka)", 0, 1_000_000),
    ] = 1_000

    @property
    def retention_ms(self) -> int:
        """Default retention of topics in ms: the finest of ms, minutes and hours that is set; -1 is no
        limit.
        """
        if self.log_retention_ms is not None:
            chosen = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            chosen = self.log_retention_minutes * _MINUTE_MS
        else:
            chosen = self.log_retention_hours * _HOUR_MS
        return max(chosen, -1)

    @property
    def selects_by_rack(self) -> bool:
        """Return whether consumers are sent to replicas in their racks."""
        return self.replica_selector_class.endswith("RackAwareReplicaSelector")

    @property
    def segment_ms(self) -> int:
        """Age at which a segment is closed: ``log.roll.ms``, else ``log.roll.hours``."""
        return self.log_roll_hours * _HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @property
    def flush_ms(self) -> int:
        """Longest time until a record is synced; the largest number if none is set."""
        return MAX_LONG if self.log_flush_interval_ms is None else self.log_flush_interval_ms


#: Kafka's defaults that differ from those of a single broker here.
_IN_A_CLUSTER: Final = {
    "offsets_topic_replication_factor": 3,
    "transaction_state_log_replication_factor": 3,
    "transaction_state_log_min_isr": 2,
}


def broker_settings(given: Mapping[str, object] | BrokerSettings) -> BrokerSettings:
    """Check the settings that a user gave; leave out those without a meaning here. Raises SettingsError."""
    if isinstance(given, BrokerSettings):
        return given
    own, of_listeners = take_listener_settings(with_node_id(find_meaningful(given)))
    names = {name.replace(".", "_") for name in own}
    if own.get("zookeeper.connect") or own.get("zookeeper_connect"):
        if "node_id" not in names:
            raise SettingsError("zookeeper.connect needs node.id: give each broker another number")
        own = {**{name: value for name, value in _IN_A_CLUSTER.items() if name not in names}, **own}
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


def given_settings(options: "argparse.Namespace") -> dict[str, str]:
    """The settings of ``--settings``, ``--set`` and the options of a cluster. Raises SettingsError."""
    file = read_settings_file(options.settings_file) if options.settings_file else {}
    words = {"zookeeper.connect": options.zookeeper, "node.id": options.node_id, "broker.rack": options.rack}
    given = {**file, **dict(options.settings)}
    for name, value in words.items():
        if value is not None:
            replaced = (name, "broker.id") if name == "node.id" else (name,)
            given = {key: kept for key, kept in given.items() if key.replace("_", ".") not in replaced}
            given[name] = value
    return given


def parse_principals(text: str) -> frozenset[str]:
    """Principals of ``super.users``. Raises SettingsError."""
    principals = frozenset(part for part in map(str.strip, text.split(";")) if part)
    for principal in principals:
        kind, _, name = principal.partition(":")
        if not kind or not name:
            raise SettingsError(
                f"super.users={text} is not allowed: {principal!r} must be TYPE:NAME, as in User:admin"
            )
    return principals
