"""What objects keep alive: everything that is reachable from them, with its size and the way to it."""

from __future__ import annotations

import asyncio
import functools
import gc
import io
import logging
import sys
import types
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

#: Not part of what an object keeps: code, and what belongs to the interpreter, the machine or the test.
_BESIDE: Final = (
    types.ModuleType,
    types.CodeType,
    types.BuiltinFunctionType,
    types.TracebackType,
    asyncio.AbstractEventLoop,
    logging.Filterer,
    io.IOBase,
)

#: What an element of a dictionary or set takes, about.
ELEMENT_BYTES: Final = 100


def kept(roots: Iterable[tuple[str, object]]) -> Counter[str]:
    """Bytes that objects keep, by the attributes that lead to them; a container's elements count together."""
    found: Counter[str] = Counter()
    waiting: deque[tuple[str, Any]] = deque(roots)
    seen: dict[int, object] = {}
    while waiting:
        path, each = waiting.popleft()
        if id(each) in seen or each is None or isinstance(each, _BESIDE):
            continue
        seen[id(each)] = each
        # by what is in it: a dictionary that has had more elements stays as large as it was
        found[path] += ELEMENT_BYTES * len(each) if isinstance(each, (dict, set)) else sys.getsizeof(each)
        waiting.extend(_parts(path, each))
    return found


def _parts(path: str, each: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(each, (str, bytes, bytearray, int, float)):
        return
    if isinstance(each, functools._lru_cache_wrapper) and each.cache_parameters()["maxsize"] is not None:
        return
    if isinstance(each, dict):
        for key, value in each.items():
            yield f"{path}[]", key
            yield f"{path}[]", value
        return
    if isinstance(each, (list, tuple, set, frozenset, deque)):
        for value in each:
            yield f"{path}[]", value
        return
    if isinstance(each, types.FunctionType):
        for value in (each.__closure__, each.__defaults__, each.__kwdefaults__):
            yield f"{path}()", value
        return
    if isinstance(each, type):
        if each.__module__.startswith("kohort"):
            for name, value in list(vars(each).items()):
                if not name.startswith("__"):
                    yield f"{path}.{each.__name__}.{name}", value
        return
    named = set()
    for name, value in _attributes(each):
        named.add(id(value))
        yield f"{path}.{name}", value
    for value in gc.get_referents(each):
        if id(value) not in named and value is not getattr(each, "__dict__", None):
            yield f"{path}<{type(each).__name__}>", value


def _attributes(each: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(each, "__dict__", {}).items()
    for kind in type(each).__mro__:
        names = vars(kind).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(each, name):
                yield name, getattr(each, name)


def kohort_modules() -> Iterator[tuple[str, object]]:
    """Objects of kohort's modules by their names: what is kept in none of a broker's parts."""
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("kohort."):
            for name, value in list(vars(module).items()):
                if not name.startswith("__"):
                    yield f"{module_name}.{name}", value
