"""``kohort groups watch``: shows a group again and again.

On a kohort broker the news is the coordinator's own events, with their causes; elsewhere, the differences
between two polls. A terminal gets a picture that is redrawn; a pipe gets a line for each change; ``--json``
gives one document per poll, each on its own line.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ...client import BrokerConnectionError
from ...protocol import ErrorCode, EventName, KafkaError, TopicPartition
from .. import notation
from ..errors import advise_error
from ..screen import Screen, plain
from ..tables import clean, short, table
from . import tables
from .group_admin import GroupAdmin
from .results import SHARE, GroupDescription, HistoryEntry

#: Events and differences that stay on the screen.
_NEWS_KEPT: Final = 12


@dataclass(frozen=True, slots=True, order=True)
class News:
    """One event or difference, in words."""

    timestamp_ms: int
    text: str


@dataclass(slots=True)
class Watcher:
    """State of a watch. ``sequence`` is the last event of the coordinator that was shown; ``told`` are those
    of share partitions' leaders.
    """

    group: str
    before: GroupDescription | None = None
    sequence: int = -1
    told: frozenset[tuple[int, str]] = frozenset()
    news: deque[News] = field(default_factory=lambda: deque(maxlen=_NEWS_KEPT))

    async def look(self, admin: GroupAdmin) -> tuple[GroupDescription, list[News]]:
        """The group now, and what is new since the last look."""
        now = (await admin.describe([self.group]))[self.group]
        entries = await admin.events(self.group, self.sequence)
        if entries is None:
            news = [News(_now_ms(), text) for text in differences(self.before, now)]
        else:
            self.sequence = entries[-1].sequence if entries else self.sequence
            # `timeline` shows the past; the last few events explain the group's present state
            shown = entries[-3:] if self.before is None else entries
            news = [News(entry.timestamp_ms, event_line(entry)) for entry in shown]
        if now.group_type == SHARE:
            news = sorted([*news, *await self._look_at_records(admin)])
        self.before = now
        self.news.extend(news)
        return now, news

    async def _look_at_records(self, admin: GroupAdmin) -> list[News]:
        """What happened to records of a share group since the last look."""
        known, entries = self.told, await admin.share_events(self.group)
        self.told = frozenset((entry.timestamp_ms, entry.cause) for entry in entries)
        if self.before is None:
            entries = entries[-3:]
        return [
            News(entry.timestamp_ms, event_line(entry))
            for entry in entries
            if (entry.timestamp_ms, entry.cause) not in known
        ]


def event_line(entry: HistoryEntry) -> str:
    """An event in one line."""
    words, details = short(entry.cause), entry.details
    if entry.kind == EventName.REBALANCE_COMPLETED:
        words = f"generation {entry.generation}, members {details.get('members')}: {words}"
    elif entry.kind == EventName.REBALANCE_STARTED:
        words = f"rebalance begins: {words}"
    elif entry.kind == EventName.GENERATION_ABANDONED:
        words = f"generation {entry.generation} is abandoned: {words}"
    elif "error" in details:
        words = f"refused with {details['error']}: {words}"
    return f"{words} [{entry.client_id} at {entry.client_host}]" if entry.client_id else words


def differences(before: GroupDescription | None, now: GroupDescription) -> Iterator[str]:
    """Changes between two looks, in words."""
    if before is None:
        return
    if before.state != now.state:
        yield f"state {before.state} > {now.state}"
    old = {member.member_id: member for member in before.members}
    new = {member.member_id: member for member in now.members}
    for gone in old.keys() - new.keys():
        yield f"{short(old[gone].owner)} left [{old[gone].client_id} at {old[gone].client_host}]"
    for come in new.keys() - old.keys():
        yield f"{short(new[come].owner)} joined [{new[come].client_id} at {new[come].client_host}]"
    if now.state == "Stable":
        held, holds = _owners_in(before), _owners_in(now)
        for partition in sorted(holds):
            if held.get(partition) != holds[partition]:
                taken_from = held.get(partition) or "nobody"
                names = f"{short(taken_from)} > {short(holds[partition])}"
                yield f"{partition.topic}-{partition.partition} {names}"


def _owners_in(found: GroupDescription) -> dict[TopicPartition, str]:
    return {partition: member.owner for member in found.members for partition in member.assignment or ()}


async def watch_group(admin: GroupAdmin, options: argparse.Namespace, screen: Screen) -> int:
    """Look every ``--interval`` seconds, ``--count`` times or until Ctrl-C. Waits while no broker answers."""
    watcher = Watcher(options.group)
    now, news = await watcher.look(admin)
    if not now.exists:
        raise advise_error(ErrorCode.GROUP_ID_NOT_FOUND, f"group {options.group!r} does not exist")
    with _view_on(watcher, screen) as view:
        view.show(now, news)
        looks = 1
        while options.count is None or looks < options.count:
            await asyncio.sleep(options.interval)
            try:
                view.show(*await watcher.look(admin))
            except (BrokerConnectionError, KafkaError) as error:
                if isinstance(error, KafkaError) and not error.retriable:
                    raise
                view.trouble(str(error))
            looks += 1
    return 0


def _view_on(watcher: Watcher, screen: Screen) -> WatchView:
    if screen.as_json:
        return Documents(screen)
    return Picture(watcher, screen) if screen.live else Lines(screen)


class WatchView(ABC):
    """Shows each look; used in ``with``."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def __enter__(self) -> WatchView:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - only a view that draws has to tidy up
        pass

    @abstractmethod
    def show(self, now: GroupDescription, news: list[News]) -> None:
        """The group now, and what is new since the last look."""

    def trouble(self, words: str) -> None:
        """The broker did not answer; the next look may succeed."""
        self.screen.remark(words)


class Documents(WatchView):
    """One JSON document a look, each on its own line."""

    def show(self, now: GroupDescription, news: list[News]) -> None:
        """Write one JSON document for this look."""
        shown = {"timestamp_ms": _now_ms(), **plain(now), "total_lag": now.total_lag, "events": plain(news)}
        self.screen.document(shown, one_line=True)


class Lines(WatchView):
    """A line for each event, and one when state, members or lag have changed."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(screen)
        self._last = ""

    def show(self, now: GroupDescription, news: list[News]) -> None:
        """Write a line for each piece of news; at the first look, the group."""
        for piece in news:
            self.screen.write(f"{notation.utc(piece.timestamp_ms)}  {clean(piece.text)}\n")
        lag = "-" if now.total_lag is None else now.total_lag
        line = f"{now.state}, members {len(now.members)}, lag {lag}"
        if line != self._last:
            self._last = line
            self.screen.write(f"{notation.utc(_now_ms())}  {line}\n")


class Picture(WatchView):
    """The group and the last news, redrawn in place."""

    def __init__(self, watcher: Watcher, screen: Screen) -> None:
        from rich.live import Live

        super().__init__(screen)
        self._watcher = watcher
        self._live = Live(console=screen.console(), auto_refresh=False)

    def __enter__(self) -> WatchView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, now: GroupDescription, news: list[News]) -> None:  # noqa: ARG002 - it shows old ones too
        """Draw the group anew, in place of the last picture."""
        self._draw(now, "Ctrl-C ends")

    def trouble(self, words: str) -> None:
        """Draw the last picture again, with these words below it."""
        if self._watcher.before is not None:
            self._draw(self._watcher.before, words)

    def _draw(self, now: GroupDescription, words: str) -> None:
        from rich.console import Group
        from rich.text import Text

        news = ((notation.utc(piece.timestamp_ms), piece.text) for piece in self._watcher.news)
        head, *rest = tables.group_report(now)
        # what matters comes first: what does not fit on the screen is cut off below
        parts: list[Any] = [
            Text(f"{notation.utc(_now_ms())}  {words}"),
            head,
            table(["WHEN (UTC)", "WHAT"], news),
            *rest,
        ]
        spaced = [piece for part in parts for piece in (part, Text(""))]
        self._live.update(Group(*spaced), refresh=True)


def _now_ms() -> int:
    return round(time.time() * 1_000)
