"""A service that bills orders, in order for each customer. Orders that cannot be billed become dead letters.

    kohort broker --port 9092          # or any Apache Kafka
    python examples/service.py localhost:9092

It runs until SIGTERM or Ctrl-C. Then it finishes the records it has started, commits, leaves the group and
exits with 0.
"""

from __future__ import annotations

import logging
import sys

from pydantic import BaseModel, PositiveInt

from kohort.consumer import Record
from kohort.service import ConsumerService, Retry


class Order(BaseModel):
    """The JSON in topic "orders". The record's key is the customer."""

    id: int
    amount: PositiveInt


def make_service(bootstrap: str) -> ConsumerService:
    """Return a service that is a member of group "billing"."""
    service = ConsumerService(
        bootstrap=bootstrap, group="billing", auto_offset_reset="earliest", health_port=0
    )

    @service.handler(
        "orders",
        model=Order,
        lanes="key",  # one order of a customer at a time, many customers at once
        concurrency=32,
        retry=Retry(attempts=5, backoff_ms=200),
        dead_letter="orders.dlt",
    )
    async def bill(order: Order, record: Record) -> None:
        print(f"billed order {order.id}: {order.amount} to {record.key!r}", flush=True)

    return service


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    make_service(sys.argv[1] if len(sys.argv) > 1 else "localhost:9092").run()
