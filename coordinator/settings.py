"""What an operator can set: Kafka's names with underscores, Kafka's defaults, bounds as annotations.

Two defaults differ. ``group_max_size``: Apache Kafka has no limit, here a group stays within what one
rebalance can serve; ``group_coordinator_threads``: all shards share one event loop. Those that begin with
``kohort_`` are no settings of Kafka's. The bounds are read by whoever takes settings from outside; nothing
checks them here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Le

_INT32_MAX: Final = 2**31 - 1

#: How long a member that has never finished a rebalance is kept, in ms (a constant in Kafka too): its session
#: cannot show that it went away while its JoinGroup is parked.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000

#: Most protocols a member may offer (Kafka: no limit; clients offer one to four).
MAX_PROTOCOLS: Final = 32

#: Most bytes of metadata of one member, all protocols together (Kafka: the request's size).
MAX_MEMBER_METADATA_BYTES: Final = 1024 * 1024

#: Most bytes of metadata of all members of a group together (Kafka: no limit).
MAX_GROUP_METADATA_BYTES: Final = 64 * 1024 * 1024

#: Most member ids that a group has handed out and that have not come back yet (Kafka: no limit).
MAX_PENDING_IDS: Final = 10_000

#: Most partitions in one OffsetCommit (Kafka: the request's size).
MAX_COMMIT_PARTITIONS: Final = 10_000


@dataclass(slots=True)
class GroupSettings:
    """Settings of the coordinator; times are in ms unless the name says otherwise."""

    group_min_session_timeout_ms: Annotated[int, Ge(0), Le(_INT32_MAX)] = 6_000
    group_max_session_timeout_ms: Annotated[int, Ge(0), Le(_INT32_MAX)] = 1_800_000
    group_initial_rebalance_delay_ms: Annotated[int, Ge(0), Le(_INT32_MAX)] = 3_000
    group_max_size: Annotated[int, Ge(1), Le(_INT32_MAX)] = 5_000
    offset_metadata_max_bytes: Annotated[int, Ge(0), Le(32_767)] = 4_096
    offsets_load_buffer_size: Annotated[int, Ge(1), Le(_INT32_MAX)] = 5_242_880
    offsets_retention_minutes: Annotated[int, Ge(1), Le(_INT32_MAX)] = 10_080
    offsets_retention_check_interval_ms: Annotated[int, Ge(1)] = 600_000
    offsets_topic_num_partitions: Annotated[int, Ge(1), Le(_INT32_MAX)] = 50
    offsets_topic_replication_factor: Annotated[int, Ge(1), Le(32_767)] = 3
    offsets_topic_segment_bytes: Annotated[int, Ge(1), Le(_INT32_MAX)] = 104_857_600
    offsets_topic_compression_codec: Annotated[int, Ge(0), Le(4)] = 0
    offsets_commit_timeout_ms: Annotated[int, Ge(1), Le(_INT32_MAX)] = 5_000
    group_coordinator_append_linger_ms: Annotated[int, Ge(-1), Le(_INT32_MAX)] = -1
    group_coordinator_threads: Annotated[int, Ge(1), Le(1)] = 1
    kohort_group_history_size: Annotated[int, Ge(0), Le(1_000)] = 100
    kohort_offsets_load_strict: bool = False

    @property
    def offsets_retention_ms(self) -> int:
        """How long an offset outlives its group's last use."""
        return self.offsets_retention_minutes * 60_000
