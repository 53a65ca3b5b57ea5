"""Certificates of an authority of the tests' own."""

from __future__ import annotations

import pytest

from tests.broker.security.certificates import Certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))
