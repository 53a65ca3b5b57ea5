"""Settings of the coordinator: Kafka's names with underscores for dots, and Kafka's defaults.

Four defaults differ. ``group_max_size`` and ``group_consumer_max_size``: Apache Kafka has no limit; here a
group stays within the size that one rebalance can serve; ``group_coordinator_threads``: all shards share one
event loop; ``offsets_topic_replication_factor``: a broker may be alone. Settings that begin with ``kohort_``
are not Kafka's. Values are checked when settings are read, not in this class.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from ..protocol.compared_fields import ComparedFields
from ..settings import BROKER, MAX_INT, Row, Scope

#: Longest time, in ms, that a member is kept before its first rebalance ends (a constant in Kafka too): while
#: its JoinGroup is parked, its session cannot show that it is gone.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000


def _are_names(text: str) -> bool:
    names = [name.strip() for name in text.split(",")]
    return all(names) and len(set(names)) == len(names)


@dataclass(eq=False, repr=False)
class GroupSettings(ComparedFields):
    """Settings of the coordinator; times are in ms unless the name says otherwise."""

    SCOPE: ClassVar[Scope] = BROKER

    group_min_session_timeout_ms: Annotated[int, Row("shortest session a member may ask for", 0, MAX_INT)] = (
        6_000
    )
    group_max_session_timeout_ms: Annotated[int, Row("longest session a member may ask for", 0, MAX_INT)] = (
        1_800_000
    )
    group_initial_rebalance_delay_ms: Annotated[
        int, Row("how long a new group waits for more members", 0, MAX_INT)
    ] = 3_000
    group_max_size: Annotated[int, Row("most members of a group", 1, MAX_INT)] = 5_000
    offset_metadata_max_bytes: Annotated[int, Row("longest metadata of a committed offset", 0, 32_767)] = (
        4_096
    )
    offsets_load_buffer_size: Annotated[
        int, Row("bytes read at a time when groups are loaded, more for a larger batch", 1, MAX_INT)
    ] = 5_242_880
    offsets_retention_minutes: Annotated[
        int, Row("how long the offsets of a group without members are kept", 1, MAX_INT)
    ] = 10_080
    offsets_retention_check_interval_ms: Annotated[
        int, Row("time between two looks for offsets to expire", 1)
    ] = 600_000
    offsets_topic_num_partitions: Annotated[
        int, Row("partitions of __consumer_offsets, fixed when it is created", 1, 10_000)
    ] = 50
    offsets_topic_replication_factor: Annotated[
        int, Row("replicas of __consumer_offsets; 3 with zookeeper.connect", 1, 32_767)
    ] = 1
    offsets_topic_compression_codec: Annotated[int, Row("__consumer_offsets is not compressed", 0, 0)] = 0
    offsets_topic_segment_bytes: Annotated[
        int, Row("size at which __consumer_offsets begins a new segment", 1, MAX_INT)
    ] = 104_857_600
    offsets_commit_timeout_ms: Annotated[
        int, Row("an answer of a coordinator waits no longer than this for other replicas", 1, MAX_INT)
    ] = 5_000
    group_coordinator_append_linger_ms: Annotated[
        int, Row("how long writes wait to share a batch; -1, 0: as short as can be", -1, MAX_INT)
    ] = -1
    group_coordinator_threads: Annotated[
        int, Row("all shards of the coordinator share one event loop", 1, 1)
    ] = 1
    # for the next five Kafka's only limit is the size of a request
    kohort_group_max_metadata_bytes: Annotated[
        int, Row("most bytes of metadata of one group (not a setting of Kafka)", 1, MAX_INT)
    ] = 64 * 1024 * 1024
    kohort_group_max_pending_ids: Annotated[
        int, Row("most unused member ids of a group (not a setting of Kafka)", 1, MAX_INT)
    ] = 10_000
    kohort_member_max_metadata_bytes: Annotated[
        int, Row("most bytes of metadata of one member (not a setting of Kafka)", 1, MAX_INT)
    ] = 1024 * 1024
    kohort_member_max_protocols: Annotated[
        int, Row("most protocols that one member offers (not a setting of Kafka)", 1, MAX_INT)
    ] = 32
    kohort_commit_max_partitions: Annotated[
        int, Row("most partitions in one OffsetCommit (not a setting of Kafka)", 1, MAX_INT)
    ] = 10_000
    kohort_group_history_size: Annotated[
        int, Row("events kept of each group (not a setting of Kafka); 0: none", 0, 1000)
    ] = 100
    kohort_offsets_load_strict: Annotated[
        bool, Row("groups that cannot be read whole stop the start (not a setting of Kafka)")
    ] = False

    group_consumer_session_timeout_ms: Annotated[
        int, Row("how long a member of a consumer group may be silent", 1, MAX_INT)
    ] = 45_000
    group_consumer_min_session_timeout_ms: Annotated[
        int, Row("shortest session of a consumer group", 1, MAX_INT)
    ] = 45_000
    group_consumer_max_session_timeout_ms: Annotated[
        int, Row("longest session of a consumer group", 1, MAX_INT)
    ] = 60_000
    group_consumer_heartbeat_interval_ms: Annotated[
        int, Row("time between two heartbeats of a member of a consumer group", 1, MAX_INT)
    ] = 5_000
    group_consumer_min_heartbeat_interval_ms: Annotated[
        int, Row("shortest heartbeat interval of a consumer group", 1, MAX_INT)
    ] = 5_000
    group_consumer_max_heartbeat_interval_ms: Annotated[
        int, Row("longest heartbeat interval of a consumer group", 1, MAX_INT)
    ] = 15_000
    group_consumer_assignment_interval_ms: Annotated[
        int, Row("least time between two assignments of a consumer group", 0, MAX_INT, dynamic="broker")
    ] = 1_000
    group_consumer_min_assignment_interval_ms: Annotated[
        int, Row("shortest assignment interval of a consumer group", 0, MAX_INT)
    ] = 0
    group_consumer_max_assignment_interval_ms: Annotated[
        int, Row("longest assignment interval of a consumer group", 0, MAX_INT)
    ] = 15_000
    group_consumer_max_size: Annotated[int, Row("most members of a consumer group", 1, MAX_INT)] = 5_000
    group_consumer_assignors: Annotated[
        str,
        Row(
            "assignors of consumer groups, the first is the default",
            check=_are_names,
            allowed="uniform, range and names of installed assignors, with commas",
            commas=True,
        ),
    ] = "uniform,range"
    kohort_consumer_assignor_timeout_ms: Annotated[
        int,
        Row("how long an assignor may take (not a setting of Kafka)", 1, MAX_INT),
    ] = 30_000
    group_consumer_migration_policy: Annotated[
        Literal["bidirectional", "upgrade", "downgrade", "disabled"],
        Row("whether groups with members turn from one protocol to the other"),
    ] = "bidirectional"
    group_consumer_regex_refresh_interval_ms: Annotated[
        int, Row("time after which the topics of regular expressions are looked up again", 10_000, MAX_INT)
    ] = 600_000

    group_share_session_timeout_ms: Annotated[
        int, Row("how long a member of a share group may be silent", 1, MAX_INT)
    ] = 45_000
    group_share_min_session_timeout_ms: Annotated[
        int, Row("shortest session of a share group", 1, MAX_INT)
    ] = 45_000
    group_share_max_session_timeout_ms: Annotated[
        int, Row("longest session of a share group", 1, MAX_INT)
    ] = 60_000
    group_share_heartbeat_interval_ms: Annotated[
        int, Row("time between two heartbeats of a member of a share group", 1, MAX_INT)
    ] = 5_000
    group_share_min_heartbeat_interval_ms: Annotated[
        int, Row("shortest heartbeat interval of a share group", 1, MAX_INT)
    ] = 5_000
    group_share_max_heartbeat_interval_ms: Annotated[
        int, Row("longest heartbeat interval of a share group", 1, MAX_INT)
    ] = 15_000
    group_share_assignment_interval_ms: Annotated[
        int, Row("least time between two assignments of a share group", 0, MAX_INT, dynamic="broker")
    ] = 1_000
    group_share_min_assignment_interval_ms: Annotated[
        int, Row("shortest assignment interval of a share group", 0, MAX_INT)
    ] = 0
    group_share_max_assignment_interval_ms: Annotated[
        int, Row("longest assignment interval of a share group", 0, MAX_INT)
    ] = 15_000
    group_share_record_lock_duration_ms: Annotated[
        int, Row("how long a record is locked for the member that has it", 1_000, 3_600_000)
    ] = 30_000
    group_share_min_record_lock_duration_ms: Annotated[
        int, Row("shortest lock of a record", 1_000, 30_000)
    ] = 15_000
    group_share_max_record_lock_duration_ms: Annotated[
        int, Row("longest lock of a record", 30_000, 3_600_000)
    ] = 60_000
    group_share_delivery_count_limit: Annotated[
        int, Row("how often a record is given to members of a share group", 2, 10)
    ] = 5
    group_share_min_delivery_count_limit: Annotated[
        int, Row("fewest deliveries that a share group may set", 2, 5)
    ] = 2
    group_share_max_delivery_count_limit: Annotated[
        int, Row("most deliveries that a share group may set", 5, 25)
    ] = 10
    group_share_partition_max_record_locks: Annotated[
        int, Row("most records in flight in a share partition", 100, 10_000)
    ] = 2_000
    group_share_min_partition_max_record_locks: Annotated[
        int, Row("fewest records in flight that a share group may set", 100, 2_000)
    ] = 100
    group_share_max_partition_max_record_locks: Annotated[
        int, Row("most records in flight that a share group may set", 2_000, 10_000)
    ] = 4_000
    group_share_max_share_sessions: Annotated[int, Row("most share sessions", 1, MAX_INT)] = 2_000
    group_share_max_size: Annotated[int, Row("most members of a share group", 1, 1_000)] = 200
    group_share_initialize_retry_interval_ms: Annotated[
        int, Row("time after which the state of share partitions is asked for again", 1, MAX_INT)
    ] = 30_000
    group_share_assignors: Annotated[Literal["simple"], Row("the assignor of share groups")] = "simple"

    @property
    def offsets_retention_ms(self) -> int:
        """Time in ms that an offset outlives its group's last use."""
        return self.offsets_retention_minutes * 60_000
