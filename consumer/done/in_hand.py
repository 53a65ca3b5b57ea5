"""With ``auto_done``: what a reader has in hand is done when the same reader asks for more. No I/O."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from ..errors import StaleRecordError

T = TypeVar("T")

#: The reader that all single polls share: what one of them returned is done at the next.
POLLS = object()


@dataclass(slots=True, eq=False)
class InHand:
    """Records that were given to a reader: an iterator, or POLLS. ``deliver_again`` is called when another
    reader asks, because the loop that had them was left before it was done with them.
    """

    deliver_again: Callable[[], None]
    _reader: object = None
    _mark: Callable[[], None] | None = None

    def note_given(self, reader: object, mark: Callable[[], None]) -> None:
        """The reader got records; ``mark`` marks them done."""
        self._reader, self._mark = reader, mark

    def is_left(self, reader: object) -> bool:
        """Return whether another reader than this one has records in hand."""
        return self._mark is not None and self._reader is not reader

    def on_asked(self, reader: object) -> None:
        """The reader asks for more."""
        left = self.is_left(reader)
        mark, self._mark = self._mark, None
        if left:
            self.deliver_again()
        elif mark is not None:
            with suppress(StaleRecordError):  # of a partition that has another owner since
                mark()


@dataclass(slots=True, eq=False)
class DoneWithNext(Generic[T]):
    """An iterator whose item is done when the next one is asked for; ``done`` marks an item.

    No async generator, because a cancelled one has ended.
    """

    items: AsyncIterator[T]
    in_hand: InHand
    done: Callable[[T], None]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        self.in_hand.on_asked(self)
        item = await anext(self.items)
        self.in_hand.note_given(self, lambda: self.done(item))
        return item
