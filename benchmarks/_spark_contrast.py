"""For contrast: a topic into Spark by confluent-kafka's consumer, told by offsets what to read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kohort.consumer import EARLIEST, LATEST, Cluster
from kohort.spark import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
_ROWS = 20_000


def frame(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """A task for each partition, as Spark's own source has them."""
    spans = asyncio.run(_whole(bootstrap, topic))
    numbers = spark.range(0, len(spans), 1, len(spans))
    return numbers.mapInArrow(_reader(bootstrap, spans), _COLUMNS)


async def _whole(bootstrap: str, topic: str) -> list[OffsetRange]:
    async with Cluster(bootstrap) as cluster:
        await cluster.metadata([topic])
        places = cluster.known_metadata.partitions(topic)
        first = await cluster.list_offsets(dict.fromkeys(places, EARLIEST))
        last = await cluster.list_offsets(dict.fromkeys(places, LATEST))
    return [OffsetRange(*place, first[place].offset, last[place].offset) for place in sorted(places)]


def _reader(
    bootstrap: str, spans: list[OffsetRange]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from consumed(bootstrap, spans[number])

    return read


def consumed(bootstrap: str, span: OffsetRange) -> Iterator[pa.RecordBatch]:
    """One range's records. Raises KafkaException."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "group.id": "contrast", "enable.auto.commit": False}
    # with its default it rests for a second whenever 100,000 records wait: that would be measured
    consumer = Consumer({**settings, "queued.min.messages": 1_000_000})
    start = span.start
    consumer.assign([TopicPartition(span.topic, span.partition, start)])
    try:
        while start < span.end:
            messages = consumer.consume(min(_ROWS, span.end - start), 60)
            for message in messages:
                if message.error():
                    raise KafkaException(message.error())
            if not messages:
                raise RuntimeError(f"nothing came of {span} from {start} on")
            yield _columns(messages)
            start = messages[-1].offset() + 1
    finally:
        consumer.close()


def _columns(messages: list[Any]) -> pa.RecordBatch:
    import pyarrow as pa

    times = [message.timestamp() for message in messages]
    return pa.record_batch(
        [
            pa.array([message.key() for message in messages], pa.binary()),
            pa.array([message.value() for message in messages], pa.binary()),
            pa.array([message.topic() for message in messages], pa.string()),
            pa.array([message.partition() for message in messages], pa.int32()),
            pa.array([message.offset() for message in messages], pa.int64()),
            pa.array([at * 1000 for _, at in times], pa.timestamp("us", tz="UTC")),
            # 1 and 2 there, 0 and 1 in Spark
            pa.array([kind - 1 for kind, _ in times], pa.int32()),
        ],
        names=["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"],
    )
