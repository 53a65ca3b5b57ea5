"""A broker with every kind of listener, kohort's or (with --bootstrap) an Apache Kafka of the test's own.

Both get the same settings: their names are the same.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.broker.security.certificates import Certificates
from tests.broker.security.issuer import Issuer
from tests.broker_process import QUICK_SETTINGS, BrokerProcess
from tests.ports import free_ports

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "apache-kafka"
PASSWORD = "secret"

_MODULES = "org.apache.kafka.common.security"
_CALLBACKS = f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
_MODULE_OF = {
    "plain": f"{_MODULES}.plain.PlainLoginModule required "
    'user_me="secret" user_alice="secret" user_bob="secret";',
    "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_MODULES}.scram.ScramLoginModule required;",
    "oauthbearer": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
}


class Secured:
    """Its listeners: ``plain`` (whose clients may do all), ``sasl``, ``tls`` (SASL_SSL), ``cert`` (SSL).

    ``me`` may do everything too; ``alice`` and ``bob`` may do what the test lets them.
    """

    def __init__(self, first_port: int, folder: Path) -> None:
        self.port = first_port
        self.certificates = Certificates(folder)
        self.issuer = Issuer(folder / "keys.json")
        self.cafile = self.certificates.cafile
        # the port behind the first is Apache Kafka's own
        self.plain, self.sasl, self.tls, self.cert = (
            f"127.0.0.1:{first_port + number}" for number in (0, 2, 3, 4)
        )

    def settings(self) -> dict[str, str]:
        names = {"PLAINTEXT": self.plain, "SASL": self.sasl, "TLS": self.tls, "CERT": self.cert}
        told = ",".join(f"{name}://{address}" for name, address in names.items())
        found = {
            "listeners": told,
            "advertised.listeners": told,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL,CERT:SSL",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "connections.max.reauth.ms": "1500",
            # for tests that are not about the end of a login
            "listener.name.sasl.scram-sha-256.connections.max.reauth.ms": "3600000",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.certificates.server("broker.pem", "127.0.0.1"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.cafile,
            "listener.name.cert.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),OU=billing,.*$/$1/L,DEFAULT",
            "sasl.oauthbearer.jwks.endpoint.url": self.issuer.url,
            "sasl.oauthbearer.expected.audience": "kafka",
            "sasl.oauthbearer.expected.issuer": "issuer",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:me",
        }
        for listener in ("sasl", "tls"):
            for mechanism, module in _MODULE_OF.items():
                found[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = module
            found[f"listener.name.{listener}.oauthbearer.sasl.server.callback.handler.class"] = _CALLBACKS
        return found

    def create_user(self, name: str) -> None:
        """Who can log in by either kind of SCRAM."""
        from confluent_kafka.admin import (
            AdminClient,
            ScramCredentialInfo,
            ScramMechanism,
            UserScramCredentialUpsertion,
        )

        admin = AdminClient({"bootstrap.servers": self.plain})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            changes = [UserScramCredentialUpsertion(name, info, PASSWORD.encode())]
            for done in admin.alter_user_scram_credentials(changes).values():
                done.result(20)


@contextmanager
def secured_broker(folder: Path, *, apache_kafka: bool) -> Iterator[Secured]:
    """Runs until the block ends; the users ``me``, ``alice`` and ``bob`` can log in by SCRAM."""
    broker = Secured(free_ports(range(5)), folder)
    with _apache_kafka(broker) if apache_kafka else _kohort(broker, folder):
        _create_users(broker)
        yield broker


@contextmanager
def _kohort(broker: Secured, folder: Path) -> Iterator[None]:
    settings = {**QUICK_SETTINGS, **broker.settings(), "kohort.sasl.plain.without.tls": "SASL"}
    process = BrokerProcess(folder, data=None, settings=settings)
    process.start()
    try:
        yield
    finally:
        process.stop()


@contextmanager
def _apache_kafka(broker: Secured) -> Iterator[None]:
    settings = broker.settings()
    controller = f",CONTROLLER://127.0.0.1:{broker.port + 1}"
    settings["listeners"] += controller
    settings["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
    words = [f"{name}={value}" for name, value in settings.items()]
    # which keys may be read, Apache Kafka takes from its command line alone
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={broker.issuer.url}"
    environment = {**os.environ, "JDK_JAVA_OPTIONS": allowed}
    command = [str(SCRIPT), "start", str(broker.port), *words]
    subprocess.run(command, check=True, timeout=120, env=environment)
    try:
        yield
    finally:
        subprocess.run([str(SCRIPT), "stop", str(broker.port)], check=True, timeout=60)


def _create_users(broker: Secured) -> None:
    for user in ("me", "alice", "bob"):
        broker.create_user(user)
