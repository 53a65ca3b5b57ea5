"""How many refusals are told: members that are fenced try again, and strangers try for ever."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from ...coordinator import MemberFenced, Refusal
from .log_lines import cut_text

#: Time in ms during which an equal refusal of the same member is not told again, and most refusals that are
#: told in one second.
REPEAT_MS: Final = 60_000
MAX_REFUSALS: Final = 50

_MAX_REMEMBERED = 1_000
_SECOND_MS: Final = 1_000


class RefusalRate:
    """Which refusals are told. ``on_too_many`` is called for each that is left out for the rate, and is no
    repetition.
    """

    def __init__(self, on_too_many: Callable[[], None]) -> None:
        self._on_too_many = on_too_many
        self._told: dict[Hashable, tuple[int, int]] = {}
        self._second = self._count = 0

    def __repr__(self) -> str:
        return f"RefusalRate({len(self._told)} remembered)"

    def admit(self, event: Refusal) -> int | None:
        """Return how many equal refusals were left out since the last one; None: leave this one out, too."""
        api = event.api if isinstance(event, MemberFenced) else ""
        key = type(event), api, cut_text(event.group), event.member, event.instance_id, event.error_code
        told_ms, skipped = self._told.pop(key, (None, 0))
        if told_ms is not None and event.timestamp_ms - told_ms < REPEAT_MS:
            self._told[key] = told_ms, skipped + 1
            return None
        second = event.timestamp_ms // _SECOND_MS
        if second != self._second:
            self._second, self._count = second, 0
        if self._count >= MAX_REFUSALS:
            self._on_too_many()
            return None
        self._count += 1
        self._told[key] = event.timestamp_ms, 0
        if len(self._told) > _MAX_REMEMBERED:
            del self._told[next(iter(self._told))]
        return skipped
