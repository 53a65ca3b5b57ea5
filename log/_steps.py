"""Work that may take long, in steps: its caller decides what runs between them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")

#: Yields None where others may have their turn, or a function to be called, in any thread, whose result is to
#: be sent back, or its error thrown.
Steps: TypeAlias = Generator[Callable[[], Any] | None, Any, Result]


def at_once(steps: Steps[Result]) -> Result:
    """The result, with nothing in between."""
    try:
        work = next(steps)
        while True:
            if work is None:
                work = next(steps)
                continue
            try:
                found = work()
            except Exception as error:
                work = steps.throw(error)
            else:
                work = steps.send(found)
    except StopIteration as done:
        result: Result = done.value
        return result
