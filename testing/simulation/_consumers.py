"""Looks at the members: S11, and S4 as they see it. What is done is kept here, for all that follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from ...client.offsets import CommittedOffset
from ...consumer import done_ahead
from ...consumer.record import Record
from ...coordinator.classic.group import live
from ...protocol import TopicPartition
from ._member import Member

if TYPE_CHECKING:
    from ._world import World


class Application(Protocol):
    """What the members of a schedule do with records: one object for all of them, made for each schedule.

    What ``handle`` raises means that the record is not done: it comes again. ``settled`` is called at the
    end, when every record was done at least once; ``produced`` is how many there are of each partition. What
    it raises is what the schedule fails by.
    """

    def handle(self, record: Record, /) -> None: ...
    def settled(self, produced: Mapping[TopicPartition, int], /) -> None: ...


MakeApplication = Callable[[], Application]


class Consumers:
    """``application`` may be None: then records are done, and that is all."""

    def __init__(self, world: World, application: Application | None) -> None:
        self._world = world
        self._application = application
        #: Everything before this offset is done.
        self._prefix: dict[tuple[str, TopicPartition], int] = {}
        self._ahead: dict[tuple[str, TopicPartition], set[int]] = {}

    def done_before(self, group: str, partition: TopicPartition) -> int:
        """Everything before this offset has been done by some member of the group."""
        return self._prefix.get((group, partition), 0)

    def handled(self, member: Member, record: Record) -> bool:
        """The application is given a record; whether it is done."""
        if self._application is not None:
            try:
                self._application.handle(record)
            except Exception as error:
                self._world.say(f"{member.name}: the application raises {error!r}")
                return False
        self._done((member.plan.group, record.topic_partition), record.offset)
        return True

    def _done(self, key: tuple[str, TopicPartition], offset: int) -> None:
        self._world.stats.records += 1
        prefix = self._prefix.get(key, 0)
        if offset < prefix:
            return
        ahead = self._ahead.setdefault(key, set())
        ahead.add(offset)
        while prefix in ahead:
            ahead.remove(prefix)
            prefix += 1
        self._prefix[key] = prefix

    def settled(self) -> None:
        """All is done: the application may look at what it has."""
        if self._application is not None:
            try:
                self._application.settled(dict(self._world.ends))
            except Exception as error:
                self._world.checks.fail("A", f"the application: {error!r}")

    # --- checks -------------------------------------------------------------------------------------------

    def started(self, member: Member, partition: TopicPartition, position: int) -> None:
        """A member begins to read."""
        if self._world.trace is not None:
            self._world.say(f"{member.name} reads {partition} from {position}")
        done = self.done_before(member.plan.group, partition)
        if position > done:
            self._fail(member, f"begins {partition} at {position}, done is what is before {done}")

    def delivering(self, member: Member, partition: TopicPartition, _position: int) -> None:
        """A member delivers records."""
        membership = member.membership
        if membership.generation < 0 or partition not in membership.owned:
            self._fail(member, f"delivers from {partition}, which it has not: it is {membership}")

    def committing(self, member: Member, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """A member commits."""
        for partition, offset in offsets.items():
            key = member.plan.group, partition
            prefix = self._prefix.get(key, 0)
            if offset.offset > prefix:
                self._fail(member, f"commits {offset.offset} of {partition}, done is what is before {prefix}")
            if offset.metadata:
                ahead = self._ahead.get(key, set())
                for start, end in done_ahead.decode(offset.offset, offset.metadata):
                    if any(n >= prefix and n not in ahead for n in range(start, end)):
                        self._fail(member, f"commits {start} to {end} of {partition} as done, which is not")

    def joined(self, member: Member) -> None:
        """A member was told of a generation: nobody else in it reads what this one reads."""
        if self._is_behind(member):
            # others may have what it still reads: it was told nothing yet, and can commit nothing
            member.stale = set(member.reading)
        else:
            self._one_owner(member)

    def adopted(self, member: Member) -> None:
        """A member was given its share."""
        self._one_owner(member)

    def _is_behind(self, member: Member) -> bool:
        """Whether it was left out of the generation before, as a static member may be."""
        membership = member.membership
        return membership._owned_generation < membership.generation - 1

    def _one_owner(self, member: Member) -> None:
        generation = member.membership.generation
        if generation < 0:
            return
        shard = self._world.broker.shard
        group = None if shard is None else live(shard, member.plan.group)
        if group is None or group.generation != generation:
            return
        mine = _has(member)
        for other in self._world.members.values():
            # after a crash a number that was never durable is used again, for other members
            if other is member or not other.alive or other.membership.member_id not in group.members:
                continue
            if other.membership.generation == generation and not self._is_behind(other):
                both = mine & _has(other)
                if both:
                    names = f"{member.name} and {other.name}"
                    text = f"{names} have {sorted(both)} in generation {generation}"
                    self._world.checks.fail("S4", text)

    def _fail(self, member: Member, text: str) -> None:
        self._world.checks.fail("S11", f"{member.name} {text}")


def _has(member: Member) -> frozenset[TopicPartition]:
    """What a member owns, or still reads; not what it gives up that was others' since it was left out."""
    membership = member.membership
    owned = membership.owned - (member.stale & membership._moving)
    return owned | (member.reading.keys() - member.stale)
