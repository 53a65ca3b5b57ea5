"""A broker with access rules: ours, or an Apache Kafka of the tests' own, with the same settings."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kohort.testing import running_broker
from tests.broker.authorizer.world import World
from tests.broker.security.certificates import Certificates
from tests.broker.wire import Wire
from tests.conftest import ROOT
from tests.ports import free_ports

#: Whoever comes by the plain listener may do everything; by the others, users are known by their
#: certificates or passwords.
_SETTINGS = {
    "listener.security.protocol.map": "PLAIN:PLAINTEXT,TLS:SSL,SCRAM:SASL_SSL,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAIN",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
    "ssl.client.auth": "required",
    "ssl.principal.mapping.rules": "RULE:^CN=(.*?),OU=billing,.*$/$1/,DEFAULT",
}

_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"

#: How long Apache Kafka may take to carry out what it has answered.
_SETTLE_S = 2.0


@dataclass(frozen=True, slots=True)
class Place:
    """``admin`` is an address that gives everyone all rights, ``tls`` one that asks for a certificate,
    ``scram`` one with TLS that asks for a password.
    """

    admin: str
    tls: str
    scram: str
    certificates: Certificates
    settle_s: float

    def connect(self, user: str = "alice") -> Wire:
        """A connection of a user."""
        wire = Wire(self.tls)
        context = self.certificates.trusting(self.certificates.client(user))
        wire.socket = context.wrap_socket(wire.socket, server_hostname="127.0.0.1")
        return wire

    @contextmanager
    def world(self) -> Iterator[World]:
        """Topics and groups of a test's own."""
        with Wire(self.admin) as admin:
            world = World(admin, self.connect, self.settle_s)
            yield world
            world.close()


@contextmanager
def our_place(certificates: Certificates) -> Iterator[Place]:
    settings: dict[str, Any] = _settings(certificates) | {
        "listeners": "PLAIN://127.0.0.1:0,TLS://127.0.0.1:0,SCRAM://127.0.0.1:0"
    }
    with running_broker(**settings) as broker:
        at = broker.endpoints
        yield Place(at["PLAIN"], at["TLS"], at["SCRAM"], certificates, settle_s=0)


@contextmanager
def apache_place(certificates: Certificates) -> Iterator[Place]:
    """An Apache Kafka, for as long as the block lasts."""
    port = free_ports(range(4))
    listeners = f"PLAIN://127.0.0.1:{port},TLS://127.0.0.1:{port + 2},SCRAM://127.0.0.1:{port + 3}"
    settings = {
        **_settings(certificates),
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{port + 1}",
        "advertised.listeners": listeners,
        "listener.name.scram.scram-sha-256.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
    }
    script = str(ROOT / "scripts" / "apache-kafka")
    given = [f"{name}={value}" for name, value in settings.items()]
    subprocess.run([script, "start", str(port), *given], check=True, timeout=120)
    try:
        admin, tls, scram = (f"127.0.0.1:{port + more}" for more in (0, 2, 3))
        yield Place(admin, tls, scram, certificates, _SETTLE_S)
    finally:
        subprocess.run([script, "stop", str(port)], check=True, timeout=60)


def _settings(certificates: Certificates) -> dict[str, str]:
    return {
        **_SETTINGS,
        "ssl.keystore.location": certificates.server(),
        "ssl.truststore.location": certificates.cafile,
    }
