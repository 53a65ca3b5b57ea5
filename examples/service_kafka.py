"""A service that reads orders from a topic and writes bills to another, exactly once, whatever is killed.

    kohort broker --port 9092          # or any Apache Kafka
    python examples/service_kafka.py localhost:9092

It runs until SIGTERM or Ctrl-C. Read the bills with isolation_level="read_committed".
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, PositiveInt

from kohort.consumer import Record
from kohort.producer import ProducerRecord
from kohort.service import ConsumerService, KafkaOutput


class Order(BaseModel):
    """The JSON in topic "orders". The record's key is the customer."""

    id: int
    amount: PositiveInt


def make_service(bootstrap: str, **settings: Any) -> ConsumerService:
    """Return a service with these settings that is a member of group "billing"."""
    service = ConsumerService(
        bootstrap=bootstrap, group="billing", auto_offset_reset="earliest", health_port=0, **settings
    )
    service.exactly_once(KafkaOutput(compression="lz4"))

    # a record that is not a valid order becomes a dead letter in the same transaction
    @service.handler("orders", model=Order, lanes="key", dead_letter="orders.dlt")
    def bill(order: Order, record: Record) -> Iterator[ProducerRecord]:
        yield ProducerRecord("bills", b"%d %d" % (order.id, order.amount), record.key)
        if order.amount >= 1_000:
            yield ProducerRecord("large-bills", b"%d" % order.id, record.key)

    return service


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    if len(sys.argv) != 2:
        sys.exit("usage: service_kafka.py HOST:PORT")
    make_service(sys.argv[1]).run()
