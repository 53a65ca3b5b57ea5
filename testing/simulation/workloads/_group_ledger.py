"""What members of the group were told by its coordinators, one after the other."""

from __future__ import annotations

from typing import Any, Final

from ....coordinator.consumer_groups.group import ConsumerGroupRecords
from ....offsets_topic import GroupRecordType, GroupStored
from ....protocol import ApiKey, ErrorCode
from ....protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from ....protocol.messages.heartbeat import HeartbeatResponse
from ....protocol.messages.sync_group import SyncGroupResponse
from ..engine._network import SimulatedCall
from ..engine._schedule import Schedule

GROUP_APIS: Final = (
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
)
_NOT_KNOWN: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)


class GroupLedger:
    """The last generation that is known to be durable, and who is in it; of members that the coordinator
    assigns each one's epoch, and the partitions that it was given and has not given up. ``session_ms`` is
    the session timeout of members.
    """

    def __init__(self, schedule: Schedule[Any], session_ms: int) -> None:
        self._schedule = schedule
        self._session_ms = session_ms
        self._generation = 0
        self._members: set[str] = set()
        # until when each may not be put out, in ms: a session after it was heard from last
        self._safe_until: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        self._has: dict[str, set[int]] = {}

    def __repr__(self) -> str:
        return f"GroupLedger(generation {self._generation}, {sorted(self._members)})"

    def on_request(self, call: SimulatedCall) -> None:
        if call.api_key == ApiKey.LEAVE_GROUP:
            for member in call.body.members:
                self._safe_until.pop(member.member_id, None)
        elif call.api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
            member = call.body.member_id
            if call.body.member_epoch <= 0:
                for known in (self._safe_until, self._epochs, self._has):
                    known.pop(member, None)
            elif member in self._has:
                self._has[member].difference_update(
                    each.partition_index for topic in call.body.gives_up for each in topic.partitions
                )
                if call.body.topic_partitions is not None:
                    self._has[member].intersection_update(
                        number for topic in call.body.topic_partitions for number in topic.partitions
                    )

    def on_answer(self, call: SimulatedCall, body: object, *, newest: bool) -> None:
        """``newest``: nobody has coordinated the group after who answers."""
        if isinstance(body, ConsumerGroupHeartbeatResponse):
            self._beaten(call, body, newest=newest)
            return
        if not isinstance(body, SyncGroupResponse | HeartbeatResponse):
            return
        member, generation = call.body.member_id, call.body.generation_id
        if not body.error_code:
            if generation > self._generation and call.api_key == ApiKey.SYNC_GROUP:
                self._generation, self._members = generation, set()
            if generation == self._generation:
                self._members.add(member)
                # whom a former coordinator answers, the next one has not heard of
                if newest:
                    self._safe_until[member] = call.note + self._session_ms
        elif body.error_code == ErrorCode.UNKNOWN_MEMBER_ID and newest:
            until_ms = self._safe_until.get(member, 0)
            if self._schedule.heap.now < until_ms:
                text = f"{member} is not known, though its session lasts until {until_ms}"
                self._schedule.found("B9", text)

    def _beaten(self, call: SimulatedCall, body: ConsumerGroupHeartbeatResponse, *, newest: bool) -> None:
        member, epoch, now = call.body.member_id, call.body.member_epoch, self._schedule.heap.now
        until_ms, known = self._safe_until.get(member, 0), epoch == self._epochs.get(member)
        if body.error_code in _NOT_KNOWN and newest and known and now < until_ms:
            text = f"{member} in {epoch} gets {body.error_code}, though its session lasts until {until_ms}"
            self._schedule.found("B9", text)
        if body.error_code or epoch < 0:
            return
        self._epochs[member] = max(body.member_epoch, self._epochs.get(member, 0))
        if newest:
            self._safe_until[member] = call.note + self._session_ms
        given = () if body.assignment is None else body.assignment.topic_partitions
        for number in [number for topic in given for number in topic.partitions]:
            for other, has in self._has.items():
                if other != member and number in has and now < self._safe_until.get(other, 0):
                    self._schedule.found("B9", f"{member} is given partition {number}, which {other} has")
            self._has.setdefault(member, set()).add(number)

    def members_were_loaded(self, who: str, records: ConsumerGroupRecords) -> None:
        """Another coordinator has loaded a group whose members it assigns."""
        for member, epoch in self._epochs.items():
            current: Any = records.get((GroupRecordType.CURRENT, member))
            lasts = self._schedule.heap.now < self._safe_until.get(member, 0)
            if lasts and (current is None or current.epoch < epoch):
                self._schedule.fail("B9", f"{who} loads {current} of {member}, which was told epoch {epoch}")

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
