"""The plan of a schedule with a share group, drawn from its seed: that of a cluster, with other clients."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ..brokers._plan import BrokerPlan
from ..cluster._plan import BROKERS, TOPIC, ClusterPlan, draw_cluster_plan


@dataclass(slots=True)
class SharePlan(ClusterPlan):
    """``share_members`` members of a share group read the topic."""

    share_members: int = 1


def draw_share_plan(seed: int) -> SharePlan:
    """The plan of a seed."""
    cluster = draw_cluster_plan(seed)
    rng = Random(f"share groups {seed}")
    values = {name: getattr(cluster, name) for name in _fields(ClusterPlan)}
    plan = SharePlan(**values)
    # a log that is known to have lost records says nothing about what was given
    plan.unclean, plan.inputs, plan.group_members = False, (), 0
    plan.incidents = [incident for incident in plan.incidents if incident.kind != "isr-lost"]
    plan.topics = {TOPIC: cluster.topics[TOPIC]}
    plan.share_members = rng.choice((1, 2, 2, 3))
    plan.settings = plan.settings | {
        "share_coordinator_state_topic_num_partitions": rng.choice((1, 2)),
        "share_coordinator_state_topic_replication_factor": BROKERS,
        "share_coordinator_state_topic_min_isr": plan.settings["min_insync_replicas"],
        "share_coordinator_state_topic_prune_interval_ms": rng.choice((500, 60_000)),
        "share_coordinator_snapshot_update_records_per_snapshot": rng.choice((0, 3, 500)),
        "group_share_min_session_timeout_ms": 500,
        "group_share_session_timeout_ms": plan.member_session_ms,
        "group_share_min_heartbeat_interval_ms": 100,
        "group_share_heartbeat_interval_ms": plan.member_session_ms // 5,
        "group_share_min_assignment_interval_ms": 0,
        "group_share_assignment_interval_ms": 0,
        "group_share_min_record_lock_duration_ms": 1_000,
        "group_share_record_lock_duration_ms": 1_000,
        "group_share_delivery_count_limit": rng.choice((2, 5)),
        "group_share_initialize_retry_interval_ms": 500,
    }
    return plan


def _fields(kind: type[BrokerPlan]) -> list[str]:
    return list(kind.__dataclass_fields__)
