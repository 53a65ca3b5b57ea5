"""One schedule: virtual time, randomness, the trace and the violations. All participants share it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields
from random import Random
from typing import Final, Generic, TypeVar
from uuid import UUID

from ....coordinator.groups.groups import GroupShard
from ....log import PartitionLog
from ._heap import Heap
from ._plan import SchedulePlan
from ._violation import Violation

#: The wall clock when a schedule begins.
START_MS: Final = 1_700_000_000_000
_TRACE_LINES: Final = 100_000

P = TypeVar("P", bound=SchedulePlan, covariant=True)


@dataclass(slots=True)
class Stats:
    """Counts of one schedule, or of several together."""

    schedules: int = 0
    events: int = 0
    requests: int = 0
    crashes: int = 0
    reloads: int = 0
    commits: int = 0
    rebalances: int = 0
    records: int = 0
    compactions: int = 0
    removals: int = 0
    network_faults: int = 0
    incidents: int = 0
    virtual_ms: int = 0

    def add(self, other: Stats) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class Schedule(ABC, Generic[P]):
    """One schedule. With ``checked`` False nothing is compared. ``traced`` keeps a line for each event."""

    def __init__(self, plan: P, *, checked: bool, traced: bool) -> None:
        self.plan = plan
        self.checked = checked
        #: What may be lost is lost: it ends with its faults, and nothing more is looked at.
        self.is_given_up = False
        self.rng = Random(plan.run_seed)
        self.heap = Heap(self.rng)
        self.trace: list[str] | None = [] if traced else None
        self.stats = Stats(schedules=1)
        self.healed = False
        #: An event reached the coordinator, or something was found: ``look`` is called after it.
        self.touched = False
        #: The coordinator's current state and log; None while it does not serve.
        self.shard: GroupShard | None = None
        self.log: PartitionLog | None = None
        #: What the coordinator's clock shows beyond virtual time.
        self.clock_off_ms = START_MS
        self.pending: Violation | None = None
        self._faults = sorted(plan.network.items())
        self._faulty = sum(plan.network.values())
        self._ids = 0

    def clock_ms(self) -> int:
        return self.heap.now + self.clock_off_ms

    def say(self, text: str) -> None:
        """Add a line to the trace."""
        if self.trace is not None and len(self.trace) < _TRACE_LINES:
            self.trace.append(f"{self.heap.now / 1000:9.3f}  {text}")

    def give_up(self, why: str) -> None:
        """Look at nothing more: what follows need not hold."""
        self.say(f"{why}: what follows is not looked at")
        self.stats.removals += 1
        self.checked, self.is_given_up = False, True

    def fail(self, name: str, text: str) -> None:
        """Report a broken invariant. Raises Violation, unless nothing is checked."""
        if self.checked:
            raise Violation(name, text)

    def found(self, name: str, text: str) -> None:
        """``fail`` for code whose exceptions a simulated program would catch: raises after the event."""
        if self.checked and self.pending is None:
            self.pending = Violation(name, text)
            self.touched = True

    def look(self) -> None:
        """Called after an event that set ``touched``."""
        self.touched = False
        if self.pending is not None:
            raise self.pending

    def new_id(self) -> str:
        """The unique part of a member id."""
        self._ids += 1
        return f"{self._ids:08x}-0000-4000-8000-000000000000"

    def network_fault(self) -> str | None:
        """Draw the fault that the next message meets, if any."""
        drawn = self.rng.random()
        if drawn >= self._faulty:
            return None
        self.stats.network_faults += 1
        for name, chance in self._faults:
            if drawn < chance:
                return name
            drawn -= chance
        return None

    def topic_of_id(self, topic_id: UUID) -> str | None:  # noqa: ARG002
        """The name of a topic; None if no topic has this id."""
        return None

    def id_of_topic(self, name: str) -> UUID | None:  # noqa: ARG002
        """The id of a topic; None if topics have none."""
        return None

    def topic_names(self) -> Iterable[str]:
        """Names of all topics, as regular expressions see them."""
        return ()

    def topics_version(self) -> object:
        """Another object whenever topics have changed."""
        return object()

    def partition_count(self, topic: str) -> int | None:  # noqa: ARG002
        """Number of a topic's partitions; None if it does not exist."""
        return None

    @abstractmethod
    def connections_broke(self) -> None:
        """Called when the coordinator's process is gone: each connection is found broken a little later."""
