"""Long work, cut into steps: the caller decides what runs between them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")

#: Yields None where other work may run, or a function to call in any thread; the caller sends its result
#: back, or throws its error.
Steps: TypeAlias = Generator[Callable[[], Any] | None, Any, Result]


def at_once(steps: Steps[Result]) -> Result:
    """Run all steps and return the result."""
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
