"""A service within an application that has an event loop of its own, such as a web framework's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress

from ...client.errors import ConfigError
from ...settings import MAX_INT
from ..handlers.retry import Retry

#: A service that failed begins again after the pauses of ``kohort run --workers``.
PAUSES = Retry(attempts=MAX_INT, backoff_ms=1_000, max_backoff_ms=30_000)
#: One that has run for this long begins again with the shortest pause.
SETTLED_S = 60.0

log = logging.getLogger("kohort.service")


@asynccontextmanager
async def serving_again(
    serve: Callable[[], Coroutine[object, object, None]], stop: Callable[[str], None]
) -> AsyncIterator[None]:
    """A block in which ``serve`` runs, and again when it has failed; ``stop`` ends it with the block.

    Raises the ConfigError of ``serve`` at the end of the block: nothing is tried again after one.
    """
    ending = asyncio.Event()
    serving = asyncio.create_task(_serve_again(serve, ending), name="kohort service")
    try:
        await asyncio.sleep(0)  # until it has begun, ``stop`` would be for the next block
        yield
    finally:
        ending.set()
        stop("the application ends")
        await serving


async def _serve_again(serve: Callable[[], Coroutine[object, object, None]], ending: asyncio.Event) -> None:
    clock, failures = asyncio.get_running_loop().time, 0
    while not ending.is_set():
        began = clock()
        try:
            await serve()
            return
        except ConfigError as error:
            log.error("the service cannot run: %s", error)
            raise
        except Exception as error:  # that is in the log
            failures = 1 if clock() - began > SETTLED_S else failures + 1
            pause_ms = PAUSES.delay_ms(failures, error) or 0.0
        log.warning("the service begins again in %.1f s", pause_ms / 1000)
        with suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), pause_ms / 1000)
