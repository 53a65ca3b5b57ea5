"""What clients did and saw: who sent what and was told what, who read what, who committed what."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

#: A place in the log: (partition, offset).
Place = tuple[int, int]


#: The offset of a record that a producer was told is stored, and not where.
NOWHERE = -1


class Sent(NamedTuple):
    """A producer was told that its ``number``-th value is stored at this place."""

    number: int
    partition: int
    offset: int


class Commit(NamedTuple):
    """A group's offset of a partition that a client was told, at this tick, is stored."""

    tick: int
    partition: int
    offset: int


class Seen(NamedTuple):
    """A group's offset of a partition as somebody found it who asked; -1 for none."""

    asked: int
    answered: int
    partition: int
    offset: int
    broker: int = 1


class FetchedOffset(NamedTuple):
    """A group's offset of a partition as the broker told it, whoever asked; -1 for none."""

    asked: int
    answered: int
    group: str
    topic: str
    partition: int
    offset: int
    error: int


@dataclass(slots=True)
class WireCommit:
    """A group's offset of a partition that the broker was asked to store, and its answer if there was one."""

    asked: int
    partition: int
    offset: int
    generation: int = -1
    member: str = ""
    answered: int | None = None
    error: int | None = None
    broker: int = 1


@dataclass(slots=True)
class Session:
    """What one reader got from one start to the next, by partition in the order it came."""

    reader: str
    got: dict[int, list[tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(list))


@dataclass(slots=True)
class GroupHistory:
    """``handled``: by partition, every offset that a member was given. Times are ticks of the history."""

    wire: list[WireCommit] = field(default_factory=list)
    acknowledged: list[Commit] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    handled: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    #: Whether a record may be committed only after a member was given it.
    follows_records: bool = True
    #: Whether its members have epochs of their own (KIP-848), not one generation.
    has_epochs: bool = False
    #: Whether it has one member, which never has a reason to join again.
    steady: bool = False
    #: Who has coordinated it since when, where brokers take turns.
    tenures: list[tuple[int, int]] = field(default_factory=list)


class History:
    """Everything of one run. Appending to a list is safe from any thread; each list has one writer or order
    does not matter in it.
    """

    def __init__(self) -> None:
        self.tried: dict[str, int] = defaultdict(int)
        self.sent: dict[str, list[Sent]] = defaultdict(list)
        self.refused: dict[str, int] = defaultdict(int)
        self.sessions: list[Session] = []
        self.final: dict[Place, bytes] = {}
        self.groups: dict[str, GroupHistory] = {}
        self.fetched: list[FetchedOffset] = []
        #: When a broker's process was gone, by its node id.
        self.deaths: dict[int, list[int]] = defaultdict(list)
        self._ticks = itertools.count()

    def tick(self) -> int:
        """A number later than all that were given before."""
        return next(self._ticks)

    def group(
        self, name: str, *, follows_records: bool = True, has_epochs: bool = False, steady: bool = False
    ) -> GroupHistory:
        """A group, of this kind if it is a new one."""
        found = self.groups.get(name)
        if found is None:
            found = GroupHistory(follows_records=follows_records, has_epochs=has_epochs, steady=steady)
            self.groups[name] = found
        return found

    def session(self, reader: str) -> Session:
        """A reader begins anew."""
        self.sessions.append(Session(reader))
        return self.sessions[-1]


def value_of(producer: str, number: int) -> bytes:
    """The value that only this producer sends, and once."""
    return f"{producer}:{number}".encode()
