"""Our consumer with TLS and SASL, on kohort and on an Apache Kafka."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer, AuthenticationError, Cluster
from tests.consumer.conftest import QUICK
from tests.consumer.members import read
from tests.secured import Secured

pytestmark = pytest.mark.kafka

_PASSWORD = {"sasl_plain_username": "me", "sasl_plain_password": "secret"}


@pytest.mark.parametrize(
    ("security_protocol", "mechanism", "credentials"),
    [
        ("SASL_PLAINTEXT", "SCRAM-SHA-512", _PASSWORD),
        ("SASL_SSL", "PLAIN", _PASSWORD),
        ("SASL_SSL", "OAUTHBEARER", {}),
    ],
)
async def test_a_consumer_reads_and_commits_beyond_the_end_of_its_authentication(
    secured: Secured, security_protocol: str, mechanism: str, credentials: dict[str, Any]
) -> None:
    from confluent_kafka import Producer

    topic = f"{security_protocol}-{mechanism}"
    async with Cluster(secured.plain) as cluster:
        await cluster.create_topics({topic: 1})
    producer = Producer({"bootstrap.servers": secured.plain})
    settings = {
        **QUICK,
        "bootstrap": secured.tls if security_protocol == "SASL_SSL" else secured.sasl,
        "group": topic,
        "security_protocol": security_protocol,
        "sasl_mechanism": mechanism,
        **({"ssl_cafile": secured.cafile} if security_protocol == "SASL_SSL" else {}),
        **credentials,
    }
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = lambda: secured.issuer.token(sub="me", lifetime_s=4)
    async with AsyncGroupConsumer(topic, **settings) as consumer:
        generation = -1
        # a token's lifetime and more
        deadline = time.monotonic() + (5 if mechanism == "OAUTHBEARER" else 1)
        while time.monotonic() < deadline:
            producer.produce(topic, b"x")
            producer.flush(30)
            consumer.done_all(await read(consumer, 1))
            await consumer.commit()
            assert generation in (-1, consumer.state.generation), "nothing of this is a reason to rebalance"
            generation = consumer.state.generation


async def test_a_wrong_password_is_told_at_once(secured: Secured) -> None:
    settings = {
        **QUICK,
        "bootstrap": secured.sasl,
        "group": "billing",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": "wrong",
    }
    with pytest.raises(AuthenticationError, match="refused"):
        await AsyncGroupConsumer("orders", **settings).start()
