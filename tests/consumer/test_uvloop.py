"""Consumer and broker on uvloop, whose transports are not asyncio's classes."""

from __future__ import annotations

import pytest

from kohort.broker import Broker
from kohort.consumer import AsyncGroupConsumer, Cluster
from kohort.protocol import ApiKey, build_batch
from tests.messages import request_of

uvloop = pytest.importorskip("uvloop", reason="comes with the extra 'fast'")


async def produced_and_consumed() -> list[bytes | None]:
    async with Broker(settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        async with Cluster(broker.bootstrap) as cluster:
            await cluster.create_topics({"orders": 1})
            make = request_of(ApiKey.PRODUCE)
            records = bytes(build_batch([(None, b"first", ()), (None, b"second", ())], timestamp_ms=1))
            part = make.TopicProduceData.PartitionProduceData(index=0, records=records)
            data = make.TopicProduceData(name="orders", partition_data=[part])
            body = make(transactional_id=None, acks=-1, timeout_ms=5_000, topic_data=[data])
            await cluster.request(None, ApiKey.PRODUCE, body, max_version=9)
        consumer = AsyncGroupConsumer(
            "orders", bootstrap=broker.bootstrap, group="billing", auto_offset_reset="earliest"
        )
        values = []
        async with consumer:
            async for record in consumer:
                values.append(record.value)
                consumer.done(record)
                if len(values) == 2:
                    return values
    raise AssertionError("the consumer ended before it had both records")


def test_a_broker_and_a_consumer_share_a_uvloop() -> None:
    assert uvloop.run(produced_and_consumed()) == [b"first", b"second"]
