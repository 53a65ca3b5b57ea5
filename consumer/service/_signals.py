"""SIGTERM and SIGINT: the first asks for a graceful end, the second ends at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def graceful_signals(stop: Callable[[str], None]) -> Iterator[None]:
    """In the block the first signal calls ``stop`` with its name; the second exits with 128 + its number.

    Outside the main thread signals belong to somebody else: nothing is installed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def on_signal(number: int) -> None:
        if received:
            print("second signal: leaving at once, without commit", file=sys.stderr, flush=True)
            os._exit(128 + number)
        received.append(number)
        stop(signal.Signals(number).name)

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
