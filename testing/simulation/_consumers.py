"""Looks at the members: S11, and S4 as they see it. What is done is kept here, for all that follows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Protocol

from ...client.offsets import CommittedOffset
from ...consumer import done_ahead
from ...consumer.membership import Membership
from ...consumer.partition_session import PartitionSession
from ...consumer.record import Record
from ...coordinator.classic.group import live
from ...protocol import TopicPartition
from ._plan import MemberPlan, Plan
from ._schedule import Schedule


class Application(Protocol):
    """Does the members' work on records: one object for all of them, made for each schedule.

    What ``handle`` raises means that the record is not done: it comes again. ``settled`` is called at the
    end, when every record was done at least once; ``produced`` is how many there are of each partition. What
    it raises is what the schedule fails by.
    """

    def handle(self, record: Record, /) -> None: ...
    def settled(self, produced: Mapping[TopicPartition, int], /) -> None: ...


MakeApplication = Callable[[], Application]


class Member(Protocol):
    """A member as far as it is looked at.

    ``stale``: what it read when it learned that it had missed a generation.
    """

    alive: bool
    stale: set[TopicPartition]

    @property
    def name(self) -> str: ...
    @property
    def plan(self) -> MemberPlan: ...
    @property
    def membership(self) -> Membership: ...
    @property
    def reading(self) -> Mapping[TopicPartition, PartitionSession]: ...


class Progress:
    """Offsets of a partition at which a record was done; before ``prefix`` all were."""

    __slots__ = ("ahead", "prefix")

    def __init__(self) -> None:
        self.prefix = 0
        self.ahead: set[int] = set()

    def done(self, offset: int) -> None:
        if offset >= self.prefix:
            self.ahead.add(offset)
            while self.prefix in self.ahead:
                self.ahead.remove(self.prefix)
                self.prefix += 1

    def has(self, first: int, end: int) -> bool:
        return all(n < self.prefix or n in self.ahead for n in range(first, end))


class Consumers:
    """``application`` may be None: then records are done, and that is all."""

    def __init__(
        self, schedule: Schedule[Plan], members: Mapping[str, Member], application: Application | None
    ) -> None:
        self._schedule = schedule
        self._members = members
        self._application = application
        #: The offset behind the last record of each partition.
        self.ends = {
            TopicPartition(t, n): 3 for t, count in schedule.plan.topics.items() for n in range(count)
        }
        self._progress: defaultdict[tuple[str, TopicPartition], Progress] = defaultdict(Progress)

    def done_before(self, group: str, partition: TopicPartition) -> int:
        """Everything before this offset has been done by some member of the group."""
        return self._progress[group, partition].prefix

    def handled(self, member: Member, record: Record) -> bool:
        """Give the application a record; return whether it is done."""
        if self._application is not None:
            try:
                self._application.handle(record)
            except Exception as error:
                self._schedule.say(f"{member.name}: the application raises {error!r}")
                return False
        self._schedule.stats.records += 1
        self._progress[member.plan.group, record.topic_partition].done(record.offset)
        return True

    def settled(self) -> None:
        """All is done: the application may look at what it has."""
        if self._application is not None:
            try:
                self._application.settled(dict(self.ends))
            except Exception as error:
                self._schedule.fail("A", f"the application: {error!r}")

    # --- checks -------------------------------------------------------------------------------------------

    def started(self, member: Member, partition: TopicPartition, position: int) -> None:
        if self._schedule.trace is not None:
            self._schedule.say(f"{member.name} reads {partition} from {position}")
        done = self.done_before(member.plan.group, partition)
        if position > done:
            self._fail(member, f"begins {partition} at {position}, done is what is before {done}")

    def delivering(self, member: Member, partition: TopicPartition) -> None:
        membership = member.membership
        if membership.generation < 0 or partition not in membership.owned:
            self._fail(member, f"delivers from {partition}, which it has not: it is {membership}")

    def committing(self, member: Member, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        for partition, offset in offsets.items():
            progress = self._progress[member.plan.group, partition]
            if offset.offset > progress.prefix:
                text = f"commits {offset.offset} of {partition}, done is what is before {progress.prefix}"
                self._fail(member, text)
            for start, end in done_ahead.decode(offset.offset, offset.metadata):
                if not progress.has(start, end):
                    self._fail(member, f"commits {start} to {end} of {partition} as done, which is not")

    def joined(self, member: Member) -> None:
        """A member was told of a generation: nobody else in it reads what this one reads."""
        if self._is_behind(member):
            # others may have what it still reads: it was told nothing yet, and can commit nothing
            member.stale = set(member.reading)
        else:
            self.assigned(member)

    def _is_behind(self, member: Member) -> bool:
        """Return whether it was left out of the generation before, as a static member may be."""
        membership = member.membership
        return membership._owned_generation < membership.generation - 1

    def assigned(self, member: Member) -> None:
        """A member was given its assignment: nobody else in its generation has what it has."""
        generation = member.membership.generation
        if generation < 0:
            return
        shard = self._schedule.shard
        group = None if shard is None else live(shard, member.plan.group)
        if group is None or group.generation != generation:
            return
        mine = _has(member)
        for other in self._members.values():
            # after a crash a number that was never durable is used again, for other members
            if other is member or not other.alive or other.membership.member_id not in group.members:
                continue
            if other.membership.generation == generation and not self._is_behind(other):
                both = mine & _has(other)
                if both:
                    names = f"{member.name} and {other.name}"
                    text = f"{names} have {sorted(both)} in generation {generation}"
                    self._schedule.fail("S4", text)

    def _fail(self, member: Member, text: str) -> None:
        self._schedule.fail("S11", f"{member.name} {text}")


def _has(member: Member) -> frozenset[TopicPartition]:
    """Partitions that a member owns or still reads, without those that others got while it was left out."""
    membership = member.membership
    owned = membership.owned - (member.stale & membership._moving)
    return owned | (member.reading.keys() - member.stale)
