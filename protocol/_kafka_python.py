"""Import of kafka-python's modules."""

from __future__ import annotations

import importlib
import threading
import warnings
from types import ModuleType

_LOCK = threading.RLock()


def kafka_module(name: str) -> ModuleType:
    """Import a module of kafka-python, such as ``kafka.net.sasl``.

    kafka-python's modules import each other in circles: a thread that enters a circle at another place than
    the first thread gets an unfinished module. So the package is imported first, under a lock. The filter
    keeps a DeprecationWarning about how it reads its schemas from programs that turn warnings into errors.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
        importlib.import_module("kafka")
        return importlib.import_module(name)
