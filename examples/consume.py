"""Read a topic as a member of a group, and show which member reads what while members come and go.

    kohort broker --port 9092          # or any Apache Kafka
    python examples/consume.py localhost:9092 orders billing

Start it in several terminals, stop one with Ctrl-C, kill another. Each prints which partitions it gains and
loses, and no record is skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

from kohort.consumer import AsyncGroupConsumer, Record
from kohort.consumer.events import (
    Event,
    OffsetReset,
    PartitionsLost,
    PartitionsRevoked,
    RebalanceCompleted,
)


async def handle(record: Record) -> None:
    """Replace this with your work."""
    text = (record.value or b"").decode(errors="replace")
    print(f"  {record.topic}-{record.partition} @ {record.offset}: {text}", flush=True)


def tell(event: Event) -> None:
    """Print some of the consumer's events."""
    match event:
        case RebalanceCompleted():
            partitions = ", ".join(f"{p.topic}-{p.partition}" for p in event.assignment) or "nothing"
            print(f"generation {event.generation}: reads {partitions}", flush=True)
        case PartitionsRevoked() | PartitionsLost():
            print(f"gives up {', '.join(f'{p.topic}-{p.partition}' for p in event.partitions)}", flush=True)
        case OffsetReset():
            print(f"{event.partition.topic}-{event.partition.partition} starts at {event.offset}", flush=True)


async def main(bootstrap: str, topic: str, group: str) -> None:
    """Read until interrupted."""
    consumer = AsyncGroupConsumer(topic, bootstrap=bootstrap, group=group, auto_offset_reset="earliest")
    consumer.events.listen(tell)
    async with consumer:
        async for record in consumer:
            await handle(record)
            consumer.done(record)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: consume.py HOST:PORT TOPIC GROUP")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
