"""Settings of the share coordinator, with Kafka's names (underscores for dots) and Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..protocol.compared_fields import ComparedFields
from ..settings import BROKER, MAX_INT, Row, Scope


@dataclass(eq=False, repr=False)
class ShareCoordinatorSettings(ComparedFields):
    """Settings of the share coordinator and its topic. Times are in milliseconds."""

    SCOPE: ClassVar[Scope] = BROKER

    share_coordinator_state_topic_num_partitions: Annotated[
        int, Row("partitions of __share_group_state, fixed when it is created", 1, 10_000)
    ] = 50
    share_coordinator_state_topic_replication_factor: Annotated[
        int,
        Row("replicas of __share_group_state; as many as there are brokers, if those are fewer", 1, 32_767),
    ] = 3
    share_coordinator_state_topic_min_isr: Annotated[
        int, Row("min.insync.replicas of __share_group_state, if it has as many", 1, 32_767)
    ] = 2
    share_coordinator_state_topic_segment_bytes: Annotated[
        int, Row("size at which __share_group_state begins a new segment", 1, MAX_INT)
    ] = 104_857_600
    share_coordinator_state_topic_prune_interval_ms: Annotated[
        int, Row("time between two looks for records of __share_group_state that can be deleted", 1, MAX_INT)
    ] = 300_000
    share_coordinator_snapshot_update_records_per_snapshot: Annotated[
        int, Row("updates of a share partition between two records with its whole state", 0, 500)
    ] = 500
    share_coordinator_cold_partition_snapshot_interval_ms: Annotated[
        int, Row("time without updates after which a share partition's state is written anew", 1, MAX_INT)
    ] = 300_000
    share_coordinator_write_timeout_ms: Annotated[
        int, Row("how long a write waits for the replicas of __share_group_state", 1, MAX_INT)
    ] = 5_000
    share_coordinator_load_buffer_size: Annotated[
        int, Row("bytes read at a time while __share_group_state is loaded", 1, MAX_INT)
    ] = 5_242_880
