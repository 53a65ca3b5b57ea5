"""The plan of a schedule of transactions, drawn from its seed: producers, settings, incidents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, Self

from ..brokers._plan import BrokerPlan, Values, draw_incidents, draw_producer
from ..engine._plan import NETWORK, SchedulePlan, show_faults
from ..groups._plan import INCIDENTS as COORDINATOR_INCIDENTS
from ..workloads._transactions import ProcessorPlan

INPUT: Final = "input"
OUTPUT: Final = "output"

#: What happens at moments that are drawn: (what it is, how often at most in one schedule).
INCIDENTS: Final[dict[str, tuple[str, int]]] = {
    "processor-kill": ("a producer's process is killed, and started again later", 3),
    "processor-pause": ("a producer stands still, shorter or longer than its transaction's timeout", 2),
    "processor-successor": ("all producers of an input are killed, and one with another id begins", 2),
    "processor-twin": ("another process begins with a transactional id that is in use", 2),
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
_SESSION_MS: Final = 400
_HEARTBEAT_MS: Final = 100
_REBALANCE_MS: Final = 500

#: Faults of the network; what is sent twice over two connections may arrive long after its answer.
_NETWORK: Final = ("drop", "delay", "duplicate", "reset", "lost-answer")
_ALWAYS: Final = frozenset({"processor-kill", "kill"})


@dataclass(slots=True)
class TransactionPlan(BrokerPlan):
    """``processors`` are the producers of transactions; all of them are in a group, or none is."""

    processors: list[ProcessorPlan] = field(default_factory=list)

    def _who(self) -> list[str]:
        return [processor.name for processor in self.processors[1:]]

    def leave_out(self, names: Collection[str]) -> Self:
        """The same without these faults, incidents and producers."""
        SchedulePlan.leave_out(self, names)
        self.processors = [processor for processor in self.processors if processor.name not in names]
        return self


def draw_transaction_plan(seed: int) -> TransactionPlan:
    """The plan of a seed."""
    rng = Random(f"transactions {seed}")
    timeout_ms = rng.choice((600, 1_000, 2_000))
    faults_ms = rng.randint(2_000, 6_000)
    fsync = rng.random() < 0.3
    sources = rng.choice((1, 2, 2))
    outputs = rng.choice((1, 2, 3))
    segment_bytes = rng.choice((512, 2_048, 1 << 20))
    on = {name for name in (*_NETWORK, *INCIDENTS) if rng.random() < 0.4} | _ALWAYS
    if not fsync:
        on -= {"power-loss"}
    new = rng.choice((0.0, 0.5, 1.0, 1.0))
    processors = [
        ProcessorPlan(
            f"p{number}",
            f"id{number}",
            number,
            aborts=rng.choice((0.0, 0.1, 0.4)),
            idles=rng.choice((0.0, 0.0, 0.1)),
            most_records=rng.choice((1, 3, 10)),
            starts_ms=rng.randint(0, 300),
            adds_itself=rng.random() < new,
        )
        for number in range(sources)
    ]
    consumer: Values = {}
    if seed % _GROUP_EVERY == 0:
        consumers = seed % (2 * _GROUP_EVERY) != 0
        processors, sources = _join_group(rng, processors, consumers=consumers)
        consumer = _draw_member(consumers=consumers)
    return TransactionPlan(
        seed=seed,
        run_seed=rng.getrandbits(64),
        faults_ms=faults_ms,
        # of the network: a late request is late by that, or three times that
        session_ms=timeout_ms,
        fsync=fsync,
        flips=rng.randint(0, 4) if fsync else 0,
        topics={INPUT: sources, OUTPUT: outputs},
        network={name: NETWORK[name][1] for name in _NETWORK if name in on},
        incidents=draw_incidents(rng, INCIDENTS, on, faults_ms, longest_ms=faults_ms),
        timeout_ms=timeout_ms,
        processors=processors,
        settings=_settings(rng, fsync=fsync),
        configs={
            "segment_bytes": segment_bytes,
            "index_interval_bytes": 256,
            **({"kohort_ack_flush": True, "kohort_visibility": "flushed"} if fsync else {}),
        },
        producer=draw_producer(rng),
        consumer=consumer,
    )


def _join_group(
    rng: Random, processors: list[ProcessorPlan], *, consumers: bool
) -> tuple[list[ProcessorPlan], int]:
    """Twice as many producers, all in one group, and how many input partitions it has."""
    both = [
        *processors,
        *(
            replace(each, name=f"{each.name}b", transactional_id=f"{each.transactional_id}b")
            for each in processors
        ),
    ]
    members = []
    for each in both:
        static = not consumers and rng.random() < 0.2
        member = (("group_instance_id", each.name),) if static else ()
        members.append(replace(each, in_group=True, member=member))
    return members, rng.choice((1, 2, 4))


def _draw_member(*, consumers: bool) -> Values:
    own = {
        "session_timeout_ms": _SESSION_MS,
        "heartbeat_interval_ms": _HEARTBEAT_MS,
    }
    return {
        **({"protocol": "consumer"} if consumers else own),
        "rebalance_timeout_ms": _REBALANCE_MS,
        "request_timeout_ms": 1_000,
        "retry_backoff_ms": 20,
        "retry_backoff_max_ms": 100,
    }


def _settings(rng: Random, *, fsync: bool) -> Values:
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
        "group_consumer_session_timeout_ms": _SESSION_MS,
        "group_consumer_min_session_timeout_ms": 1,
        "group_consumer_heartbeat_interval_ms": _HEARTBEAT_MS,
        "group_consumer_min_heartbeat_interval_ms": 1,
    }


def faults_table() -> str:
    """Incidents of transactions, as a Markdown table."""
    return show_faults(INCIDENTS, COORDINATOR_INCIDENTS)
