"""Tests of services on a real broker run under either protocol, as those of consumers; others on a fake."""

from __future__ import annotations

import pytest

from kohort.service.run import engine
from tests.consumer.conftest import _spoken, protocol  # noqa: F401 - fixtures
from tests.service.fakes import FakeConsumer


@pytest.fixture
def fake_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services read from a FakeConsumer."""
    monkeypatch.setattr(engine, "AsyncGroupConsumer", FakeConsumer)
