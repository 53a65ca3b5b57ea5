"""Partitions are given up: delivery stops, what is delivered is waited for, what is done is committed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...consumer.effects import Revoke
from ...protocol import TopicPartition

if TYPE_CHECKING:
    from ._member import Member

#: How often a member that leaves looks whether it may.
_LOOK_MS = 5


@dataclass(slots=True, eq=False)
class Giving:
    """One step. ``asked`` by membership, which waits for its end; the ``last`` ends the process."""

    partitions: tuple[TopicPartition, ...]
    deadline_ms: int
    asked: bool = True
    last: bool = False
    lost: bool = False
    waits: bool = False
    commits: bool = False


class Handover:
    """Steps of one member, one after the other. ``held`` are the partitions of which nothing is delivered."""

    def __init__(self, member: Member, drain_ms: int) -> None:
        self.held: set[TopicPartition] = set()
        self.steps: deque[Giving] = deque()
        self._member = member
        self._drain_ms = drain_ms

    def revoke(self, effect: Revoke) -> None:
        """Membership gives partitions up; a loss also ends the steps that still wait."""
        if effect.lost:
            for step in self.steps:
                step.lost = True
        self.give(Giving(effect.partitions, self._member.now + self._drain_ms, lost=effect.lost))

    def leave(self, heartbeat_ms: int) -> None:
        """Give all up when the others can take over, or the time of notice is up."""
        member = self._member
        # within the shorter time not everybody hears of it
        notice_ms = heartbeat_ms // 2 if member.plan.in_order else 2 * heartbeat_ms
        told = member.membership.announce_leave("it stops", member.now)
        member.carry_out()
        self._leave_when_ready(member.now + notice_ms if told else member.now, heartbeat_ms)

    def _leave_when_ready(self, at_ms: int, drain_ms: int) -> None:
        member = self._member
        if member.now < at_ms and not member.membership.may_leave:
            member.later(_LOOK_MS, self._leave_when_ready, at_ms, drain_ms)
            return
        self.give(Giving(member.everything(), member.now + drain_ms, asked=False, last=True))

    def give(self, giving: Giving) -> None:
        self.held |= set(giving.partitions)
        self.steps.append(giving)
        self._member.later(0, self.work_off)

    def work_off(self) -> None:
        """Go on as far as that is possible now."""
        member = self._member
        while self.steps:
            giving = self.steps[0]
            if giving.commits and not giving.lost:
                return
            if giving.partitions and not giving.lost:
                if member.tracker.undone(giving.partitions) and member.now < giving.deadline_ms:
                    if not giving.waits:
                        giving.waits = True
                        member.later(giving.deadline_ms - member.now, self.work_off)
                    return
                if member.commit(giving.partitions, giving):
                    giving.commits = True
                    return
            self._end(giving)

    def committed(self, giving: Giving) -> None:
        """The commit of a step has an outcome, whichever."""
        if giving in self.steps:
            self._end(giving)
            self.work_off()

    def _end(self, giving: Giving) -> None:
        member = self._member
        self.steps.remove(giving)
        for partition in giving.partitions:
            member.tracker.end(partition)
            member.reading.pop(partition, None)
        self.held = {partition for step in self.steps for partition in step.partitions}
        if giving.last:
            member.left()
        elif giving.asked:
            member.membership.revocation_done(member.now)
            member.carry_out()
