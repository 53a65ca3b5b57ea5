"""One broker with access rules for all tests here, and users of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.broker.authorizer.place import Place, apache_place, our_place
from tests.broker.security.certificates import Certificates

WAIT_S = 60.0

#: The password of every user.
PASSWORD = "correct horse"


@pytest.fixture(scope="package")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """With ``--bootstrap`` an Apache Kafka that is started here: rules are a matter of its settings."""
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    make = our_place if request.config.getoption("--bootstrap") is None else apache_place
    with make(certificates) as made:
        yield made


@pytest.fixture
def name() -> str:
    """A topic, a group and a prefix that no other test has."""
    return f"rules-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def admin(place: Place) -> AdminClient:
    return AdminClient({"bootstrap.servers": place.admin})


@pytest.fixture
def user(admin: AdminClient, name: str) -> str:
    """A user that no other test has, with a password."""
    user = f"user-{name}"
    password = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertion = UserScramCredentialUpsertion(user, password, PASSWORD.encode())
    for done in admin.alter_user_scram_credentials([upsertion]).values():
        done.result(WAIT_S)
    eventually("the user is known", lambda: _knows(admin, user))
    return user


def _knows(admin: AdminClient, user: str) -> bool:
    [described] = admin.describe_user_scram_credentials([user]).values()
    try:
        return bool(described.result(WAIT_S).scram_credential_infos)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.RESOURCE_NOT_FOUND:
            raise
        return False


def eventually(what: str, done: Callable[[], Any]) -> Any:
    """Apache Kafka answers before all of it knows."""
    deadline = time.monotonic() + WAIT_S
    while not (found := done()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found
