"""For the tests of services on a real broker: they run under either protocol, as those of consumers."""

from __future__ import annotations

from tests.consumer.conftest import _spoken, protocol  # noqa: F401 - fixtures
