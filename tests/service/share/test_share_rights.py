"""What a user may read of configs decides which delivery is the last for a service of a share group, and what
becomes of it. On kohort, and with ``--bootstrap`` on an Apache Kafka with access rules.

Covers: service/share/share_group.py, service/share/share_source.py.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclBinding, AclOperation, AdminClient, NewTopic, ResourceType

from kohort.consumer import Record
from kohort.service import ConsumerService, Retry
from tests.broker.authorizer.test_clients import allowed, rule
from tests.group_configs import set_group_configs
from tests.secured import PASSWORD, Secured
from tests.service.share.test_share_services import serving
from tests.waiting import until

pytestmark = [pytest.mark.clients, pytest.mark.kafka, pytest.mark.slow(5)]

#: Of the group, and of the brokers, which is also what is taken where nobody tells.
LIMIT, USUAL = 2, 5


class Scene:
    """A user that may read a topic with one record and write its letters, and a share group."""

    def __init__(self, broker: Secured) -> None:
        self.broker = broker
        self.admin = AdminClient({"bootstrap.servers": broker.plain})
        unique = uuid.uuid4().hex[:8]
        self.user, self.group = f"worker-{unique}", f"mails-{unique}"
        self.topic, self.letters = f"mail-{unique}", f"mail-{unique}.dlt"
        broker.create_user(self.user)
        for made in self.admin.create_topics(
            [NewTopic(name, 1) for name in (self.topic, self.letters)]
        ).values():
            made.result(30)
        producer = Producer({"bootstrap.servers": broker.plain})
        producer.produce(self.topic, b"1")
        assert producer.flush(30) == 0
        set_group_configs(
            broker.plain, self.group, share_auto_offset_reset="earliest", share_delivery_count_limit=LIMIT
        )
        self.may(ResourceType.GROUP, self.group, AclOperation.READ)
        self.may(ResourceType.TOPIC, self.topic, AclOperation.READ)
        self.may(ResourceType.TOPIC, self.letters, AclOperation.WRITE)

    def may(self, kind: ResourceType, name: str, operation: AclOperation) -> None:
        allowed(self.admin, self.right(kind, name, operation))

    def right(self, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
        return rule(self.user, kind, name, operation)

    def make(self) -> ConsumerService:
        return ConsumerService(
            bootstrap=self.broker.tls,
            group=self.group,
            group_type="share",
            # a record is given back for each further try
            hold_retries_ms=0,
            security_protocol="SASL_SSL",
            ssl_cafile=self.broker.cafile,
            sasl_mechanism="SCRAM-SHA-256",
            sasl_plain_username=self.user,
            sasl_plain_password=PASSWORD,
        )

    def count_letters(self) -> int:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.broker.plain, "group.id": "letters"})
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(self.letters, 0), 30)[1])
        finally:
            consumer.close()


@pytest.mark.parametrize(
    ("right", "limit", "letters"),
    [(None, USUAL, 0), ("group", LIMIT, 1), ("cluster", USUAL, 0)],
    ids=["may read no configs", "may read those of the group", "may read those of brokers"],
)
async def test_the_last_delivery_is_for_the_letter_where_the_limit_of_the_group_may_be_read(
    secured: Secured, right: str | None, limit: int, letters: int, caplog: pytest.LogCaptureFixture
) -> None:
    scene = await asyncio.to_thread(Scene, secured)
    if right == "group":
        scene.may(ResourceType.GROUP, scene.group, AclOperation.DESCRIBE_CONFIGS)
    elif right == "cluster":
        scene.may(ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS)
    calls: Counter[int] = Counter()
    service = scene.make()

    @service.handler(scene.topic, retry=Retry(attempts=10), dead_letter=scene.letters)
    async def fail(record: Record) -> None:
        calls[int(record.value or b"")] += 1
        raise ValueError

    with caplog.at_level(logging.WARNING, "kohort.service"):
        async with serving(service):
            await until(lambda: calls[1] == LIMIT - letters)
            share = service._engine._share if service._engine is not None else None
            assert share is not None
            assert share.deliveries.limit == limit
            if letters:
                await until(lambda: service._engine is not None and service._engine.finished == 1)
    warned = [line for line in caplog.records if "share.delivery.count.limit is less" in line.getMessage()]
    assert len(warned) == (right is None)
    assert await asyncio.to_thread(scene.count_letters) == letters
