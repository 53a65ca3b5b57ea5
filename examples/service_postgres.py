"""A service that writes bills to PostgreSQL, exactly once whatever is killed, as the offsets are there too.

    pip install 'psycopg[binary]'
    kohort broker --port 9092          # or any Apache Kafka
    python examples/service_postgres.py localhost:9092 'dbname=billing user=me'

It runs until SIGTERM or Ctrl-C.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import psycopg
from pydantic import BaseModel, PositiveInt

from kohort.consumer import Record
from kohort.service import ConsumerService, DbApiSink, Retry

BILLS = """
CREATE TABLE IF NOT EXISTS bills (
    order_id bigint NOT NULL,
    customer text NOT NULL,
    amount bigint NOT NULL,
    billed_at timestamptz NOT NULL DEFAULT now()
)"""


class Order(BaseModel):
    """The JSON in topic "orders". The record's key is the customer."""

    id: int
    amount: PositiveInt


def make_service(bootstrap: str, dsn: str, **settings: Any) -> ConsumerService:
    """Create the table if it is missing, and return a service that is a member of group "billing"."""
    with psycopg.connect(dsn) as connection:
        connection.execute(BILLS)
    service = ConsumerService(
        bootstrap=bootstrap, group="billing", auto_offset_reset="earliest", health_port=0, **settings
    )
    service.exactly_once(DbApiSink(lambda: psycopg.connect(dsn), paramstyle="pyformat"))

    # a temporary error of the database, such as a lock or a lost connection, is retried
    @service.handler("orders", model=Order, retry=Retry(attempts=5, backoff_ms=200), dead_letter="orders.dlt")
    def bill(order: Order, record: Record, connection: psycopg.Connection) -> None:
        customer = (record.key or b"").decode()
        row = (order.id, customer, order.amount)
        connection.execute("INSERT INTO bills (order_id, customer, amount) VALUES (%s, %s, %s)", row)

    return service


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    if len(sys.argv) != 3:
        sys.exit("usage: service_postgres.py HOST:PORT DSN")
    make_service(*sys.argv[1:]).run()
