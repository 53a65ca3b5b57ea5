"""What a consumer takes from the world around it besides its event loop: connections and chance.

A simulation puts its own in their place, for everything that is started in one context.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from .connection import Connection

#: As Connection.open.
OpenConnection = Callable[..., Awaitable[Connection]]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``make_random`` gives each part that draws something its own source.

    ``in_thread(pool, size, function)`` takes the place of threads, of which ``pool`` would have ``size``: it
    gives what the function returns. With it no thread watches the loop.
    """

    open_connection: OpenConnection = Connection.open
    make_random: Callable[[], random.Random] = random.Random
    in_thread: Callable[[object, int, Callable[[], Any]], Awaitable[Any]] | None = None


_REAL: Final = Surroundings()

#: Those of the context in which a consumer is built and started.
SURROUNDINGS: Final[ContextVar[Surroundings]] = ContextVar("kohort_surroundings", default=_REAL)
