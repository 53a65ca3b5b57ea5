"""APIs: one file each, with everything that the broker knows of the API. A new API is one file here, and its
test.

A file's ``API`` is a :class:`ServedApi`: versions, handler, rights, the shape of its errors, how it is
scheduled and charged. Everything else about APIs is derived from these: the response to ApiVersions, the
authorizer's gate, docs/acls.md and the table in docs/broker.md.
"""

from __future__ import annotations

import pkgutil
import threading
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from ...protocol import ApiKey, crc32c_function, messages_of
from ._api import AnyApi, AnyRequest, Request, ServedApi

__all__ = ["AnyApi", "AnyRequest", "Request", "ServedApi", "load_all", "served_apis", "warm_up"]

#: The first requests of most clients: their messages are loaded first.
_FIRST = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR)


@cache
def served_apis() -> Mapping[int, AnyApi]:
    """Every API by number, in order. Imports their files at the first call: a broker listens before that."""
    files = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    found: list[AnyApi] = [import_module(f".{name}", __name__).API for name in files]
    return {int(api.key): api for api in sorted(found, key=lambda api: api.key)}


def warm_up() -> None:
    """Begin to load the files of all APIs and their messages; returns at once.

    That takes longer than the rest of a start. It runs in a thread once the broker listens: the first request
    that needs one of them waits only for the rest of its import.
    """
    threading.Thread(target=load_all, name="kohort-warm-up", daemon=True).start()


def load_all() -> None:
    """Load the files of all APIs, their messages, and the checksum of records, here and now."""
    for key in (*_FIRST, *served_apis()):
        messages_of(key)
    crc32c_function()
