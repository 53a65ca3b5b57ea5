"""The plan of a schedule of brokers, drawn from its seed: settings, clients, incidents."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from ..brokers._plan import BrokerPlan, Values, draw_incidents, draw_producer, rack_of
from ..engine._plan import NETWORK, show_faults
from ..workloads._transactions import ProcessorPlan

BROKERS: Final = 3
TOPIC: Final = "orders"
#: The topic of records that are written in transactions.
OUTPUT: Final = "payments"
#: No incident is longer.
LONGEST_MS: Final = 1_500

#: What happens at moments that are drawn: (what it is, how often at most in one schedule).
INCIDENTS: Final[dict[str, tuple[str, int]]] = {
    "kill": ("a broker's process is killed, and started again; its session ends later", 3),
    "stop": ("a broker stops in good order: others lead first; and starts again", 1),
    "power-loss": ("a broker's machine loses power, and what was not synced; always the same machine", 2),
    "wipe": ("a broker comes back with an empty disk; always the same machine", 1),
    "pause": ("a broker's process stands still, shorter or longer than its session", 2),
    "stall": ("a broker's event loop stands still, and its session goes on", 1),
    "lose-session": ("a broker's session with the metadata ends though it runs", 2),
    "cut-metadata": ("a broker cannot reach the metadata for a while", 2),
    "late-metadata": ("a broker learns of changes late", 2),
    "blink": ("a broker's connection to the metadata breaks and comes back", 2),
    "cut": ("two brokers cannot reach each other for a while", 2),
    "cut-one-way": ("nothing arrives at a broker that another one sends, for a while", 2),
    "cut-off": ("a broker reaches neither other brokers nor the metadata for a while", 2),
    "slow": ("between two brokers everything takes long for a while", 2),
    "clock-jump": ("a broker's wall clock jumps by up to an hour", 2),
    "torn-write": ("a broker's process ends in the middle of a write, at any byte of it", 2),
    "disk-full": ("a broker's disk has no room for the next bytes, for a while", 1),
    "fsync-error": ("a sync fails at a broker: what was to be synced is lost to the disk", 1),
    "short-write": ("a write leaves half of its bytes at a broker, and fails", 1),
    "move-leader": ("another replica in sync is to lead a partition", 3),
    "reassign": ("a partition is to have one replica less, or one more, or what was begun is undone", 4),
    "client-kill": ("a member of the group is killed, and another one starts", 2),
    "processor-kill": ("a producer of transactions is killed, and started again later", 2),
    "processor-pause": ("a producer of transactions stands still, maybe for longer than one may take", 2),
    "processor-twin": ("another process begins with a transactional id that is in use", 2),
}

#: In schedules where the topic allows unclean elections.
UNCLEAN: Final[dict[str, tuple[str, int]]] = {
    "isr-lost": ("a broker is cut off from the others until it is out of sync, then these are killed", 2)
}
#: How many schedules are of that kind, and how many have members that the coordinator assigns (KIP-848).
_UNCLEAN_SHARE: Final = 0.15
_CONSUMER_SHARE: Final = 0.25
#: How many have links that deliver late what was given up.
_LATE_SHARE: Final = 0.15
#: How many show only records that are on the disk.
_FLUSHED_SHARE: Final = 0.15

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

#: Faults of connections, of clients and between brokers.
_NETWORK: Final = ("drop", "delay", "reset", "lost-answer")
_ALWAYS: Final = frozenset({"kill"})
#: Of the chances of other simulators: connections between brokers carry many more requests.
_SHARE: Final = 0.15


@dataclass(slots=True)
class ClusterPlan(BrokerPlan):
    """``inputs`` are the counts of numbers for each producer of transactions, ``aborts`` and ``idles`` the
    probabilities that one is aborted, or left open for long. ``unclean``: records without transactions are
    in a topic that allows unclean elections. ``member_session_ms`` is the session timeout of the group's
    members.
    """

    producers: int = 1
    group_members: int = 1
    inputs: tuple[int, ...] = ()
    aborts: float = 0.0
    idles: float = 0.0
    pauses_ms: tuple[int, ...] = (10,)
    unclean: bool = False
    member_session_ms: int = 1_500

    def processors(self) -> list[ProcessorPlan]:
        """The producers of transactions, one for each input."""
        adds_itself = self.features["transaction.version"] > 0
        return [
            ProcessorPlan(
                f"p{source}",
                f"id{source}",
                source,
                self.aborts,
                self.idles,
                pauses_ms=self.pauses_ms,
                adds_itself=adds_itself,
            )
            for source in range(len(self.inputs))
        ]


def draw_cluster_plan(seed: int) -> ClusterPlan:
    """The plan of a seed."""
    rng = Random(f"cluster {seed}")
    session_ms = rng.choice((300, 600, 1_000))
    faults_ms = rng.randint(1_000, 3_000)
    member_session_ms = rng.choice((1_500, 3_000))
    on = {name for name in (*_NETWORK, *INCIDENTS) if rng.random() < 0.3} | _ALWAYS
    partitions = rng.choice((1, 1, 2, 3))
    inputs = tuple(rng.randint(5, 25) for _ in range(min(rng.choice((0, 0, 1, 2)), partitions)))
    racks = rng.random() < 0.3
    plan = ClusterPlan(
        seed=seed,
        run_seed=rng.getrandbits(64),
        faults_ms=faults_ms,
        session_ms=session_ms,
        brokers=BROKERS,
        fsync=True,
        flips=rng.choice((0, 0, 3)),
        topics={TOPIC: partitions, **({OUTPUT: rng.choice((1, 2))} if inputs else {})},
        network={name: NETWORK[name][1] * _SHARE for name in _NETWORK if name in on},
        incidents=draw_incidents(rng, INCIDENTS, on, faults_ms, longest_ms=LONGEST_MS),
        settings=_draw_settings(rng, session_ms, racks=racks),
        configs={"segment_bytes": rng.choice((2_048, 1 << 20)), "kohort_ack_flush": rng.random() < 0.3},
        producers=rng.choice((1, 1, 2)),
        group_members=rng.choice((0, 1, 1, 2)),
        producer=draw_producer(rng),
        consumer=_draw_consumer(rng, member_session_ms, racks=racks),
        victim=rng.randint(1, BROKERS),
        lost_writes=0.05 if rng.random() < 0.3 else 0.0,
        inputs=inputs,
        timeout_ms=rng.choice((600, 1_000, 2_000)),
        aborts=rng.choice((0.0, 0.1, 0.4)),
        idles=rng.choice((0.0, 0.0, 0.1)),
        pauses_ms=(0, 30, rng.choice((30, 150))),
        features={"transaction.version": rng.choice((0, 2, 2))},
        member_session_ms=member_session_ms,
    )
    # drawn apart, so that the others are as they were
    rng = Random(f"cluster, more {seed}")
    if rng.random() < _CONSUMER_SHARE:
        _assign_by_coordinator(plan)
    if rng.random() < _UNCLEAN_SHARE:
        plan.unclean = True
        plan.settings["replica_lag_time_max_ms"] = 300
        plan.incidents += draw_incidents(rng, UNCLEAN, UNCLEAN, faults_ms, longest_ms=LONGEST_MS, letter="u")
    rng = Random(f"cluster, late {seed}")
    if rng.random() < _LATE_SHARE:
        _deliver_late(plan)
    rng = Random(f"cluster, shown {seed}")
    if rng.random() < _FLUSHED_SHARE:
        plan.configs["kohort_visibility"] = "flushed"
    return plan


def _draw_settings(rng: Random, session_ms: int, *, racks: bool) -> Values:
    return {
        "default_replication_factor": BROKERS,
        "min_insync_replicas": 1 if rng.random() < 0.1 else 2,
        "offsets_topic_num_partitions": rng.choice((1, 1, 2)),
        "offsets_topic_replication_factor": BROKERS,
        "transaction_state_log_replication_factor": BROKERS,
        "transaction_state_log_num_partitions": rng.choice((1, 2)),
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": rng.choice((50, 300)),
        "replica_selector_class": RACK_AWARE if racks else "",
        "zookeeper_session_timeout_ms": session_ms,
        "replica_lag_time_max_ms": rng.choice((300, 800, 2_000)),
        "replica_fetch_wait_max_ms": rng.choice((100, 200, 300)),
        "offsets_commit_timeout_ms": rng.choice((500, 2_000)),
        "log_flush_offset_checkpoint_interval_ms": rng.choice((200, 1_000, 60_000)),
        "auto_leader_rebalance_enable": rng.random() < 0.5,
        "leader_imbalance_check_interval_seconds": 1,
        "group_initial_rebalance_delay_ms": 0,
        "group_min_session_timeout_ms": 500,
    }


def _draw_consumer(rng: Random, session_ms: int, *, racks: bool) -> Values:
    return {
        "session_timeout_ms": session_ms,
        "heartbeat_interval_ms": session_ms // 5,
        "rebalance_timeout_ms": 3_000,
        "auto_commit_interval_ms": rng.choice((50, 200)),
        "request_timeout_ms": 1_000,
        "retry_backoff_ms": 20,
        "retry_backoff_max_ms": 200,
        **({"client_rack": rack_of(rng.randint(1, BROKERS))} if racks else {}),
    }


def _deliver_late(plan: ClusterPlan) -> None:
    """Let requests arrive late, with producers that keep their epoch from transaction to transaction."""
    plan.late = 0.3
    plan.faults_ms += 4_000
    plan.features["transaction.version"] = 0
    plan.aborts, plan.idles = 0.4, 0.4
    plan.inputs = plan.inputs or (20,)
    plan.topics.setdefault(OUTPUT, 1)


def _assign_by_coordinator(plan: ClusterPlan) -> None:
    session_ms = plan.member_session_ms
    plan.group_members = max(1, plan.group_members)
    own = ("session_timeout_ms", "heartbeat_interval_ms")
    plan.consumer = {name: value for name, value in plan.consumer.items() if name not in own}
    plan.consumer["protocol"] = "consumer"
    plan.settings |= {
        "group_consumer_min_session_timeout_ms": 500,
        "group_consumer_session_timeout_ms": session_ms,
        "group_consumer_min_heartbeat_interval_ms": 100,
        "group_consumer_heartbeat_interval_ms": session_ms // 5,
        "group_consumer_min_assignment_interval_ms": 0,
        "group_consumer_assignment_interval_ms": 0,
    }


def faults_table() -> str:
    """Faults of connections and incidents, as a Markdown table."""
    network = {name: NETWORK[name] for name in _NETWORK}
    others = {
        "lost-writes": ("metadata are written, and the writer is not told", 0.0),
        "late-requests": ("a request between brokers arrives after its sender has given it up", 0.0),
    }
    return show_faults(network | others | INCIDENTS | UNCLEAN, NETWORK)
