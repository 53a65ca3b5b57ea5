"""One broker with access rules for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.authorizer.place import Place, apache_place, our_place
from tests.broker.security.certificates import Certificates


@pytest.fixture(scope="package")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """With ``--bootstrap`` an Apache Kafka that is started here: rules are a matter of its settings."""
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    make = our_place if request.config.getoption("--bootstrap") is None else apache_place
    with make(certificates) as made:
        yield made
