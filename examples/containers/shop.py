"""The service that compose.yaml runs: "kohort run shop:service", with the broker in KOHORT_BOOTSTRAP."""

from __future__ import annotations

from pydantic import BaseModel

from kohort.consumer import Record
from kohort.service import ConsumerService


class Order(BaseModel):
    """The JSON in topic "orders"."""

    id: int


service = ConsumerService(
    group="billing",
    auto_offset_reset="earliest",
    health_host="0.0.0.0",
    health_port=8080,
)


@service.handler("orders", model=Order, dead_letter="orders.dlt")
async def bill(order: Order, record: Record) -> None:
    """Bill an order."""
    print(f"billed {order.id} of partition {record.partition}", flush=True)
