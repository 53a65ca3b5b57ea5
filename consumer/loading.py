"""Modules that take a while to load, loaded without holding up heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


async def off_the_loop(load: Callable[[], T]) -> T:
    """What ``load`` returns; it runs in a thread that does not outlive it."""
    with ThreadPoolExecutor(1) as other:
        return await asyncio.get_running_loop().run_in_executor(other, load)
