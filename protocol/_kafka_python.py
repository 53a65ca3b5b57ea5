"""kafka-python's modules, as everything here imports them."""

from __future__ import annotations

import importlib
import threading
import warnings
from typing import Any

_LOCK = threading.RLock()


def kafka_module(name: str) -> Any:
    """The module of this name, such as ``kafka.partitioner.default``, or one of ours that makes messages.

    kafka-python's modules import each other in circles: two threads that enter the circle at different places
    get half a module, so all enter by the package, and one at a time. It reads its schemas by a function that
    Python has deprecated, which is nothing to the users of kohort, not even to those who make errors of
    warnings.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
        importlib.import_module("kafka")
        return importlib.import_module(name)
