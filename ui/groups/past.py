"""The page of a group in a stretch of time, of days ago: what was recorded, and what was dropped since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from ...admin import GroupAdmin, GroupDescription, GroupHistory, notation
from ...admin.groups.results import Coordinator, TimeStretch
from ...admin.pages.lanes import Lanes, lanes_of
from ...protocol import KafkaError
from ..observer import View, now_ms
from ..recording import ClusterRecorder
from .views import MANY_OFFSETS

#: Most generations of a stretch that a page shows, the newest ones.
MOST_PAST: Final = 1_000
_DAY_MS: Final = 86_400_000
_UNKNOWN: Final = "Unknown"


class AskedTime(NamedTuple):
    """A stretch of time as a reader asks for it: a day, or its ends; "" for what is not given."""

    day: str = ""
    since: str = ""
    until: str = ""

    def stretch(self, at_ms: int) -> TimeStretch | None:
        """The stretch; None if none is asked for. Raises ValueError."""
        if self.day:
            begin = notation.datetime_ms(self.day) // _DAY_MS * _DAY_MS
            return TimeStretch(begin, begin + _DAY_MS - 1)
        if not (self.since or self.until):
            return None
        from_ms = notation.moment_ms(self.since, at_ms) if self.since else 0
        until_ms = notation.moment_ms(self.until, at_ms, is_end=True) if self.until else -1
        if 0 <= until_ms < from_ms:
            raise ValueError(f"{self.until!r} is before {self.since!r}: give the earlier time first")
        return TimeStretch(from_ms, until_ms)


def asked_time(given: Mapping[str, str]) -> AskedTime:
    """What the query of a page's address asks for."""
    return AskedTime(*(given.get(name, "").strip() for name in AskedTime._fields))


class PastView(View):
    """A group in a stretch of time, as brokers and the recorder remember it. It is read once if the stretch
    has ended, else every minute.
    """

    every_s = 60.0

    def __init__(self, group: str, stretch: TimeStretch, recorder: ClusterRecorder | None = None) -> None:
        super().__init__()
        self.group = group
        self.stretch = stretch
        self.lanes: Lanes | None = None
        self._recorder = recorder

    async def look(self, admin: GroupAdmin) -> None:
        """Read the stretch of time once, and again while it has not ended."""
        at_ms = now_ms()
        is_open = self.stretch.until_ms < 0 or self.stretch.until_ms >= at_ms
        if self.lanes is not None and not is_open:
            return
        if is_open:
            now = (await admin.describe([self.group]))[self.group]
        else:
            # how it ended nobody tells
            now = GroupDescription(self.group, _UNKNOWN, "", "", None, Coordinator(-1, "", 0), ())
        history = await self._read_history(admin)
        end_ms = at_ms if is_open else self.stretch.until_ms
        self.lanes = lanes_of(now, history, end_ms, since_ms=self.stretch.from_ms or None)
        self.tell("page", None)

    async def _read_history(self, admin: GroupAdmin) -> GroupHistory:
        # one more tells whether there are more
        limit = MOST_PAST + 1
        try:
            history = await admin.history(
                self.group, limit, max_offsets=MANY_OFFSETS, every_move=True, stretch=self.stretch
            )
        except KafkaError as error:
            history = GroupHistory(self.group, "", (), (), (f"records cannot be read: {error}",))
        if self._recorder is not None:
            history = await self._recorder.with_recorded(history, self.stretch, limit)
        if len(history.generations) < limit:
            return history
        kept = history.generations[-MOST_PAST:]
        dropped = (
            f"more generations ended in this time than the {MOST_PAST:,} that are shown: for older ones "
            f"choose a time that ends at {notation.utc(kept[0].timestamp_ms)}"
        )
        return replace(history, generations=kept, unknown=(dropped, *history.unknown))
