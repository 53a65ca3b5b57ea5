"""SIGTERM and SIGINT: the first requests a graceful end, a later one ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ...client.errors import ConfigError

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: Process managers send a signal to a process and to its group, or two different ones: together they are one.
ONE_SIGNAL_S = 0.5
#: The target of `kohort run`, while it imports the module.
LOADING: ContextVar[str] = ContextVar("LOADING", default="")


def run_with_signals(
    serve: Callable[[], Coroutine[object, object, None]], stop: Callable[[str], None]
) -> None:
    """Run ``serve()`` in an event loop of its own, with ``graceful_signals(stop)``.

    Raises RuntimeError where a loop runs already.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("run() begins an event loop, and one runs here already: await service.serve()")

    async def run() -> None:
        with graceful_signals(stop):
            await serve()

    asyncio.run(run())


@contextmanager
def graceful_signals(stop: Callable[[str], None]) -> Iterator[None]:
    """In the block the first signal calls ``stop`` with its name; a later one exits with 128 + its number.

    Those that come within half a second of the first count as the same. Outside the main thread signals
    belong to somebody else: nothing is installed.
    """
    if target := LOADING.get():
        raise ConfigError(
            f"the module of {target} runs the service while it is imported: put its run() behind "
            "'if __name__ == \"__main__\":'"
        )
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    first: float | None = None

    def on_signal(number: int) -> None:
        nonlocal first
        if first is None:
            first = loop.time()
            stop(signal.Signals(number).name)
        elif loop.time() - first > ONE_SIGNAL_S:
            print("second signal: leaving at once, without commit", file=sys.stderr, flush=True)
            os._exit(128 + number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
