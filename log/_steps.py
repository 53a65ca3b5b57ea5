"""Long work, cut into steps: the caller decides what runs between them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from ..protocol.named_tuples import NamedTuple

Result = TypeVar("Result")


class ThreadWork(NamedTuple):
    """A function to call in any thread. From then on the steps hold up to ``most_bytes`` of memory."""

    call: Callable[[], Any]
    most_bytes: int


#: Yields None where other work may run, or work for a thread; the caller sends its result back, or throws its
#: error.
Steps: TypeAlias = Generator[ThreadWork | None, Any, Result]


def at_once(steps: Steps[Result]) -> Result:
    """Run all steps and return the result."""
    try:
        work = next(steps)
        while True:
            if work is None:
                work = next(steps)
                continue
            try:
                found = work.call()
            except Exception as error:
                work = steps.throw(error)
            else:
                work = steps.send(found)
    except StopIteration as done:
        result: Result = done.value
        return result
