"""Finds the partition whose next batch makes a Fetch response larger than this client takes. No I/O.

A broker sends the first batch that it finds whole, whatever the request's limits are. It is that of the first
partition in the request that has data, and the request does not tell which one has. So parts of the request
are sent alone, half of what is suspected each time, until one partition is left.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from .positions import Position


@dataclass(slots=True, eq=False)
class Suspects:
    """The partitions of a request that was answered with too much, by the task that sent it."""

    _all: dict[Hashable, Sequence[Position]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Suspects({sum(map(len, self._all.values()))} partitions)"

    def next_part(self, task: Hashable, wanted: list[Position]) -> list[Position]:
        """Return which of the wanted partitions the task's next request names: all, if none is suspected."""
        if (suspects := self._all.get(task)) is not None:
            there = set(wanted)
            self._set_suspects(task, [position for position in suspects if position in there])
        return self._half_of(task) or wanted

    def is_seeking(self, task: Hashable) -> bool:
        """Return whether the task's next request is a part of one."""
        return task in self._all

    def on_answer(self, task: Hashable) -> None:
        """The last part was answered: what is sought is in the rest, if it is there still."""
        self._set_suspects(task, self._all.get(task, ())[len(self._half_of(task)) :])

    def too_much(self, task: Hashable, asked: Sequence[Position]) -> Position | None:
        """The answer to these was too large. Returns the partition that it is of, once only one was asked."""
        self._set_suspects(task, asked if len(asked) > 1 else ())
        return asked[0] if len(asked) == 1 else None

    def _half_of(self, task: Hashable) -> list[Position]:
        suspects = self._all.get(task, ())
        return list(suspects[: (len(suspects) + 1) // 2])

    def _set_suspects(self, task: Hashable, suspects: Sequence[Position]) -> None:
        self._all.pop(task, None)
        if suspects:
            self._all[task] = suspects
