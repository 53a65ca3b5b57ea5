"""Clients of other makes over TLS and SASL: let in, kept out, allowed and denied, on both brokers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import aiokafka
import aiokafka.abc
import aiokafka.errors
import aiokafka.helpers
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.errors
import pytest
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.broker.apis.test_client_quotas import EXACT, alter, describe
from tests.broker.authorizer.conftest import eventually
from tests.broker.wire import Wire
from tests.clients.java import TOPIC_COMMAND, ToolServer
from tests.kafka_python import group_consumer
from tests.secured import PASSWORD, Secured

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

ACLS, CONFIGS = "org.apache.kafka.tools.AclCommand", "kafka.admin.ConfigCommand"
DENIED = confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED


class Who(NamedTuple):
    """How a client logs in."""

    user: str = "alice"
    password: str = PASSWORD
    mechanism: str = "SCRAM-SHA-256"


ALICE, BOB = Who(), Who("bob")
BY_TOKEN = Who(mechanism="OAUTHBEARER")


class DeniedError(Exception):
    """The client was told that it may not."""


class KafkaPython:
    @staticmethod
    def settings(secured: Secured, who: Who) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bootstrap_servers": secured.tls,
            "security_protocol": "SASL_SSL",
            "ssl_cafile": secured.cafile,
            "sasl_mechanism": who.mechanism,
            "sasl_plain_username": who.user,
            "sasl_plain_password": who.password,
        }
        if who.mechanism == "OAUTHBEARER":

            class Provider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python is not typed
                def token(self) -> str:
                    return secured.issuer.token(sub=who.user)

                def extensions(self) -> dict[str, str]:
                    return {}

            found["sasl_oauth_token_provider"] = Provider()
        return found

    def send(self, secured: Secured, who: Who, topic: str, value: bytes) -> None:
        producer = kafka.KafkaProducer(**self.settings(secured, who), max_block_ms=10_000)
        try:
            producer.send(topic, value).get(20)
        except kafka.errors.TopicAuthorizationFailedError:
            raise DeniedError from None
        finally:
            producer.close(timeout=2)

    def read(self, secured: Secured, who: Who, topic: str, group: str) -> bytes:
        consumer = group_consumer(topic, group, auto_offset_reset="earliest", **self.settings(secured, who))
        try:
            value: bytes = next(consumer).value
            consumer.commit()
            return value
        finally:
            consumer.close()


class Confluent:
    @staticmethod
    def settings(secured: Secured, who: Who) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bootstrap.servers": secured.tls,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": secured.cafile,
            "sasl.mechanism": who.mechanism,
            "sasl.username": who.user,
            "sasl.password": who.password,
            "log_level": 0,
        }
        if who.mechanism == "OAUTHBEARER":
            found["oauth_cb"] = lambda _: (secured.issuer.token(sub=who.user), time.time() + 300)
        return found

    def send(self, secured: Secured, who: Who, topic: str, value: bytes) -> None:
        failed: list[Any] = []
        producer = confluent_kafka.Producer({**self.settings(secured, who), "message.timeout.ms": 20_000})
        producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error))
        producer.flush(30)
        (error,) = failed
        if error is not None:
            raise DeniedError if error.code() == DENIED else confluent_kafka.KafkaException(error)

    def read(self, secured: Secured, who: Who, topic: str, group: str) -> bytes:
        consumer = confluent_kafka.Consumer(
            {**self.settings(secured, who), "group.id": group, "auto.offset.reset": "earliest"}
        )
        try:
            consumer.subscribe([topic])
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None, message.error()
            consumer.commit(asynchronous=False)
            return bytes(message.value())
        finally:
            consumer.close()


class Aiokafka:
    @staticmethod
    def settings(secured: Secured, who: Who) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bootstrap_servers": secured.tls,
            "security_protocol": "SASL_SSL",
            "ssl_context": aiokafka.helpers.create_ssl_context(cafile=secured.cafile),
            "sasl_mechanism": who.mechanism,
            "sasl_plain_username": who.user,
            "sasl_plain_password": who.password,
        }
        if who.mechanism == "OAUTHBEARER":

            class Provider(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]  # nor is aiokafka
                async def token(self) -> str:
                    return secured.issuer.token(sub=who.user)

            found["sasl_oauth_token_provider"] = Provider()
        return found

    def send(self, secured: Secured, who: Who, topic: str, value: bytes) -> None:
        async def send() -> None:
            async with aiokafka.AIOKafkaProducer(**self.settings(secured, who)) as producer:
                await producer.send_and_wait(topic, value)

        try:
            asyncio.run(send())
        except aiokafka.errors.TopicAuthorizationFailedError:
            raise DeniedError from None

    def read(self, secured: Secured, who: Who, topic: str, group: str) -> bytes:
        async def read() -> bytes:
            settings = {**self.settings(secured, who), "group_id": group, "auto_offset_reset": "earliest"}
            async with aiokafka.AIOKafkaConsumer(topic, **settings) as consumer:
                record = await asyncio.wait_for(consumer.getone(), 30)
                await consumer.commit()
                return bytes(record.value)

        return asyncio.run(read())


CLIENTS: dict[str, Any] = {
    "kafka-python": KafkaPython(),
    "confluent-kafka": Confluent(),
    "aiokafka": Aiokafka(),
}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Any:
    return CLIENTS[request.param]


@pytest.fixture
def orders(secured: Secured, topic: Callable[[str], str]) -> Iterator[str]:
    """A topic that alice may use with any group, and nobody else."""
    forms = confluent_kafka.admin
    name = topic("orders")
    admin = forms.AdminClient({"bootstrap.servers": secured.plain})
    admin.create_topics([forms.NewTopic(name, 1, 1)])[name].result(20)
    rules = [
        (
            kind,
            what,
            forms.ResourcePatternType.LITERAL,
            "User:alice",
            "*",
            forms.AclOperation.ALL,
            forms.AclPermissionType.ALLOW,
        )
        for kind, what in ((forms.ResourceType.TOPIC, name), (forms.ResourceType.GROUP, "*"))
    ]
    for done in admin.create_acls([forms.AclBinding(*rule) for rule in rules]).values():
        done.result(20)
    yield name
    # other tests have this broker too, and a rule about every group is about theirs
    for done in admin.delete_acls([forms.AclBindingFilter(*rule) for rule in rules]).values():
        done.result(20)


def test_who_is_allowed_sends_reads_and_commits(
    secured: Secured, client: Any, orders: str, group: Callable[[str], str]
) -> None:
    client.send(secured, ALICE, orders, b"coffee")
    assert client.read(secured, ALICE, orders, group("billing")) == b"coffee"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_every_mechanism(secured: Secured, client: Any, orders: str, mechanism: str) -> None:
    client.send(secured, Who(mechanism=mechanism), orders, b"tea")


def test_who_is_let_in_and_not_allowed_is_denied(secured: Secured, client: Any, orders: str) -> None:
    with pytest.raises(DeniedError):
        client.send(secured, BOB, orders, b"coffee")
    CLIENTS["aiokafka"].send(secured, ALICE, orders, b"of alice alone")


def test_a_wrong_password_is_told(secured: Secured) -> None:
    wrong = Who(password="wrong")
    # it tries again and again, whatever it is told
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaAdminClient(**KafkaPython.settings(secured, wrong), bootstrap_timeout_ms=2_000)
    with pytest.raises(aiokafka.errors.KafkaError):
        CLIENTS["aiokafka"].send(secured, wrong, "orders", b"")
    told: list[Any] = []
    admin = confluent_kafka.admin.AdminClient({**Confluent.settings(secured, wrong), "error_cb": told.append})
    deadline = time.monotonic() + 30
    while not told and time.monotonic() < deadline:
        admin.poll(0.1)
    assert told[0].code() == confluent_kafka.KafkaError._AUTHENTICATION


def test_a_certificate_is_a_name(secured: Secured, orders: str) -> None:
    certificates = secured.certificates
    for user, allowed in (("Alice", True), ("Carol", False)):
        settings = {
            "bootstrap.servers": secured.cert,
            "security.protocol": "SSL",
            "ssl.ca.location": secured.cafile,
            "ssl.certificate.location": certificates.client(user),
            "ssl.key.location": certificates.client(user),
            "log_level": 0,
        }
        told = confluent_kafka.admin.AdminClient(settings).list_topics(orders, timeout=20).topics[orders]
        assert (told.error is None) == allowed, told.error


def test_a_users_quota_is_told_to_each_of_its_clients_and_to_nobody_else(
    secured: Secured, orders: str
) -> None:
    quota: dict[str, float | None] = {"producer_byte_rate": 50_000.0}
    with Wire(secured.plain) as admin:
        assert alter(admin, ([("user", "alice")], quota)) == [(0, None)]
        try:
            # an Apache Kafka's broker hears of it from its controller
            eventually("the quota", lambda: describe(admin, ("user", EXACT, "alice")))
            assert describe(admin, ("user", EXACT, "alice")) == {(("user", "alice"),): quota}
            assert _told_by_confluent(secured, ALICE, orders) > 0
            assert _told_by_kafka_python(secured, ALICE, orders) > 0
            assert _told_by_confluent(secured, Who("me"), orders, sends=8) == 0
        finally:
            alter(admin, ([("user", "alice")], dict.fromkeys(quota)))


#: Ten of these are more than what an Apache Kafka lets a new client have before it counts.
LARGE = b"x" * 200_000


def _told_by_confluent(secured: Secured, who: Who, topic: str, sends: int = 100) -> float:
    """The first delay, in seconds, that a producer was told: 0.0 if none after so many records."""
    told: list[Any] = []
    settings = {**Confluent.settings(secured, who), "throttle_cb": told.append}
    producer = confluent_kafka.Producer(settings)
    for _ in range(sends):
        producer.produce(topic, LARGE)
        assert producer.flush(120) == 0
        if told:
            return float(told[0].throttle_time)
    return 0.0


def _told_by_kafka_python(secured: Secured, who: Who, topic: str) -> float:
    producer = kafka.KafkaProducer(**KafkaPython.settings(secured, who), max_block_ms=60_000)
    try:
        for _ in range(100):
            producer.send(topic, LARGE).get(120)
            groups = producer.metrics().values()
            longest = max(group.get("throttle-time-max", 0.0) for group in groups)
            if 0 < longest < float("inf"):
                return float(longest) / 1000
    finally:
        producer.close(timeout=2)
    return 0.0


# Java


@pytest.fixture(scope="module")
def java(secured: Secured) -> Iterator[ToolServer]:
    with ToolServer(secured.tls) as server:
        yield server


@pytest.fixture(scope="module")
def config_of(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """``config_of("alice")``: a file for ``--command-config``."""
    folder = tmp_path_factory.mktemp("java")

    def write(user: str, password: str = PASSWORD) -> str:
        path = folder / f"{user}-{password}.properties"
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        path.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={secured.cafile}\n"
            f'sasl.jaas.config={module} required username="{user}" password="{password}";\n'
        )
        return str(path)

    return write


def test_javas_tools_make_users_and_rules_that_count_at_once(
    secured: Secured,
    java: ToolServer,
    config_of: Callable[..., str],
    orders: str,
    group: Callable[[str], str],
) -> None:
    me = ("--command-config", config_of("me"))
    user = group("dora")
    java(CONFIGS, *me, "--alter", "--entity-type", "users", "--entity-name", user, "--add-config",
         "SCRAM-SHA-512=[iterations=8192,password=pw]")  # fmt: skip
    admin = confluent_kafka.admin.AdminClient(Confluent.settings(secured, Who("me")))
    (credential,) = admin.describe_user_scram_credentials([user])[user].result(20).scram_credential_infos
    assert (credential.mechanism.name, credential.iterations) == ("SCRAM_SHA_512", 8192)
    dora = ("--command-config", config_of(user, "pw"))
    java(
        ACLS, *me, "--add", "--allow-principal", f"User:{user}", "--operation", "Describe", "--topic", orders
    )
    assert orders in java(TOPIC_COMMAND, *dora, "--list")
    refused = java.run(TOPIC_COMMAND, *dora, "--delete", "--topic", orders)
    assert "TopicAuthorizationException" in refused.out + refused.errors
    wrong = java.run(TOPIC_COMMAND, "--command-config", config_of(user, "wrong"), "--list")
    assert "SaslAuthenticationException" in wrong.out + wrong.errors


def test_javas_tool_sets_quotas_and_settings_of_a_listener_that_are_told(
    secured: Secured, java: ToolServer, config_of: Callable[..., str], group: Callable[[str], str]
) -> None:
    me = ("--command-config", config_of("me"))
    user = ("--entity-type", "users", "--entity-name", group("erik"))
    quotas = ("producer_byte_rate=12345", "request_percentage=7")
    java(CONFIGS, *me, "--alter", *user, "--add-config", ",".join(quotas))
    told = java(CONFIGS, *me, "--describe", *user)
    assert all(f"{quota}.0" in told for quota in quotas)
    java(CONFIGS, *me, "--alter", *user, "--delete-config", "producer_byte_rate,request_percentage")
    assert "rate" not in java(CONFIGS, *me, "--describe", *user)

    node = confluent_kafka.admin.AdminClient({"bootstrap.servers": secured.plain}).list_topics(timeout=20)
    (number,) = node.brokers
    broker = ("--entity-type", "brokers", "--entity-name", str(number))
    limit = "listener.name.cert.max.connections"
    java(CONFIGS, *me, "--alter", *broker, "--add-config", f"{limit}=77")
    assert f"{limit}=77" in java(CONFIGS, *me, "--describe", *broker)
    java(CONFIGS, *me, "--alter", *broker, "--delete-config", limit)
    assert limit not in java(CONFIGS, *me, "--describe", *broker)
