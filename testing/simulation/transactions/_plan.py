"""The plan of a schedule of transactions, drawn from its seed: producers, settings, incidents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, Self

from ....protocol import ApiKey
from .._plan import INCIDENTS as COORDINATOR_INCIDENTS
from .._plan import NETWORK, Incident, SchedulePlan
from .._plan import faults_table as coordinator_faults_table

GROUP: Final = "g0"
INPUT: Final = "input"
OUTPUT: Final = "output"

#: What happens at moments that are drawn: (what it is, how often at most in one schedule).
INCIDENTS: Final[dict[str, tuple[str, int]]] = {
    "producer-kill": ("a producer's process is killed, and started again later", 3),
    "producer-pause": ("a producer stands still, shorter or longer than its transaction's timeout", 2),
    "successor": ("all producers of an input are killed, and one with another id begins", 2),
    "twin": ("another process begins with a transactional id that is in use", 2),
    "kill": ("the broker's process is killed and reads its logs back", 2),
    "stop": ("the broker stops in good order and starts again", 1),
    **{
        name: COORDINATOR_INCIDENTS[name]
        for name in ("power-loss", "torn-write", "fsync-error", "disk-full", "short-write")
    },
}

#: One schedule of so many has its producers in a group.
_GROUP_EVERY: Final = 5

#: Of members: shorter than any transaction may take, so that one that was put out may have its own open.
SESSION_MS: Final = 400
_HEARTBEAT_MS: Final = 100
_REBALANCE_MS: Final = 500

#: Faults of the network; what is sent twice over two connections may arrive long after its answer.
_NETWORK: Final = ("drop", "delay", "duplicate", "reset", "lost-answer")
_ALWAYS: Final = frozenset({"producer-kill", "kill"})

#: The versions of the old protocol and of KIP-890's.
_OLD: Final[dict[int, int]] = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.PRODUCE: 11,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.END_TXN: 4,
    ApiKey.OFFSET_FETCH: 8,
    ApiKey.FETCH: 12,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
}
_NEW: Final[dict[int, int]] = {
    **_OLD,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.PRODUCE: 12,
    ApiKey.TXN_OFFSET_COMMIT: 5,
    ApiKey.END_TXN: 5,
}


@dataclass(slots=True)
class ProducerPlan:
    """One process that turns the records of an input partition into output."""

    name: str
    transactional_id: str
    source: int
    versions: dict[int, int]
    starts_ms: int
    #: How likely it aborts, or stays idle with a transaction open.
    aborts: float
    idles: float
    most_records: int
    #: Whether its input is what its group assigns to it, and the instance id that it has there.
    in_group: bool = False
    instance_id: str | None = None
    #: Whether the group is one of consumers (KIP-848).
    consumer: bool = False

    @property
    def adds_itself(self) -> bool:
        """Return whether its first write adds the partition (KIP-890)."""
        return self.versions is _NEW


@dataclass(slots=True)
class TransactionPlan(SchedulePlan):
    """``timeout_ms`` is that of transactions; ``settings`` are the broker's, ``configs`` the topics'."""

    timeout_ms: int = 0
    producers: list[ProducerPlan] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    configs: dict[str, Any] = field(default_factory=dict)

    def _who(self) -> list[str]:
        return [producer.name for producer in self.producers[1:]]

    def leave_out(self, names: Collection[str]) -> Self:
        """The same without these faults, incidents and producers."""
        SchedulePlan.leave_out(self, names)
        self.producers = [producer for producer in self.producers if producer.name not in names]
        return self


def draw_transaction_plan(seed: int) -> TransactionPlan:
    rng = Random(f"transactions {seed}")
    timeout_ms = rng.choice((600, 1_000, 2_000))
    faults_ms = rng.randint(2_000, 6_000)
    fsync = rng.random() < 0.3
    sources = rng.choice((1, 2, 2))
    outputs = rng.choice((1, 2, 3))
    segment_bytes = rng.choice((512, 2_048, 1 << 20))
    on = {name for name in (*_NETWORK, *INCIDENTS) if rng.random() < 0.4} | _ALWAYS
    new = rng.choice((0.0, 0.5, 1.0, 1.0))
    producers = [
        ProducerPlan(
            f"p{number}",
            f"id{number}",
            number,
            _NEW if rng.random() < new else _OLD,
            rng.randint(0, 300),
            rng.choice((0.0, 0.1, 0.4)),
            rng.choice((0.0, 0.0, 0.1)),
            rng.choice((1, 3, 10)),
        )
        for number in range(sources)
    ]
    groups = seed % _GROUP_EVERY == 0
    if groups:
        sources = _in_a_group(rng, producers, consumers=seed % (2 * _GROUP_EVERY) != 0)
    return TransactionPlan(
        seed=seed,
        run_seed=rng.getrandbits(64),
        faults_ms=faults_ms,
        # of the network: a late request is late by that, or three times that
        session_ms=timeout_ms,
        heartbeat_ms=_HEARTBEAT_MS,
        rebalance_ms=_REBALANCE_MS,
        initial_delay_ms=0,
        fsync=fsync,
        flips=rng.randint(0, 4) if fsync else 0,
        segment_bytes=segment_bytes,
        topics={INPUT: sources, OUTPUT: outputs},
        groups={},
        network={name: NETWORK[name][1] for name in _NETWORK if name in on},
        incidents=_incidents(rng, on, faults_ms, fsync=fsync),
        timeout_ms=timeout_ms,
        producers=producers,
        settings=_settings(rng, fsync=fsync),
        configs={
            "segment_bytes": segment_bytes,
            "index_interval_bytes": 256,
            **({"kohort_ack_flush": True, "kohort_visibility": "flushed"} if fsync else {}),
        },
    )


def _in_a_group(rng: Random, producers: list[ProducerPlan], *, consumers: bool) -> int:
    """Have the producers in one group; returns how many input partitions it has."""
    producers += [
        replace(each, name=f"{each.name}b", transactional_id=f"{each.transactional_id}b")
        for each in producers
    ]
    for producer in producers:
        producer.in_group, producer.consumer = True, consumers
        if not consumers and rng.random() < 0.2:
            producer.instance_id = producer.name
    return rng.choice((1, 2, 4))


def _settings(rng: Random, *, fsync: bool) -> dict[str, Any]:
    small = rng.choice((1_024, 4_096, 1 << 20))
    return {
        "offsets_topic_num_partitions": 1,
        "transaction_state_log_num_partitions": rng.choice((1, 2)),
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": rng.choice((50, 300)),
        "offsets_topic_segment_bytes": small,
        "transaction_state_log_segment_bytes": small,
        "log_flush_offset_checkpoint_interval_ms": rng.choice((200, 1_000, 60_000)),
        "log_cleaner_backoff_ms": rng.choice((300, 15_000)),
        "log_cleaner_min_cleanable_ratio": 0.0,
        "log_segment_delete_delay_ms": 100,
        "kohort_offsets_ack_flush": fsync,
        "kohort_group_history_size": 0,
        "group_min_session_timeout_ms": 1,
        "group_initial_rebalance_delay_ms": 0,
        "group_consumer_session_timeout_ms": SESSION_MS,
        "group_consumer_min_session_timeout_ms": 1,
        "group_consumer_heartbeat_interval_ms": _HEARTBEAT_MS,
        "group_consumer_min_heartbeat_interval_ms": 1,
    }


def _incidents(rng: Random, on: set[str], faults_ms: int, *, fsync: bool) -> list[Incident]:
    incidents: list[Incident] = []
    for kind, (_, most) in INCIDENTS.items():
        if kind not in on or (kind == "power-loss" and not fsync):
            continue
        for _ in range(rng.randint(1, most)):
            at_ms = rng.randint(100, faults_ms - 100)
            length_ms = rng.randint(1, faults_ms - at_ms)
            who, draw = rng.getrandbits(16), rng.random()
            incidents.append(Incident(f"i{len(incidents)}", at_ms, kind, who, draw, length_ms))
    return incidents


def faults_table() -> str:
    """Incidents of transactions, as a Markdown table."""
    return coordinator_faults_table(INCIDENTS)
