"""kohort's consumer as a member of a group whose partitions move, in any process or in one of its own.

``python -m benchmarks._moving_member JOB``, a job in JSON, reads until its input ends. It prints a line for
each record that it has read and each partition that it has stopped to read: the partition and the time, in
seconds of the monotonic clock, which all processes of a machine share.

It imports little besides the consumer: what that imports only when partitions come to it is in the time of
the first move, as it is in a service's.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from ._clients import kohort_settings

Job = dict[str, Any]
#: What is to be printed waits for so long: partitions move without the printing.
_PRINT_S = 0.05
#: A process that has left ends so much later: what its end takes of the processors is not in the time.
_END_S = 0.2


async def run(
    job: Job, stop: asyncio.Event, read: Callable[[int], None], stopped: Callable[[int], None]
) -> None:
    """Read until the event is set, and on until others are ready to take over.

    ``read`` is called with the partition of each record, ``stopped`` with each partition that is given up. If
    the job names a protocol, heartbeats come as often as the size of the group allows.
    """
    from kohort.consumer import AsyncGroupConsumer
    from kohort.protocol import TopicPartition

    def revoked(partitions: tuple[TopicPartition, ...]) -> None:
        for partition in partitions:
            stopped(partition.partition)

    settings = kohort_settings(job)
    if "protocol" in job:
        settings |= {"protocol": job["protocol"], "on_partitions_revoking": revoked}
    else:
        settings |= {"heartbeat_interval_ms": job["heartbeat_ms"]}
    async with AsyncGroupConsumer(job["topic"], **settings) as consumer:

        async def close() -> None:
            await stop.wait()
            await consumer.close()

        closing = asyncio.create_task(close())
        # ends when the consumer is closed: what comes until then is read
        async for record in consumer:
            read(record.partition)
            consumer.done(record)
        await closing


class _Times:
    """Lines of partitions and times, printed a little later."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._loop = asyncio.get_running_loop()

    def add(self, partition: int) -> None:
        if not self._lines:
            self._loop.call_later(_PRINT_S, self.print)
        self._lines.append(f"{partition} {time.monotonic()}\n")

    def print(self) -> None:
        sys.stdout.writelines(self._lines)
        sys.stdout.flush()
        self._lines.clear()


async def _main(job: Job) -> None:
    from confluent_kafka import Producer

    loop, stop, times = asyncio.get_running_loop(), asyncio.Event(), _Times()
    producer = Producer({"bootstrap.servers": job["bootstrap"], "linger.ms": 0, "acks": "1"})

    def send(partition: int) -> None:
        producer.produce(job["topic"], b"x" * 100, partition=partition)

    def stopped(partition: int) -> None:
        times.add(partition)
        send(partition)

    def ended() -> None:
        loop.remove_reader(sys.stdin)
        stop.set()

    # connects it to the leader
    send(0)
    producer.flush(10)
    loop.add_reader(sys.stdin, ended)
    await run(job, stop, times.add, stopped)
    producer.flush(10)
    times.print()
    await asyncio.sleep(_END_S)


if __name__ == "__main__":
    asyncio.run(_main(json.loads(sys.argv[1])))
