"""Tests that run on both implementations: what a room has compiled, and the Python that it stands in for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.protocol import has_native

_WHY = "no compiled part here: make builds it where there is a C compiler, and KOHORT_PURE rules it out"

#: Rooms with the source of a compiled part.
ROOMS = sorted(path.parent.name for path in Path(__file__).parent.parent.glob("*/_native.pyx"))


def needs_native(room: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not has_native(room), reason=_WHY)


def both(room: str) -> pytest.MarkDecorator:
    """Calls a test with ``native`` false and true."""
    return pytest.mark.parametrize(
        "native",
        [pytest.param(False, id="python"), pytest.param(True, id="native", marks=needs_native(room))],
    )
