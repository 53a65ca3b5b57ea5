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
    # for the next five Kafka has no limit but the size of a request
    kohort_group_max_metadata_bytes: Annotated[int, Ge(1), Le(_INT32_MAX)] = 64 * 1024 * 1024
    kohort_group_max_pending_ids: Annotated[int, Ge(1), Le(_INT32_MAX)] = 10_000
    kohort_member_max_metadata_bytes: Annotated[int, Ge(1), Le(_INT32_MAX)] = 1024 * 1024
    kohort_member_max_protocols: Annotated[int, Ge(1), Le(_INT32_MAX)] = 32
    kohort_commit_max_partitions: Annotated[int, Ge(1), Le(_INT32_MAX)] = 10_000
    kohort_group_history_size: Annotated[int, Ge(0), Le(1_000)] = 100
    kohort_offsets_load_strict: bool = False

    @property
    def offsets_retention_ms(self) -> int:
        """How long an offset outlives its group's last use."""
        return self.offsets_retention_minutes * 60_000
