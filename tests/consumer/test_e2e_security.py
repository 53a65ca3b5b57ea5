"""TLS and SASL against an Apache Kafka of the test's own; run by ``make test-kafka`` alone."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from kohort.consumer import AsyncGroupConsumer, AuthenticationError, Cluster
from tests.conftest import ROOT
from tests.consumer.conftest import QUICK
from tests.consumer.members import read

pytestmark = pytest.mark.kafka

_MODULES = "org.apache.kafka.common.security"


class _Secured:
    """Ports of the broker's listeners, and its authority's certificate."""

    def __init__(self, plain: int, folder: Path) -> None:
        self.plain, self.sasl, self.tls = plain, plain + 2, plain + 3
        self.cafile = str(folder / "ca.pem")


@pytest.fixture(scope="module")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Secured]:
    if request.config.getoption("--bootstrap") is None:
        pytest.skip("starts an Apache Kafka: run by make test-kafka")
    folder = tmp_path_factory.mktemp("secured")
    broker = _Secured(_free_ports(), folder)
    script = str(ROOT / "scripts" / "apache-kafka")
    subprocess.run([script, "start", str(broker.plain), *_settings(broker, folder)], check=True, timeout=120)
    try:
        _create_scram_user(broker)
        yield broker
    finally:
        subprocess.run([script, "stop", str(broker.plain)], check=True, timeout=60)


def _free_ports() -> int:
    """The first of four ports in a row that nobody has."""
    for first in range(21_192, 22_000, 4):
        try:
            for port in range(first, first + 4):
                with socket.create_server(("127.0.0.1", port)):
                    pass
        except OSError:
            continue
        return first
    raise AssertionError("no four free ports in a row")


def _settings(broker: _Secured, folder: Path) -> list[str]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(broker.cafile)
    keystore = folder / "broker.pem"
    keystore.write_bytes(_as_pkcs8(authority.issue_cert("127.0.0.1")))
    names = ("PLAINTEXT", broker.plain), ("SASL", broker.sasl), ("TLS", broker.tls)
    advertised = ",".join(f"{name}://127.0.0.1:{port}" for name, port in names)
    jaas = {
        "plain": f'{_MODULES}.plain.PlainLoginModule required user_me="secret";',
        "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{_MODULES}.scram.ScramLoginModule required;",
        "oauthbearer": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
    }
    return [
        f"listeners={advertised},CONTROLLER://127.0.0.1:{broker.plain + 1}",
        f"advertised.listeners={advertised}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL",
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "connections.max.reauth.ms=3000",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={keystore}",
        *(
            f"listener.name.{listener}.{mechanism}.sasl.jaas.config={module}"
            for listener in ("sasl", "tls")
            for mechanism, module in jaas.items()
        ),
        *(
            f"listener.name.{listener}.oauthbearer.sasl.server.callback.handler.class="
            f"{_MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
            for listener in ("sasl", "tls")
        ),
    ]


def _as_pkcs8(issued: trustme.LeafCert) -> bytes:
    from cryptography.hazmat.primitives import serialization as forms

    key = forms.load_pem_private_key(issued.private_key_pem.bytes(), None)
    pem = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    return pem + b"".join(blob.bytes() for blob in issued.cert_chain_pems)


def _create_scram_user(broker: _Secured) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.plain}"})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        upsertion = UserScramCredentialUpsertion("me", ScramCredentialInfo(mechanism, 4096), b"secret")
        for done in admin.alter_user_scram_credentials([upsertion]).values():
            done.result(20)


def _token() -> str:
    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    now = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': 'me', 'iat': now, 'exp': now + 300})}."


_PASSWORD = {"sasl_plain_username": "me", "sasl_plain_password": "secret"}


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize(
    ("mechanism", "credentials"),
    [
        ("PLAIN", _PASSWORD),
        ("SCRAM-SHA-256", _PASSWORD),
        ("SCRAM-SHA-512", _PASSWORD),
        ("OAUTHBEARER", {"sasl_oauth_token_provider": _token}),
    ],
)
async def test_a_consumer_reads_and_commits_beyond_the_end_of_its_authentication(
    secured: _Secured, protocol: str, mechanism: str, credentials: dict[str, Any]
) -> None:
    from confluent_kafka import Producer

    topic = f"{protocol}-{mechanism}"
    async with Cluster(f"127.0.0.1:{secured.plain}") as cluster:
        await cluster.create_topics({topic: 1})
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{secured.plain}"})
    settings = {
        **QUICK,
        "bootstrap": f"127.0.0.1:{secured.tls if protocol == 'SASL_SSL' else secured.sasl}",
        "group": topic,
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
        **({"ssl_cafile": secured.cafile} if protocol == "SASL_SSL" else {}),
        **credentials,
    }
    async with AsyncGroupConsumer(topic, **settings) as consumer:
        generation = -1
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            producer.produce(topic, b"x")
            producer.flush(5)
            consumer.done_all(await read(consumer, 1))
            await consumer.commit()
            assert generation in (-1, consumer.state.generation), "nothing of this is a reason to rebalance"
            generation = consumer.state.generation


async def test_a_wrong_password_is_told_at_once(secured: _Secured) -> None:
    settings = {
        **QUICK,
        "bootstrap": f"127.0.0.1:{secured.sasl}",
        "group": "billing",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": "wrong",
    }
    with pytest.raises(AuthenticationError, match="refused"):
        await AsyncGroupConsumer("orders", **settings).start()
