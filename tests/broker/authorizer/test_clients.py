"""Other clients and Kafka's own tools with access rules: making them, and being refused by them.

Users come over TLS and prove who they are by SCRAM.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as PythonResourceType
from kafka.errors import (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)
from kafka.errors import (
    KafkaError as PythonKafkaError,
)

from kohort.consumer import AsyncGroupConsumer
from kohort.protocol import KafkaError as KohortKafkaError
from kohort.protocol import TopicPartition
from tests.broker.authorizer.conftest import PASSWORD, WAIT_S, eventually
from tests.broker.authorizer.place import Place
from tests.kafka_python import group_consumer

pytestmark = [pytest.mark.clients, pytest.mark.kafka]


def allowed(admin: AdminClient, *bindings: AclBinding) -> None:
    """Make rules, and wait until they are in force."""
    for future in admin.create_acls(list(bindings)).values():
        future.result(WAIT_S)
    for binding in bindings:
        wanted = AclBindingFilter(
            binding.restype,
            binding.name,
            binding.resource_pattern_type,
            binding.principal,
            binding.host,
            binding.operation,
            binding.permission_type,
        )
        eventually(str(binding), partial(_found, admin, wanted))


def _found(admin: AdminClient, wanted: AclBindingFilter) -> bool:
    return bool(admin.describe_acls(wanted).result(WAIT_S))


def rule(user: str, resource: ResourceType, name: str, operation: AclOperation, **more: Any) -> AclBinding:
    return AclBinding(
        resource,
        name,
        more.get("pattern", ResourcePatternType.LITERAL),
        f"User:{user}",
        "*",
        operation,
        more.get("permission", AclPermissionType.ALLOW),
    )


def as_user(place: Place, user: str) -> dict[str, str]:
    """How confluent-kafka connects as a user."""
    return {
        "bootstrap.servers": place.scram,
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": place.certificates.cafile,
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }


def python_as_user(place: Place, user: str) -> dict[str, Any]:
    """How kafka-python connects as a user."""
    return {
        "bootstrap_servers": place.scram,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": place.certificates.cafile,
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": user,
        "sasl_plain_password": PASSWORD,
    }


def code_of(call: Callable[[], Any]) -> int:
    with pytest.raises(KafkaException) as caught:
        call()
    code: int = caught.value.args[0].code()
    return code


def test_confluent_kafka_makes_finds_and_removes_rules(admin: AdminClient, name: str, user: str) -> None:
    made = [
        rule(user, ResourceType.TOPIC, name, AclOperation.READ),
        rule(user, ResourceType.GROUP, name, AclOperation.ALL, pattern=ResourcePatternType.PREFIXED),
        rule(user, ResourceType.TOPIC, "*", AclOperation.WRITE, permission=AclPermissionType.DENY),
        rule(user, ResourceType.TRANSACTIONAL_ID, name, AclOperation.DESCRIBE),
        rule(user, ResourceType.BROKER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE),
    ]
    allowed(admin, *made)
    mine = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        f"User:{user}",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert set(admin.describe_acls(mine).result(WAIT_S)) == set(made)
    taking_in = AclBindingFilter(
        ResourceType.TOPIC,
        name,
        ResourcePatternType.MATCH,
        f"User:{user}",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert set(admin.describe_acls(taking_in).result(WAIT_S)) == {made[0], made[2]}
    [removed] = admin.delete_acls([mine]).values()
    assert set(removed.result(WAIT_S)) == set(made)
    eventually("they are gone", lambda: not admin.describe_acls(mine).result(WAIT_S))


def test_kafka_python_makes_finds_and_removes_rules(place: Place, name: str, user: str) -> None:
    made = ACL(
        f"User:{user}",
        "10.0.0.1",
        ACLOperation.ALTER_CONFIGS,
        ACLPermissionType.ALLOW,
        ResourcePattern(PythonResourceType.TOPIC, name, ACLResourcePatternType.PREFIXED),
    )
    wanted = ACLFilter(
        f"User:{user}",
        None,
        ACLOperation.ANY,
        ACLPermissionType.ANY,
        ResourcePatternFilter(PythonResourceType.TOPIC, f"{name}-and-more", ACLResourcePatternType.MATCH),
    )
    with KafkaAdminClient(bootstrap_servers=place.admin) as admin:
        assert admin.create_acls([made])["succeeded"] == [made]
        found, _ = eventually("it is there", lambda: (answer := admin.describe_acls(wanted))[0] and answer)
        assert found == [made]
        [(_, matching, _)] = admin.delete_acls([wanted])
        assert matching == [made]
        eventually("it is gone", lambda: not admin.describe_acls(wanted)[0])


def test_who_may_not_make_rules_is_told_so(place: Place, user: str, name: str) -> None:
    stranger = AdminClient(as_user(place, user))
    [refused] = stranger.create_acls([rule(user, ResourceType.TOPIC, name, AclOperation.READ)]).values()
    assert code_of(lambda: refused.result(WAIT_S)) == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_confluent_kafka_is_refused_until_rules_allow(
    place: Place, admin: AdminClient, name: str, user: str
) -> None:
    [made] = admin.create_topics([NewTopic(name, 1, 1)]).values()
    made.result(WAIT_S)
    assert _produced(place, user, name) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allowed(admin, rule(user, ResourceType.TOPIC, name, AclOperation.WRITE))
    assert eventually("it is written", lambda: _produced(place, user, name) is None)

    assert _consumed(place, user, name) == KafkaError.GROUP_AUTHORIZATION_FAILED
    prefix = ResourcePatternType.PREFIXED
    allowed(admin, rule(user, ResourceType.GROUP, name[:-1], AclOperation.READ, pattern=prefix))
    assert _consumed(place, user, name) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allowed(admin, rule(user, ResourceType.TOPIC, name, AclOperation.READ))
    assert _consumed(place, user, name) is None
    deny = AclPermissionType.DENY
    allowed(admin, rule("*", ResourceType.TOPIC, name, AclOperation.READ, permission=deny))
    assert _consumed(place, user, name) == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("policy", ["latest", "earliest"])
async def test_a_topic_that_may_be_described_and_not_read_is_raised_by_polls_until_it_may(
    place: Place, admin: AdminClient, name: str, user: str, policy: Literal["latest", "earliest"]
) -> None:
    """Under latest the refusal is that of the commit of where the group begins."""
    [made] = admin.create_topics([NewTopic(name, 1, 1)]).values()
    made.result(WAIT_S)
    allowed(
        admin,
        rule(user, ResourceType.GROUP, name, AclOperation.READ),
        rule(user, ResourceType.TOPIC, name, AclOperation.DESCRIBE),
    )
    consumer = AsyncGroupConsumer(
        name,
        group=name,
        bootstrap=place.scram,
        security_protocol="SASL_SSL",
        ssl_cafile=place.certificates.cafile,
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username=user,
        sasl_plain_password=PASSWORD,
        auto_offset_reset=policy,
    )
    async with consumer:
        with pytest.raises(KohortKafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            await consumer.getmany(timeout_ms=WAIT_S * 1_000)
        allowed(admin, rule(user, ResourceType.TOPIC, name, AclOperation.READ))
        async with asyncio.timeout(WAIT_S):
            while consumer.position(TopicPartition(name, 0)) is None:
                with suppress(KohortKafkaError):  # the rule may not be in force yet
                    await consumer.getmany(timeout_ms=100)


def _produced(place: Place, user: str, topic: str) -> int | None:
    """The error of a Produce; None if there was none."""
    errors: list[Any] = []
    producer = Producer(as_user(place, user) | {"enable.idempotence": True})
    producer.produce(topic, b"value", on_delivery=lambda error, _message: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    return None if errors[0] is None else int(errors[0].code())


def _consumed(place: Place, user: str, name: str) -> int | None:
    """The first error of a member of the group of this name that reads the topic of this name, or None."""
    consumer = Consumer(
        as_user(place, user)
        | {"group.id": name, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe([name])
    try:
        message = eventually("a record or an error", lambda: consumer.poll(1))
        if message.error() is None:
            consumer.commit(message, asynchronous=False)
            return None
        return int(message.error().code())
    finally:
        consumer.close()


def test_kafka_python_is_refused_until_rules_allow(
    place: Place, admin: AdminClient, name: str, user: str
) -> None:
    [made] = admin.create_topics([NewTopic(name, 1, 1)]).values()
    made.result(WAIT_S)
    with pytest.raises(PythonKafkaError):
        _python_produced(place, user, name)
    allowed(
        admin,
        rule(user, ResourceType.TOPIC, name, AclOperation.ALL),
        rule(user, ResourceType.BROKER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE),
    )
    assert _python_produced(place, user, name) == 0
    with pytest.raises(GroupAuthorizationFailedError):
        _python_consumed(place, user, name)
    allowed(admin, rule(user, ResourceType.GROUP, "*", AclOperation.READ))
    assert _python_consumed(place, user, name) == 1
    deny = AclPermissionType.DENY
    allowed(admin, rule(user, ResourceType.TOPIC, name, AclOperation.READ, permission=deny))
    with pytest.raises(TopicAuthorizationFailedError):
        _python_consumed(place, user, name)


def _python_produced(place: Place, user: str, topic: str) -> int:
    producer = KafkaProducer(**python_as_user(place, user), max_block_ms=5_000)
    try:
        return int(producer.send(topic, b"value").get(WAIT_S).offset)
    finally:
        producer.close(timeout=5)


def _python_consumed(place: Place, user: str, name: str) -> int:
    consumer = group_consumer(
        name,
        name,
        **python_as_user(place, user),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        return len(eventually("records", lambda: consumer.poll(1_000)))
    finally:
        consumer.close(autocommit=False)


def test_what_may_not_be_seen_is_not_in_lists(place: Place, admin: AdminClient, name: str, user: str) -> None:
    for future in admin.create_topics([NewTopic(f"{name}-{n}", 1, 1) for n in ("a", "b")]).values():
        future.result(WAIT_S)
    eventually(
        "both are there", lambda: {f"{name}-a", f"{name}-b"} <= set(admin.list_topics(timeout=WAIT_S).topics)
    )
    allowed(admin, rule(user, ResourceType.TOPIC, f"{name}-a", AclOperation.DESCRIBE))
    seen = AdminClient(as_user(place, user)).list_topics(timeout=WAIT_S).topics
    assert set(seen) == {f"{name}-a"}
