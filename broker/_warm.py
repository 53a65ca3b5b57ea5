"""Loading handlers and messages beside the first requests, not in front of them.

Their import takes longer than all else a start needs. It runs in a thread of its own once the broker
listens: the event loop answers ApiVersions meanwhile, and the first request that needs one waits only
for what is left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from ..protocol import ApiKey, messages_of
from ._requests import Handler

#: What clients ask first, so that it is there first.
_FIRST = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR)


def warm_up(handlers: Callable[[], Mapping[ApiKey, Handler]]) -> None:
    """Begin to load the handlers and the messages of their APIs; returns at once."""
    threading.Thread(target=load, args=(handlers,), name="kohort-warm-up", daemon=True).start()


def load(handlers: Callable[[], Mapping[ApiKey, Handler]]) -> None:
    """Load them here and now."""
    for key in (*_FIRST, *handlers()):
        messages_of(key)
