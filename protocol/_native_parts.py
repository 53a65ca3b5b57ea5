"""Compiled parts: a room's ``_native`` holds what it would otherwise do in Python, with the same results.

They are there where kohort was installed from a wheel of its platform, or where a C compiler was at hand.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

#: Environment variable that keeps to Python where it is set: to compare, or to rule a compiled part out.
PURE: Final = "KOHORT_PURE"

#: Rooms with a compiled part.
_ROOMS: Final = ("assignors", "offsets_topic", "protocol")


def has_native(room: str, *names: str) -> bool:
    """Return whether the compiled part of ``room`` is to be used: asked once, where the room is imported.

    ``names`` are what is needed of it: one that was compiled before it had them is not used for that.
    """
    if os.environ.get(PURE):
        return False
    try:
        part = import_module(f"kohort.{room}._native")
    except ImportError:
        return False
    return all(hasattr(part, name) for name in names)


def implementation() -> str:
    """What runs here, for people."""
    missing = [room for room in _ROOMS if not has_native(room)]
    if not missing:
        return "native"
    return "pure Python" if len(missing) == len(_ROOMS) else f"native, {', '.join(missing)} pure Python"
