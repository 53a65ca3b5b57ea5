"""Producers that may not do what they try, kind by kind: what they are told, and that they go on.

On kohort, and with ``--bootstrap`` on an Apache Kafka with access rules.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kohort.producer import Producer, TransactionAbortableError
from kohort.producer import transactions as transactions_module
from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from tests.broker.authorizer.conftest import eventually
from tests.broker.authorizer.test_clients import allowed, rule
from tests.producer.reading import read_values
from tests.secured import PASSWORD, Secured

pytestmark = [pytest.mark.clients, pytest.mark.kafka, pytest.mark.slow(2)]

E = ErrorCode
TOPIC, GROUP, NAME = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
KINDS = {"topic": TOPIC, "group": GROUP, "name": NAME}
OPERATIONS = {"read": READ, "write": WRITE, "describe": DESCRIBE}


class World:
    """A user of the test's own, and two topics: it may write to ``free`` from the start."""

    def __init__(self, broker: Secured) -> None:
        self.broker = broker
        self.admin = AdminClient({"bootstrap.servers": broker.plain})
        unique = uuid.uuid4().hex[:8]
        self.user, self.group, self.name = f"writer-{unique}", f"billing-{unique}", f"tx-{unique}"
        self.free, self.topic = f"free-{unique}", f"kept-{unique}"
        broker.create_user(self.user)
        for made in self.admin.create_topics(
            [NewTopic(name, 1) for name in (self.free, self.topic)]
        ).values():
            made.result(30)

    def may(self, *rights: str) -> None:
        """Give rights: ``write topic``, ``read group``, ``write name`` (the transactional id)."""
        for right in rights:
            operation, kind = right.split()
            allowed(self.admin, rule(self.user, KINDS[kind], getattr(self, kind), OPERATIONS[operation]))

    def may_write_to(self, topic: str) -> None:
        allowed(self.admin, rule(self.user, TOPIC, topic, WRITE))

    def may_no_longer(self, right: str) -> None:
        operation, kind = right.split()
        wanted = AclBindingFilter(
            KINDS[kind],
            getattr(self, kind),
            ResourcePatternType.LITERAL,
            f"User:{self.user}",
            None,
            OPERATIONS[operation],
            AclPermissionType.ANY,
        )
        for removed in self.admin.delete_acls([wanted]).values():
            removed.result(30)
        eventually("the rule is gone", lambda: not self.admin.describe_acls(wanted).result(30))

    def producer(self, **settings: Any) -> Producer:
        return Producer(
            **{
                "bootstrap": self.broker.sasl,
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "SCRAM-SHA-256",
                "sasl_plain_username": self.user,
                "sasl_plain_password": PASSWORD,
                "linger_ms": 0,
                **settings,
            }
        )


@pytest.fixture
def world(secured: Secured) -> World:
    return World(secured)


@pytest.fixture(params=["implicit", "announced"])
def transactional(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, world: World
) -> Callable[..., Producer]:
    """A transactional producer, in either protocol of transactions."""
    if request.param == "announced":
        monkeypatch.setattr(transactions_module, "_IMPLICIT_FROM", 99)
    return partial(world.producer, transactional_id=world.name)


def refused(code: ErrorCode) -> Any:
    return pytest.raises(KafkaError, match=code.name)


async def transact(producer: Producer, *topics: str, offsets_of: str = "", group: str = "") -> None:
    """One transaction: a record to each topic, perhaps an offset of a group."""
    async with producer.transaction():
        for topic in topics:
            await producer.send(topic, b"aborted")
        if offsets_of:
            await producer.send_offsets({TopicPartition(offsets_of, 0): 1}, group)


async def test_who_may_write_nowhere_gets_no_producer_id(world: World) -> None:
    world.may("describe topic")
    async with world.producer() as producer:
        with refused(E.CLUSTER_AUTHORIZATION_FAILED):
            await producer.send_and_wait(world.topic, b"x")
        with refused(E.CLUSTER_AUTHORIZATION_FAILED):
            await producer.send(world.topic, b"x")
    assert await read_values(world.broker.plain, world.topic) == []


async def test_who_may_not_write_to_a_topic_is_told_by_the_future_and_writes_to_others(world: World) -> None:
    world.may("describe topic")
    world.may_write_to(world.free)
    async with world.producer() as producer:
        for number in range(3):
            with refused(E.TOPIC_AUTHORIZATION_FAILED):
                await producer.send_and_wait(world.topic, b"x")
            assert (await producer.send_and_wait(world.free, b"%d" % number)).offset == number
    assert await read_values(world.broker.plain, world.topic) == []


async def test_who_may_not_see_a_topic_is_told_at_once(world: World) -> None:
    world.may_write_to(world.free)
    async with world.producer(max_block_ms=600_000) as producer:
        with refused(E.TOPIC_AUTHORIZATION_FAILED):
            await producer.send(world.topic, b"x")
        await producer.send_and_wait(world.free, b"y")


async def test_rights_that_are_taken_and_given_back_lose_and_double_nothing(world: World) -> None:
    world.may("write topic", "describe topic")
    world.may_write_to(world.free)
    async with world.producer() as producer:
        await producer.send_and_wait(world.topic, b"0")
        world.may_no_longer("write topic")

        async def is_refused() -> bool:
            sending = producer.send_and_wait(world.topic, b"early")
            (end,) = await asyncio.gather(sending, return_exceptions=True)
            return isinstance(end, KafkaError) and end.code is E.TOPIC_AUTHORIZATION_FAILED

        while not await is_refused():
            pass  # Apache Kafka answers before all of it knows
        ends = [await producer.send(world.topic, b"late") for _ in range(5)]
        await producer.flush()
        assert [end.exception() is None for end in ends] == [False] * 5
        world.may("write topic")
        while await is_refused():
            pass
        await producer.send_and_wait(world.topic, b"1")
    found = await read_values(world.broker.plain, world.topic)
    assert [value for value in found if value != b"early"] == [b"0", b"1"]


async def test_without_a_right_to_the_transactional_id_no_producer_starts(
    world: World, transactional: Callable[..., Producer]
) -> None:
    world.may("write topic")
    producer = transactional()
    with refused(E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
        await producer.start()
    world.may("write name")
    async with transactional() as producer, producer.transaction():
        await producer.send(world.topic, b"x")
    assert await read_values(world.broker.plain, world.topic) == [b"x"]


async def test_in_a_transaction_a_topic_that_may_not_be_written_to_means_an_abort(
    world: World, transactional: Callable[..., Producer]
) -> None:
    world.may("write name", "describe topic")
    world.may_write_to(world.free)
    async with transactional() as producer:
        with pytest.raises(TransactionAbortableError, match="TOPIC_AUTHORIZATION_FAILED"):
            await transact(producer, world.free, world.topic)
        async with producer.transaction():
            await producer.send(world.free, b"kept")
    assert await read_values(world.broker.plain, world.free) == [b"kept"]
    assert await read_values(world.broker.plain, world.topic) == []


@pytest.mark.parametrize("records", [True, False], ids=["records too", "offsets alone"])
@pytest.mark.parametrize(
    ("right", "code"),
    [("read topic", E.GROUP_AUTHORIZATION_FAILED), ("read group", E.TOPIC_AUTHORIZATION_FAILED)],
)
async def test_offsets_that_may_not_be_committed_mean_an_abort(
    world: World, transactional: Callable[..., Producer], right: str, code: ErrorCode, records: bool
) -> None:
    world.may("write name", right)
    world.may_write_to(world.free)
    topics = [world.free] if records else []
    async with transactional() as producer:
        with pytest.raises(TransactionAbortableError, match=code.name):
            await transact(producer, *topics, offsets_of=world.topic, group=world.group)
        world.may("read group", "read topic")
        async with producer.transaction():
            await producer.send(world.free, b"kept")
            await producer.send_offsets({TopicPartition(world.topic, 0): 1}, world.group)
    assert await read_values(world.broker.plain, world.free) == [b"kept"]


async def test_a_producer_whose_transactional_id_is_taken_away_ends_and_the_next_aborts_what_it_had(
    world: World, transactional: Callable[..., Producer]
) -> None:
    world.may("write name")
    world.may_write_to(world.free)
    async with transactional() as producer:
        producer.begin_transaction()
        await producer.send_and_wait(world.free, b"aborted")
        world.may_no_longer("write name")
        with refused(E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
            await producer.commit_transaction()
        with refused(E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
            producer.begin_transaction()
    world.may("write name")
    async with transactional() as producer, producer.transaction():
        await producer.send(world.free, b"kept")
    assert await read_values(world.broker.plain, world.free) == [b"kept"]
