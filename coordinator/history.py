"""What happened in each group, the newest of it: in memory, bounded, and nothing where nothing happens.

A group's room is divided: half is promised to rebalances, a quarter each to members coming and going and to
refusals; what one does not use the others may. So neither a thousand joins nor a client that is refused
thousands of times drives out the rebalances, which are what a history is read for. Equal refusals of the same
member are one entry with a count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Final

from .insight import GroupEvent, MemberFenced, RebalanceNote, RebalanceStarted, Refusal, Share

#: Most entries of all groups together; over it the group that was quiet the longest loses its history.
MAX_ENTRIES: Final = 100_000

#: Most assignments that the rebalances of one group, and of all groups, are kept with. The oldest rebalances
#: give theirs up first, and then are known without their moves.
MAX_OWNERS: Final = 20_000
MAX_ALL_OWNERS: Final = 400_000

_PARTS: Final[dict[Share, int]] = {"rebalances": 2, "members": 1, "refusals": 1}
_ALL_PARTS: Final = sum(_PARTS.values())


@dataclass(slots=True, eq=False)
class HistoryEntry:
    """An event, or ``count`` equal ones: ``event`` is the newest of them, the oldest was at ``first_ms``."""

    event: GroupEvent
    count: int
    first_ms: int


@dataclass(slots=True, eq=False)
class _GroupHistory:
    """Entries of each share, in the order of their sequence; ``size`` is how many there are in all."""

    sequence: int = 0
    size: int = 0
    owners: int = 0
    shares: dict[Share, dict[Hashable, HistoryEntry]] = field(default_factory=dict)


class History:
    """The newest events of each group, ``size`` at most for each; none are kept with 0."""

    def __init__(self, size: int) -> None:
        self._size = size
        # the group that was quiet the longest comes first
        self._groups: dict[str, _GroupHistory] = {}
        self._entries = 0
        self._owners = 0

    def __repr__(self) -> str:
        return f"<History: {self._entries} events of {len(self._groups)} groups>"

    def __len__(self) -> int:
        """How many entries there are, of all groups."""
        return self._entries

    def add(self, event: GroupEvent) -> None:
        """Keep an event, and number it."""
        if not self._size:
            return
        history = self._groups.pop(event.group, None) or _GroupHistory()
        self._groups[event.group] = history
        history.sequence += 1
        event.sequence = history.sequence
        self._put(history, event)
        if history.size > self._size:
            self._make_room(history, event.share)
        self._bound(history)

    def of(self, group: str, limit: int = -1, after: int = -1) -> list[HistoryEntry]:
        """A group's entries with a higher sequence than ``after``, the newest ``limit`` of them (-1: all),
        oldest first. A history that was begun anew since ``after`` was given is given whole.
        """
        history = self._groups.get(group)
        if history is None:
            return []
        if after > history.sequence:
            after = -1
        entries = [e for share in history.shares.values() for e in share.values() if e.event.sequence > after]
        entries.sort(key=lambda entry: entry.event.sequence)
        return entries if limit < 0 else entries[max(0, len(entries) - limit) :]

    def drop(self, group: str) -> None:
        """Forget a group."""
        history = self._groups.pop(group, None)
        if history is not None:
            self._entries -= history.size
            self._owners -= history.owners

    def drop_where(self, gone: Callable[[str], bool]) -> None:
        """Forget the groups of which ``gone`` says so."""
        for group in [group for group in self._groups if gone(group)]:
            self.drop(group)

    def _put(self, history: _GroupHistory, event: GroupEvent) -> None:
        share = history.shares.setdefault(event.share, {})
        if isinstance(event, RebalanceNote):
            for key in _begun(share):
                # what it says about why it began is in this event too
                self._remove(history, share, key)
        key = _key(event)
        known = share.pop(key, None)
        if known is None:
            share[key] = HistoryEntry(event, 1, event.timestamp_ms)
            history.size += 1
            self._entries += 1
            self._count(history, _owners(event))
        else:
            share[key] = HistoryEntry(event, known.count + 1, known.first_ms)

    def _remove(self, history: _GroupHistory, share: dict[Hashable, HistoryEntry], key: Hashable) -> None:
        self._count(history, -_owners(share.pop(key).event))
        history.size -= 1
        self._entries -= 1

    def _make_room(self, history: _GroupHistory, newest: Share) -> None:
        """The oldest entry goes of the kind that has most over its share; never the one that came last."""
        over = {
            name: len(share) - (name == newest) - self._size * _PARTS[name] / _ALL_PARTS
            for name, share in history.shares.items()
            if len(share) > (name == newest)
        }
        share = history.shares[max(over, key=over.__getitem__)]
        self._remove(history, share, next(iter(share)))

    def _count(self, history: _GroupHistory, owners: int) -> None:
        history.owners += owners
        self._owners += owners

    def _bound(self, history: _GroupHistory) -> None:
        if history.owners > MAX_OWNERS:
            for entry in history.shares["rebalances"].values():
                if history.owners <= MAX_OWNERS:
                    break
                if isinstance(entry.event, RebalanceNote):
                    self._count(history, -_owners(entry.event))
                    # listeners hold the event too: theirs stays as it is
                    entry.event = replace(entry.event, before=None, after=None)
        while len(self._groups) > 1 and (self._entries > MAX_ENTRIES or self._owners > MAX_ALL_OWNERS):
            self.drop(next(iter(self._groups)))


def _begun(share: dict[Hashable, HistoryEntry]) -> list[Hashable]:
    """The beginnings of the rebalance that is under way."""
    begun = []
    for key in reversed(share):
        if isinstance(share[key].event, RebalanceNote):
            break
        if isinstance(share[key].event, RebalanceStarted):
            begun.append(key)
    return begun


def _key(event: GroupEvent) -> Hashable:
    if not isinstance(event, Refusal):
        return event.sequence
    api = event.api if isinstance(event, MemberFenced) else ""
    return type(event), api, event.member, event.instance_id, event.error_code


def _owners(event: GroupEvent) -> int:
    if not isinstance(event, RebalanceNote):
        return 0
    return len(event.before or ()) + len(event.after or ())
