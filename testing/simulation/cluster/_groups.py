"""What members of the group were told by its coordinators, one after the other."""

from __future__ import annotations

from typing import Any, Final

from ....offsets_topic import GroupStored
from ....protocol import ApiKey, ErrorCode
from .._network import Call
from .._schedule import Schedule
from ._plan import ClusterPlan

GROUP_APIS: Final = (ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP)


class GroupLedger:
    """The last generation that is known to be durable, and who is in it."""

    def __init__(self, schedule: Schedule[ClusterPlan]) -> None:
        self._schedule = schedule
        self._generation = 0
        self._members: set[str] = set()
        # until when each may not be put out, in ms: a session after it was heard from last
        self._safe_until: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"GroupLedger(generation {self._generation}, {sorted(self._members)})"

    def arrived(self, call: Call) -> None:
        if call.api_key == ApiKey.LEAVE_GROUP:
            for member in call.body.members:
                self._safe_until.pop(member.member_id, None)

    def answered(self, call: Call, body: Any, *, newest: bool) -> None:
        """``newest``: nobody has coordinated the group after who answers."""
        if call.api_key == ApiKey.LEAVE_GROUP:
            return
        member, generation = call.body.member_id, call.body.generation_id
        if not body.error_code:
            if generation > self._generation and call.api_key == ApiKey.SYNC_GROUP:
                self._generation, self._members = generation, set()
            if generation == self._generation:
                self._members.add(member)
                session_ms = self._schedule.plan.consumer["session_timeout_ms"]
                self._safe_until[member] = call.note + session_ms
        elif body.error_code == ErrorCode.UNKNOWN_MEMBER_ID and newest:
            until_ms = self._safe_until.get(member, 0)
            if self._schedule.heap.now < until_ms:
                text = f"{member} is not known, though its session lasts until {until_ms}"
                self._schedule.found("B9", text)

    def was_loaded(self, who: str, stored: GroupStored | None) -> None:
        """Another coordinator has loaded the group."""
        generation = 0 if stored is None else stored.generation
        there = set() if stored is None else {member.member_id for member in stored.members}
        if generation < self._generation or (generation == self._generation and not self._members <= there):
            self._schedule.fail(
                "B9",
                f"{who} loads generation {generation} with {sorted(there)}; told was {self._generation} "
                f"with {sorted(self._members)}",
            )
