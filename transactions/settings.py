"""Settings of transactions, with Kafka's names (underscores for dots) and Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..protocol.compared_fields import ComparedFields
from ..settings import BROKER, MAX_INT, Row, Scope


@dataclass(eq=False, repr=False)
class TransactionSettings(ComparedFields):
    """Settings of the transaction coordinator. Times are in milliseconds."""

    SCOPE: ClassVar[Scope] = BROKER

    transaction_max_timeout_ms: Annotated[
        int, Row("longest timeout that a transactional producer may ask for", 1, MAX_INT)
    ] = 900_000
    transactional_id_expiration_ms: Annotated[
        int, Row("how long a transactional id is kept after its last use", 1, MAX_INT)
    ] = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: Annotated[
        int, Row("time between two checks for transactions that have timed out", 1, MAX_INT)
    ] = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: Annotated[
        int, Row("time between two checks for transactional ids that have expired", 1, MAX_INT)
    ] = 3_600_000
    kohort_transaction_max_partitions: Annotated[
        int, Row("most partitions in one transaction; more are refused", 1, MAX_INT)
    ] = 10_000
    transaction_state_log_num_partitions: Annotated[
        int, Row("partitions of __transaction_state, fixed when it is created", 1, 10_000)
    ] = 50
    transaction_state_log_replication_factor: Annotated[
        int, Row("replicas of __transaction_state; 3 with zookeeper.connect", 1, 32_767)
    ] = 1
    transaction_state_log_min_isr: Annotated[
        int,
        Row(
            "min.insync.replicas of __transaction_state, if it has as many; 2 with zookeeper.connect",
            1,
            32_767,
        ),
    ] = 1
    transaction_state_log_segment_bytes: Annotated[
        int, Row("size at which __transaction_state begins a new segment", 1, MAX_INT)
    ] = 104_857_600
