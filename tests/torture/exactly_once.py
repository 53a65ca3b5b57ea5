"""``python exactly_once.py BOOTSTRAP SOURCE TARGET GROUP TRANSACTION_MS NAME``: process in transactions.

Any error ends the process; whoever runs it starts it again, under the same transactional id or another. It
prints where it begins to read a partition.
"""

from __future__ import annotations

import random
import signal
import sys
import time

import confluent_kafka

TRANSACTION_MS, SESSION_MS, HEARTBEAT_MS = 1_000, 2_000, 300
MOST_RECORDS = 30
WAIT_S = 5.0
#: librdkafka now and then hangs in send_offsets_to_transaction when it has lost the broker: it sends nothing
#: any more, whatever its timeout. The process is ended then.
STUCK_S = 8


def main() -> None:
    bootstrap, source, target, group, transaction_ms, name = sys.argv[1:]
    patience = int(transaction_ms) // TRANSACTION_MS
    stuck_s, wait_s = STUCK_S * patience, WAIT_S * patience
    common = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 300, "log_level": 0}
    consumer = confluent_kafka.Consumer(
        {
            **common,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": SESSION_MS * patience,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "max.poll.interval.ms": 1_000 * stuck_s,
        }
    )
    producer = confluent_kafka.Producer(
        {**common, "transactional.id": name, "transaction.timeout.ms": int(transaction_ms), "linger.ms": 0}
    )
    signal.alarm(stuck_s)
    consumer.subscribe([source])
    producer.init_transactions(wait_s)
    due: dict[int, int] = {}
    while True:
        signal.alarm(stuck_s)
        messages = consumer.consume(random.randint(1, MOST_RECORDS), 0.2)
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            if message.error() is not None:
                raise confluent_kafka.KafkaException(message.error())
            if message.offset() != due.get(message.partition()):
                begins = f"{time.time():.3f} {name} reads {message.partition()} from {message.offset()} on"
                print(begins, file=sys.stderr, flush=True)
            due[message.partition()] = message.offset() + 1
            producer.produce(target, message.value(), partition=message.partition())
        places = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), wait_s)
        producer.commit_transaction(wait_s)


if __name__ == "__main__":
    main()
