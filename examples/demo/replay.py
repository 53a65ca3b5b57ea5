"""Process: writes the flights to the topic, in the order of departure."""

from __future__ import annotations

import argparse
import asyncio

from child_side import end_with_the_demo, say
from confluent_kafka import KafkaError, Message, Producer
from data import TOPIC, as_json, load_flights

from kohort.producer import Producer as OwnProducer
from kohort.producer import RecordMetadata

REPORT_EVERY = 4_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("flights", type=int)
    parser.add_argument(
        "--own", action="store_true", help="use kohort's producer: no flight is written twice"
    )
    args = parser.parse_args()
    end_with_the_demo()
    if args.own:
        asyncio.run(replay_once(args.bootstrap, args.flights))
    else:
        replay(args.bootstrap, args.flights)


def replay(bootstrap: str, limit: int) -> None:
    """Write with confluent-kafka, which is fast. Partitions are chosen as by Java's producer."""
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "queue.buffering.max.messages": 20_000,
            "on_delivery": delivered,
        }
    )
    sent = 0
    for key, value in as_json(load_flights(limit)):
        while True:
            try:
                producer.produce(TOPIC, value, key)
                break
            except BufferError:
                producer.poll(0.1)  # the queue is full: wait for acknowledgements
        sent += 1
        if sent % REPORT_EVERY == 0:
            producer.poll(0)
            say(sent=sent - len(producer))
    producer.flush()
    if failures:
        raise SystemExit(f"{len(failures)} flights were not accepted, the first because: {failures[0]}")
    say(sent=sent)


async def replay_once(bootstrap: str, limit: int) -> None:
    """Write with kohort's producer: each flight is written once, whatever happens to the brokers."""
    done = 0

    def count(_: asyncio.Future[RecordMetadata]) -> None:
        nonlocal done
        done += 1
        if done % REPORT_EVERY == 0:
            say(sent=done)

    async with OwnProducer(bootstrap=bootstrap, linger_ms=20) as producer:
        written = []
        for key, value in as_json(load_flights(limit)):
            future = await producer.send(TOPIC, value, key)
            future.add_done_callback(count)
            written.append(future)
        await asyncio.gather(*written)
    say(sent=done)


if __name__ == "__main__":
    main()
