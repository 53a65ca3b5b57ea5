"""A share consumer whose rights are taken while it reads, and given back. On kohort, and with ``--bootstrap``
on an Apache Kafka with access rules.

Covers: consumer/share/exchange.py, consumer/share/member.py.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from functools import partial

import pytest

from kohort.admin import AclRule, ClusterAdmin
from kohort.client import Cluster
from kohort.consumer import FatalGroupError, ShareConsumer
from kohort.producer import Producer
from tests.group_configs import set_group_configs
from tests.secured import PASSWORD, Secured
from tests.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow(15)]


async def test_what_was_taken_and_given_back_is_read_on_and_a_group_that_is_taken_ends_it(
    secured: Secured,
) -> None:
    user, topic, group = (f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ("user", "topic", "group"))
    secured.create_user(user)
    of_topic = AclRule(f"User:{user}", "Allow", "Read", "topic", topic)
    of_group = AclRule(f"User:{user}", "Allow", "Read", "group", group)
    async with Cluster(secured.plain) as cluster:
        await cluster.create_topics({topic: 2})
    await asyncio.to_thread(set_group_configs, secured.plain, group, share_auto_offset_reset="earliest")
    consumer = ShareConsumer(
        topic,
        bootstrap=secured.sasl,
        group=group,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username=user,
        sasl_plain_password=PASSWORD,
    )
    told, seen = Counter[str](), Counter[bytes]()
    consumer.events.listen(lambda event: told.update([type(event).__name__]))

    async def read() -> None:
        async for record in consumer:
            seen[record.value or b""] += 1
            record.accept()

    async with Producer(bootstrap=secured.plain) as producer, ClusterAdmin(secured.plain) as admin:
        await admin.add_acls([of_topic, of_group])
        await producer.send_and_wait(topic, b"before", partition=0)
        async with consumer:
            reading = asyncio.create_task(read())
            await until(lambda: seen[b"before"] == 1)
            for round_, partition in ((b"first", 0), (b"second", 1)):
                told.clear()
                await admin.remove_acls([of_topic])
                await until(lambda: told["PartitionFailed"] + told["BrokerUnavailable"] > 0)
                await producer.send_and_wait(topic, round_, partition=partition)
                await asyncio.sleep(0.5)
                assert not seen[round_]
                assert not reading.done()
                await admin.add_acls([of_topic])
                await until(partial(seen.get, round_))
            await admin.remove_acls([of_group])
            with pytest.raises(FatalGroupError, match="operation Read on the group"):
                await asyncio.wait_for(reading, 60)
    assert set(seen.values()) == {1}
