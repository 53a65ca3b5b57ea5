"""A broker for the tests of its room, shared while they only add topics of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kohort.broker.apis import load_all
from kohort.testing import RunningBroker, running_broker
from tests.broker.security.certificates import Certificates
from tests.broker.wire import Wire

# pytest parses what it imports, and Python 3.11 fails now and then where two threads parse: a broker that
# starts loads these in a thread of its own
load_all()


@pytest.fixture(scope="session")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture
def wire(broker: RunningBroker) -> Iterator[Wire]:
    with Wire(broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def link(bootstrap: str) -> Iterator[Wire]:
    """A connection to the cluster of the end-to-end tests."""
    with Wire(bootstrap) as connection:
        yield connection


@pytest.fixture
def name() -> str:
    """A topic name of the test's own."""
    return f"t-{uuid.uuid4().hex[:10]}"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of an authority of the tests' own."""
    return Certificates(tmp_path_factory.mktemp("certificates"))
