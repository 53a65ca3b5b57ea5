"""Loading the message classes beside the first requests, not in front of them.

Their import takes longer than all else a start needs. It runs in a thread of its own once the broker
listens: the event loop answers ApiVersions meanwhile, and the first request that needs a class waits only
for what is left.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ..protocol import ApiKey, request_class, response_class

#: What clients ask first, so that it is there first.
_FIRST = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR)


def warm_up(keys: Iterable[ApiKey]) -> None:
    """Begin to load the classes of these APIs; returns at once."""
    wanted = dict.fromkeys((*_FIRST, *keys))
    threading.Thread(target=_load, args=(wanted,), name="kohort-warm-up", daemon=True).start()


def _load(keys: Iterable[ApiKey]) -> None:
    for key in keys:
        request_class(key)
        response_class(key)
