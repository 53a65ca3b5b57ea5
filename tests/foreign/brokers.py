"""The brokers that foreign suites run on: kohort's, an Apache Kafka, or a cluster that was given."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.broker_process import BrokerProcess
from tests.ports import free_ports

KOHORT, APACHE_KAFKA = "kohort", "apache-kafka"
_SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "apache-kafka"
_MODULES = "org.apache.kafka.common.security"
PLAIN_LOGIN = f"{_MODULES}.plain.PlainLoginModule"

#: What suites presume: their makers run them on brokers with such settings.
SETTINGS: Mapping[str, str] = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "message.max.bytes": "2000000",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "6000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN_LOGIN} required user_adminplain="admin-secret";',
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
}
_SCRAM = {
    ("adminscram256", "admin-secret-256"): ScramMechanism.SCRAM_SHA_256,
    ("adminscram512", "admin-secret-512"): ScramMechanism.SCRAM_SHA_512,
}


@dataclass(frozen=True, slots=True)
class Ports:
    """Without login, with SASL, and of Apache Kafka's controller; and this machine's name for clients."""

    plain: int
    sasl: int
    controller: int
    host: str = "127.0.0.1"

    @classmethod
    def free(cls) -> Ports:
        # scripts/apache-kafka wants the port behind the first one to be free, too
        first = free_ports(range(3))
        return cls(first, first + 2, first + 1)


@dataclass(frozen=True, slots=True)
class Target:
    """A broker that serves: its addresses (``sasl`` unless it was given), and the name its results go by."""

    name: str
    bootstrap: str
    sasl: str | None


@contextmanager
def serve(name: str, ports: Ports, extra: Mapping[str, str], folder: Path) -> Iterator[Target]:
    """A broker of this name until the block ends, with ``extra`` settings."""
    addresses = f"PLAINTEXT://{ports.host}:{ports.plain},SASL://{ports.host}:{ports.sasl}"
    settings = {
        **SETTINGS,
        **extra,
        "listeners": addresses.replace(ports.host, "127.0.0.1"),
        "advertised.listeners": addresses,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    }
    target = Target(name, f"127.0.0.1:{ports.plain}", f"127.0.0.1:{ports.sasl}")
    with (_kohort if name == KOHORT else _apache_kafka)(settings, ports, folder):
        _create_users(target.bootstrap)
        yield target


@contextmanager
def _kohort(settings: dict[str, str], ports: Ports, folder: Path) -> Iterator[None]:
    process = BrokerProcess(folder, data=None, settings={**settings, "kohort.sasl.plain.without.tls": "SASL"})
    process.port = ports.plain
    process.start()
    try:
        yield
    finally:
        process.stop()


@contextmanager
def _apache_kafka(settings: dict[str, str], ports: Ports, _folder: Path) -> Iterator[None]:
    settings["listeners"] += f",CONTROLLER://127.0.0.1:{ports.controller}"
    settings["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
    settings["controller.quorum.voters"] = f"1@127.0.0.1:{ports.controller}"
    words = [f"{name}={value}" for name, value in settings.items()]
    subprocess.run([str(_SCRIPT), "start", str(ports.plain), *words], check=True, timeout=300)
    try:
        yield
    finally:
        subprocess.run([str(_SCRIPT), "stop", str(ports.plain)], check=True, timeout=60)


def _create_users(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for (user, password), mechanism in _SCRAM.items():
        info = ScramCredentialInfo(mechanism, 4096)
        changes = [UserScramCredentialUpsertion(user, info, password.encode())]
        for done in admin.alter_user_scram_credentials(changes).values():
            done.result(60)
