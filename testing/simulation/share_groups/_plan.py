"""The plan of a schedule with a share group, drawn from its seed: that of a cluster, with other clients."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Final, Self

from ..brokers._plan import BrokerPlan, Values, draw_incidents
from ..cluster._plan import BROKERS, LONGEST_MS, TOPIC, ClusterPlan, draw_cluster_plan
from ..engine._plan import show_faults

#: The topic that comes and goes.
PASSING: Final = "passing"

#: What happens at moments that are drawn, beside what happens to any cluster.
INCIDENTS: Final[dict[str, tuple[str, int]]] = {
    "member-leave": ("a member closes its sessions and leaves, and another one joins", 2),
    "member-stall": ("a member's process stands still, maybe for longer than a lock or its session", 2),
    "offsets-altered": ("all members leave, the group is set to another offset, and members join", 1),
    "group-deleted": ("all members leave, the group is deleted, and members join", 1),
    "records-deleted": ("the records of a partition are deleted below an offset", 2),
    "topic-made": ("a topic of the group is created, or gets another partition", 3),
    "topic-deleted": ("a topic of the group is deleted", 1),
    "offsets-deleted": ("all members leave, the offsets of a topic are deleted, and members join", 1),
    "group-configured": ("a config of the group is changed: of locks, deliveries or isolation", 2),
    "group-described": ("the group, its offsets and its records in flight are described", 3),
    "leader-unheard": ("another replica leads a partition, and who led it before learns of that late", 3),
}
#: Those that were drawn from the beginning: the seeds of schedules stay what they are.
_FIRST: Final = tuple(INCIDENTS)[:7]
#: What share groups are about needs more time than what clusters are about: locks last a second.
_MORE_MS: Final = (0, 1_000, 3_000)
_ON: Final = 0.25
_STATE_FAULTS: Final = "state-faults"
_STATE_LATE: Final = "state-late"
_RESETS: Final = ("earliest", "by_duration:P1D")
_RETENTION: Final = "retention"
#: How many schedules have links that deliver late what was given up.
_LATE: Final = 0.15
#: How many have more members than most topics have partitions.
_MANY: Final = 0.2


@dataclass(slots=True)
class SharePlan(ClusterPlan):
    """``share_members`` members of a share group read the topics; with ``committed`` only what is.
    ``state_faults`` is the probability that what is asked of share coordinators is late, or fails, and
    ``state_late`` that it is late. ``reset`` is where the group begins, the first record in either case.
    ``retention``: of the topic that comes and goes old segments are deleted.
    """

    share_members: int = 1
    committed: bool = False
    state_faults: float = 0.0
    state_late: float = 0.0
    reset: str = "earliest"
    retention: bool = False

    def leave_out(self, names: Collection[str]) -> Self:
        ClusterPlan.leave_out(self, names)
        if _STATE_FAULTS in names:
            self.state_faults = 0.0
        if _STATE_LATE in names:
            self.state_late = 0.0
        self.retention = self.retention and _RETENTION not in names
        return self

    def names(self) -> list[str]:
        more = {
            _STATE_FAULTS: self.state_faults > 0,
            _STATE_LATE: self.state_late > 0,
            _RETENTION: self.retention,
        }
        return [*ClusterPlan.names(self), *(name for name, is_on in more.items() if is_on)]

    @property
    def passing_configs(self) -> Values:
        """Configs of the topic that comes and goes."""
        return self.configs | ({"segment_bytes": 512, "retention_bytes": 1_024} if self.retention else {})


def draw_share_plan(seed: int) -> SharePlan:
    """The plan of a seed."""
    plan = draw_common_plan(seed)
    _draw_more(Random(f"share groups, more {seed}"), plan)
    return plan


def draw_common_plan(seed: int) -> SharePlan:
    """What schedules of share groups and of share consumers have of a seed."""
    cluster = draw_cluster_plan(seed)
    rng = Random(f"share groups {seed}")
    values = {name: getattr(cluster, name) for name in _fields(ClusterPlan)}
    plan = SharePlan(**values)
    # a log that is known to have lost records says nothing about what was given
    plan.unclean, plan.group_members = False, 0
    plan.incidents = [incident for incident in plan.incidents if incident.kind != "isr-lost"]
    plan.topics = {TOPIC: cluster.topics[TOPIC]} if not plan.inputs else dict(cluster.topics)
    plan.share_members = rng.choice((1, 2, 2, 3))
    plan.committed = rng.random() < 0.5
    plan.state_faults = rng.choice((0.0, 0.0, 0.1))
    plan.faults_ms += rng.choice(_MORE_MS)
    first = {name: INCIDENTS[name] for name in _FIRST}
    on = {name for name in first if rng.random() < _ON}
    plan.incidents += draw_incidents(rng, first, on, plan.faults_ms, longest_ms=LONGEST_MS, letter="q")
    plan.settings = plan.settings | _draw_settings(rng, plan)
    return plan


def _draw_more(rng: Random, plan: SharePlan) -> None:
    more = {name: what for name, what in INCIDENTS.items() if name not in _FIRST}
    on = {name for name in more if rng.random() < _ON}
    plan.incidents += draw_incidents(rng, more, on, plan.faults_ms, longest_ms=LONGEST_MS, letter="r")
    plan.retention = rng.random() < _ON
    # so what a leader has begun to write may come when another one leads, or offsets were altered
    plan.state_late = rng.choice((0.0, 0.0, 0.4))
    plan.settings["log_retention_check_interval_ms"] = 300
    if rng.random() < _LATE:
        plan.late = 0.3
    plan.reset = rng.choice(_RESETS)
    if rng.random() < _MANY:
        plan.share_members += 3


def _draw_settings(rng: Random, plan: SharePlan) -> Values:
    return {
        "share_coordinator_state_topic_num_partitions": rng.choice((1, 2)),
        "share_coordinator_state_topic_replication_factor": BROKERS,
        "share_coordinator_state_topic_min_isr": plan.settings["min_insync_replicas"],
        "share_coordinator_state_topic_prune_interval_ms": rng.choice((100, 500, 60_000)),
        "share_coordinator_snapshot_update_records_per_snapshot": rng.choice((0, 3, 500)),
        # states of topics that were deleted while nobody led them are found by then
        "share_coordinator_cold_partition_snapshot_interval_ms": rng.choice((500, 5_000)),
        "share_coordinator_write_timeout_ms": rng.choice((300, 5_000)),
        "group_share_min_session_timeout_ms": 500,
        "group_share_session_timeout_ms": plan.member_session_ms,
        "group_share_min_heartbeat_interval_ms": 100,
        "group_share_heartbeat_interval_ms": plan.member_session_ms // 5,
        "group_share_min_assignment_interval_ms": 0,
        "group_share_assignment_interval_ms": 0,
        "group_share_min_record_lock_duration_ms": 1_000,
        "group_share_record_lock_duration_ms": 1_000,
        "group_share_delivery_count_limit": rng.choice((2, 5)),
        "group_share_partition_max_record_locks": rng.choice((100, 2_000)),
        "group_share_initialize_retry_interval_ms": 500,
    }


def faults_table() -> str:
    """Incidents of share groups, as a Markdown table."""
    others = {
        _STATE_FAULTS: ("what a leader asks of share coordinators is late, or fails, done or not", 0.0),
        _STATE_LATE: (
            "what a leader asks of share coordinators is late, and so comes when another one leads",
            0.0,
        ),
        _RETENTION: ("old segments of a topic of the group are deleted", 0.0),
    }
    return show_faults(others | INCIDENTS)


def _fields(kind: type[BrokerPlan]) -> list[str]:
    return list(kind.__dataclass_fields__)
