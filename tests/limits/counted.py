"""What a broker does, counted: lines of its Python that run, and each time a name or number is compared.

No clock is read, so the figures are the same on a busy machine.
"""

from __future__ import annotations

import asyncio
import sys
from types import FrameType
from typing import Any, Final

#: What the broker's clock for long work makes of a step, in seconds: about what one takes.
STEP_S: Final = 5e-6

_MODULES: Final = ("kohort.", __name__)


class Text(str):
    """A text of a request, of which each hash and comparison counts."""

    __slots__ = ()

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return str.__ne__(self, other)

    def __lt__(self, other: str) -> bool:
        return str.__lt__(self, other)


class Number(int):
    """A number of a request, of which each hash and comparison counts."""

    __slots__ = ()

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return int.__ne__(self, other)

    def __lt__(self, other: int) -> bool:
        return int.__lt__(self, other)


def counted(value: Any) -> Any:
    """A decoded message whose texts, and numbers in arrays, are counted."""
    if type(value) is str:
        return Text(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(counted, value))
    if isinstance(value, (list, tuple)):
        return [Number(each) if type(each) is int else counted(each) for each in value]
    return value


class Steps:
    """Counts the steps of this thread between ``begin`` and ``end``, and the most of them in one turn of its
    event loop.
    """

    def __init__(self) -> None:
        self.count = 0
        self.longest_turn = 0
        self._turn_began = 0
        self._counting = False
        self._tick: asyncio.Handle | None = None

    def __repr__(self) -> str:
        return f"Steps({self.count}, at most {self.longest_turn} in one turn)"

    def clock(self) -> float:
        """For ``Surroundings.work_clock``."""
        return self.count * STEP_S

    def begin(self) -> None:
        self.count = self.longest_turn = self._turn_began = 0
        self._next_turn()
        self._counting = True
        sys.settrace(self._called)

    def pause(self) -> None:
        sys.settrace(None)

    def resume(self) -> None:
        if self._counting:
            sys.settrace(self._called)

    def end(self) -> None:
        sys.settrace(None)
        self._counting = False
        if self._tick is not None:
            self._tick.cancel()
        self._turned()

    def _next_turn(self) -> None:
        self._turned()
        self._tick = asyncio.get_running_loop().call_soon(self._next_turn)

    def _turned(self) -> None:
        self.longest_turn = max(self.longest_turn, self.count - self._turn_began)
        self._turn_began = self.count

    def _called(self, frame: FrameType, _event: str, _argument: object) -> Any:
        # turns that wait for another thread are no work
        is_own = frame.f_code in (Steps._next_turn.__code__, Steps._turned.__code__)
        if is_own or not frame.f_globals.get("__name__", "").startswith(_MODULES):
            return None
        self.count += 1
        return self._ran

    def _ran(self, _frame: FrameType, _event: str, _argument: object) -> Any:
        self.count += 1
        return self._ran
