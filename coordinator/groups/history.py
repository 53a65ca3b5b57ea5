"""Histories of groups: the newest events of each, in memory and bounded. A group without events takes no
memory.

A group's entries are divided: half are reserved for rebalances, a quarter each for joining and leaving
members and for refusals; unused entries are free for the others. So neither a thousand joins nor thousands of
refusals of one client displace the rebalances, for which histories are read. Equal refusals of the same
member are one entry with a count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Final

from ...protocol.named_tuples import NamedTuple
from ..engine.events import CoordinatorEvent
from .events import (
    GroupEvent,
    GroupRemoved,
    MemberFenced,
    RebalanceCompleted,
    RebalanceStarted,
    Refusal,
    Share,
    owned_bytes,
    shorten_texts,
    size_of,
    text_bytes,
)

#: Most entries of all groups together; beyond that, the group without events for the longest time loses its
#: history.
MAX_ENTRIES: Final = 100_000

#: Most assignments that are kept with the rebalances of one group, and of all groups. The oldest rebalances
#: lose theirs first, and with them their moves.
MAX_OWNERS: Final = 20_000
MAX_ALL_OWNERS: Final = 400_000

#: Most bytes of texts and assignments in the entries of one group, and of all groups; beyond that the oldest
#: are dropped in the same way. Texts that entries share count for each of them.
MAX_BYTES: Final = 8 << 20
MAX_ALL_BYTES: Final = 128 << 20

_PARTS: Final[dict[Share, int]] = {"rebalances": 2, "members": 1, "refusals": 1}
_ALL_PARTS: Final = sum(_PARTS.values())


class _Weight(NamedTuple):
    """Size of a kept entry: owners of assignments, and bytes of these and of texts."""

    owners: int = 0
    bytes: int = 0


_NOTHING: Final = _Weight()


@dataclass(slots=True, eq=False)
class KeptEvent:
    """An event, or ``count`` equal ones: ``event`` is the newest of them, the oldest was at ``first_ms``."""

    event: GroupEvent
    count: int
    first_ms: int
    weight: _Weight = _NOTHING


@dataclass(slots=True, eq=False)
class _GroupHistory:
    """Entries of each share, by sequence; ``size`` is their number, with the sums of their owners and
    bytes.
    """

    sequence: int = 0
    size: int = 0
    owners: int = 0
    bytes: int = 0
    shares: dict[Share, dict[Hashable, KeptEvent]] = field(default_factory=dict)


class History:
    """The newest events of each group, ``size`` at most for each; none are kept with 0."""

    def __init__(self, size: int) -> None:
        self._size = size
        # the group without events for the longest time comes first
        self._groups: dict[str, _GroupHistory] = {}
        self._entries = self._owners = self._bytes = 0

    def __repr__(self) -> str:
        return f"<History: {self._entries} events of {len(self._groups)} groups>"

    def __len__(self) -> int:
        return self._entries

    def keep(self, event: CoordinatorEvent, knows: Callable[[str], bool]) -> None:
        """Record an event, with its texts cut; ``knows`` returns whether a group exists."""
        if not isinstance(event, GroupEvent):
            return
        shorten_texts(event)
        if isinstance(event, GroupRemoved):
            self.drop(event.group)
        elif not isinstance(event, Refusal) or knows(event.group):
            # requests about groups that do not exist are refused too: those leave no trace
            self.add(event)

    def add(self, event: GroupEvent) -> None:
        """Keep an event; the oldest entries go when there is no room."""
        if not self._size:
            return
        history = self._groups.pop(event.group, None) or _GroupHistory()
        self._groups[event.group] = history
        history.sequence += 1
        event.sequence = history.sequence
        self._put_event(history, event)
        if history.size > self._size:
            self._make_room(history, event.share)
        self._bound_history(history)

    def of(self, group: str, limit: int = -1, after: int = -1) -> list[KeptEvent]:
        """A group's entries with a higher sequence than ``after``, the newest ``limit`` of them (-1: all),
        oldest first. A history that was restarted since ``after`` is returned whole.
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
        """Forget a group's entries."""
        history = self._groups.pop(group, None)
        if history is not None:
            self._entries -= history.size
            self._owners -= history.owners
            self._bytes -= history.bytes

    def drop_where(self, gone: Callable[[str], bool]) -> None:
        """Forget the entries of all groups for which ``gone`` is true."""
        for group in [group for group in self._groups if gone(group)]:
            self.drop(group)

    def _put_event(self, history: _GroupHistory, event: GroupEvent) -> None:
        share = history.shares.setdefault(event.share, {})
        if isinstance(event, RebalanceCompleted):
            for key in _entries_of_begin(share):
                # this event has its cause too
                self._remove_entry(history, share, key)
        key = _key_of(event)
        known = share.pop(key, None)
        if known is None:
            entry = KeptEvent(event, 1, event.timestamp_ms)
            history.size += 1
            self._entries += 1
        else:
            entry = KeptEvent(event, known.count + 1, known.first_ms, known.weight)
        share[key] = entry
        self._weigh_entry(history, entry, _weight_of(event))

    def _remove_entry(self, history: _GroupHistory, share: dict[Hashable, KeptEvent], key: Hashable) -> None:
        self._weigh_entry(history, share.pop(key), _NOTHING)
        history.size -= 1
        self._entries -= 1

    def _make_room(self, history: _GroupHistory, newest: Share) -> None:
        """Drop the oldest entry of the kind that exceeds its share the most, but never the newest entry."""
        over = {
            name: len(share) - (name == newest) - self._size * _PARTS[name] / _ALL_PARTS
            for name, share in history.shares.items()
        }
        share = history.shares[max(over, key=over.__getitem__)]
        self._remove_entry(history, share, next(iter(share)))

    def _weigh_entry(self, history: _GroupHistory, entry: KeptEvent, weight: _Weight) -> None:
        owners, size = weight.owners - entry.weight.owners, weight.bytes - entry.weight.bytes
        history.owners += owners
        history.bytes += size
        self._owners += owners
        self._bytes += size
        entry.weight = weight

    def _bound_history(self, history: _GroupHistory) -> None:
        if _is_heavy(history):
            for entry in history.shares.get("rebalances", {}).values():
                if not _is_heavy(history):
                    break
                if isinstance(entry.event, RebalanceCompleted):
                    # listeners may hold the same event, which must not change
                    entry.event = replace(entry.event, before=None, after=None)
                    self._weigh_entry(history, entry, _weight_of(entry.event))
        while len(self._groups) > 1 and (
            self._entries > MAX_ENTRIES or self._owners > MAX_ALL_OWNERS or self._bytes > MAX_ALL_BYTES
        ):
            self.drop(next(iter(self._groups)))


def _is_heavy(history: _GroupHistory) -> bool:
    return history.owners > MAX_OWNERS or history.bytes > MAX_BYTES


def _entries_of_begin(share: dict[Hashable, KeptEvent]) -> list[Hashable]:
    """Entries that say how the rebalance in progress began."""
    begun = []
    for key in reversed(share):
        if isinstance(share[key].event, RebalanceCompleted):
            break
        if isinstance(share[key].event, RebalanceStarted):
            begun.append(key)
    return begun


def _key_of(event: GroupEvent) -> Hashable:
    if not isinstance(event, Refusal):
        return event.sequence
    api = event.api if isinstance(event, MemberFenced) else ""
    return type(event), api, event.member, event.instance_id, event.error_code


def _weight_of(event: GroupEvent) -> _Weight:
    owners, size = 0, text_bytes(event)
    if isinstance(event, RebalanceCompleted):
        for assignments in (event.before or {}, event.after or {}):
            owners += len(assignments)
            size += sum(map(owned_bytes, assignments.values())) + sum(map(size_of, assignments))
    return _Weight(owners, size)
