"""``python exactly_once_service.py ...``: as exactly_once.py, by our own service.

Its transactional id is its own, so NAME is not used.
"""

from __future__ import annotations

import random
import sys

from kohort.consumer import Record
from kohort.producer import ProducerRecord
from kohort.service import ConsumerService, KafkaOutput

SESSIONS, HEARTBEAT_MS, REBALANCES = 2, 300, 6


def main() -> None:
    bootstrap, source, target, group, transaction, _ = sys.argv[1:]
    transaction_ms = int(transaction)
    service = ConsumerService(
        bootstrap=bootstrap,
        group=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSIONS * transaction_ms,
        heartbeat_interval_ms=HEARTBEAT_MS,
        rebalance_timeout_ms=REBALANCES * transaction_ms,
    )
    service.exactly_once(
        KafkaOutput(
            transaction_timeout_ms=transaction_ms,
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
