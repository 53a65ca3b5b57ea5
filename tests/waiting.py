"""Waiting for something that happens elsewhere and tells nobody of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Longer than a busy machine takes.
PATIENCE_S = 60.0
#: Between two looks of a thread, which may cost a request, and of a task.
_PAUSE_S, _TASKS_PAUSE_S = 0.02, 0.005


def wait_until(
    condition: Callable[[], T], what: str = "the condition", *, timeout_s: float = PATIENCE_S
) -> T:
    """Return what ``condition`` returns, once that is true; the failure says ``what`` was waited for."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(_PAUSE_S)
    return found


async def until(condition: Callable[[], object], *, timeout_s: float = PATIENCE_S) -> None:
    """Wait on the event loop until ``condition`` returns what is true."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(_TASKS_PAUSE_S)
