"""``python exactly_once_service.py BOOTSTRAP SOURCE TARGET GROUP NAME``: exactly_once.py by our own service.

Its transactional id is its own, so NAME is not used.
"""

from __future__ import annotations

import random
import sys

from kohort.consumer import ConsumerService, Record
from kohort.consumer.service import KafkaOutput
from kohort.producer import ProducerRecord

TRANSACTION_MS, SESSION_MS, HEARTBEAT_MS, REBALANCE_MS = 1_000, 2_000, 300, 6_000


def main() -> None:
    bootstrap, source, target, group, _ = sys.argv[1:]
    service = ConsumerService(
        bootstrap=bootstrap,
        group=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        rebalance_timeout_ms=REBALANCE_MS,
    )
    service.exactly_once(
        KafkaOutput(
            transaction_timeout_ms=TRANSACTION_MS,
            max_records=random.choice((1, 30, 1_000)),
            interval_ms=random.choice((1, 50, 300)),
        )
    )

    @service.handler(source)
    def copy(record: Record) -> ProducerRecord:
        return ProducerRecord(target, record.value, partition=record.partition)

    service.run()


if __name__ == "__main__":
    main()
