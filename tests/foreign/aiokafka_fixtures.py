"""A plug-in of pytest for aiokafka's own tests: they run on a broker that is there, not on one in Docker.

They get the fixtures of this file instead of those in their conftest.py that use Docker.
``KOHORT_FOREIGN_PLAIN`` and ``KOHORT_FOREIGN_SASL`` name the broker's ports on 127.0.0.1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

HOST = "127.0.0.1"
TIMEOUT_S = 30.0
_REPLACED = ("kafka_image", "kafka_server", "ssl_folder", "acl_manager", "kafka_config", "kerberos_utils")
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}
_PERMISSIONS = {"allow_principal": AclPermissionType.ALLOW, "deny_principal": AclPermissionType.DENY}

# their conftest.py imports it for the fixtures that are replaced
sys.modules.setdefault("docker", Mock())


@pytest.hookimpl(tryfirst=True)
def pytest_plugin_registered(plugin: object) -> None:
    """Take the fixtures that use Docker out of their conftest.py before pytest finds them."""
    if Path(getattr(plugin, "__file__", None) or "").name == "conftest.py":
        for name in _REPLACED:
            vars(plugin).pop(name, None)


class AccessRules:
    """What they expect of ``acl_manager``."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin
        self._added: list[AclBinding] = []

    def add_acl(self, **words: str | bool) -> None:
        """Add a rule, named as options of kafka-acls are."""
        rule = _rule(words)
        for done in self._admin.create_acls([rule]).values():
            done.result(TIMEOUT_S)
        self._added.append(rule)

    def list_acl(self) -> object:
        """All rules; raises where there is no authorizer."""
        every = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        return self._admin.describe_acls(every).result(TIMEOUT_S)

    def cleanup(self) -> None:
        """Remove the rules that were added."""
        while self._added:
            one = self._added.pop()
            exactly = AclBindingFilter(
                *(one.restype, one.name, one.resource_pattern_type, one.principal, one.host),
                *(one.operation, one.permission_type),
            )
            for done in self._admin.delete_acls([exactly]).values():
                done.result(TIMEOUT_S)


def _rule(words: Mapping[str, str | bool]) -> AclBinding:
    [(kind, name)] = [(_RESOURCES[word], str(words[word])) for word in _RESOURCES if word in words] or [
        (ResourceType.BROKER, "kafka-cluster")
    ]
    [(permission, user)] = [(_PERMISSIONS[word], words[word]) for word in _PERMISSIONS if word in words]
    operation = AclOperation[str(words["operation"]).upper()]
    return AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, permission)


class Users:
    """What they expect of ``kafka_config``."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def add_scram_user(self, username: str, password: str) -> None:
        """Let the user log in with either mechanism."""
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            change = UserScramCredentialUpsertion(username, info, password.encode())
            for done in self._admin.alter_user_scram_credentials([change]).values():
                done.result(TIMEOUT_S)


@pytest.fixture(scope="session")
def kafka_server() -> SimpleNamespace:
    """The ports of the broker; it has none with TLS."""
    plain = int(os.environ["KOHORT_FOREIGN_PLAIN"])
    sasl = os.environ.get("KOHORT_FOREIGN_SASL")
    return SimpleNamespace(
        host=HOST,
        port=plain,
        hosts=[f"{HOST}:{plain}"],
        sasl_plain_port=int(sasl) if sasl else None,
        ssl_port=None,
        sasl_ssl_port=None,
    )


@pytest.fixture(scope="session")
def ssl_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates, of which there are none."""
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="session")
def kerberos_utils() -> None:
    """There is no Kerberos."""


@pytest.fixture(scope="session")
def _admin(kafka_server: SimpleNamespace) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka_server.hosts[0]})


@pytest.fixture(scope="class")
def acl_manager(_admin: AdminClient) -> Iterator[AccessRules]:
    """Access rules, on the broker only as long as a class of tests runs."""
    rules = AccessRules(_admin)
    yield rules
    rules.cleanup()


@pytest.fixture(scope="session")
def kafka_config(_admin: AdminClient) -> Users:
    """Users with passwords."""
    return Users(_admin)
