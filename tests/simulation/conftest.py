"""Whether the long runs are asked for."""

from __future__ import annotations

import pytest


@pytest.fixture
def soaks(request: pytest.FixtureRequest) -> bool:
    """``--soak`` was given."""
    return request.config.getoption("--soak") is not None
