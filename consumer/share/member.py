"""The membership of a share group: heartbeats, which bring the assignment (KIP-932).

Nothing is handed over: an assignment says which partitions to ask for records, and several members may have
the same. So a member whose heartbeats fail goes on, and one that was removed joins again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field

from ...client.cluster import Cluster
from ...client.errors import BrokerConnectionError
from ...client.pool import Channel
from ...client.waiting import Backoff, Signal
from ...protocol import ErrorCode, KafkaError, KohortError, UnsupportedVersionError
from ...protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ..errors import FatalGroupError
from ..events import BrokerUnavailable, Event
from .records import PartitionId

#: Epochs of a member that joins, and of one that leaves.
JOIN, LEAVE = 0, -1
#: A new group's partitions come with a later heartbeat than the first, so the first ones follow quickly.
_FIRST_PAUSE_MS = 50.0
_GROWTH = 1.5
_LEAVE_MS = 2_000

_E = ErrorCode
_MOVED = frozenset({_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR, _E.REQUEST_TIMED_OUT})
#: The coordinator does not know this member, or knows it in another epoch: it joins again.
_REMOVED = frozenset({_E.UNKNOWN_MEMBER_ID, _E.FENCED_MEMBER_EPOCH})
_FATAL = {
    _E.GROUP_AUTHORIZATION_FAILED: "the broker does not allow this client to read in share group {group!r}: "
    "give its principal the operation Read on the group",
    _E.GROUP_MAX_SIZE_REACHED: "share group {group!r} is full: raise group.share.max.size, or run fewer "
    "members",
    _E.INVALID_GROUP_ID: "the broker refuses the group id {group!r}",
    _E.UNSUPPORTED_VERSION: "the cluster has no share groups: raise its feature share.version to 1 (Apache "
    "Kafka: from 4.2 on)",
    _E.GROUP_ID_NOT_FOUND: "group {group!r} is of another type than share: take another name, or delete it",
}


def refusal_of(group: str, code: ErrorCode | None) -> FatalGroupError | None:
    """What to do about an error that ends the membership; None if it does not."""
    text = None if code is None else _FATAL.get(code)
    return None if text is None else FatalGroupError(text.format(group=group))


@dataclass(slots=True, eq=False)
class ShareMembership:
    """Run ``run`` as a task. ``assigned`` is called after each change of ``assignment``."""

    cluster: Cluster
    group: str
    topics: frozenset[str]
    member_id: str
    _: KW_ONLY
    rack: str
    backoff: Backoff
    report: Callable[[Event], None]
    assigned: Callable[[], None]
    epoch: int = JOIN
    assignment: frozenset[PartitionId] = frozenset()
    _tells_topics: bool = True
    #: Whether the coordinator was asked to take it in, and has not refused.
    _joins: bool = False
    _interval_ms: float = 0.0
    _pause_ms: float = _FIRST_PAUSE_MS
    _failures: int = 0
    _changed: Signal = field(default_factory=Signal)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to these topics instead."""
        self.topics, self._tells_topics = frozenset(topics), True
        self._pause_ms = _FIRST_PAUSE_MS
        self._changed.fire()

    async def run(self) -> None:
        """Join, and stay a member; until cancelled. Raises FatalGroupError."""
        while True:
            told, self._tells_topics = self._tells_topics, False
            may_be_in = self._joins
            self._joins = may_be_in or self.epoch == JOIN
            try:
                response = await self._send_heartbeat(self.epoch, whole=told)
                if response.error_code:
                    raise KafkaError(response.error_code, response.error_message or "ShareGroupHeartbeat")
            except KohortError as error:
                self._tells_topics = True
                # without an answer it may be a member all the same
                is_lost = isinstance(error, BrokerConnectionError)
                self._joins = may_be_in or (self.epoch == JOIN and is_lost)
                await self._changed.wait(self._on_failure(error))
                continue
            self._failures, self._joins = 0, False
            self._on_heartbeat(response)
            if not self._tells_topics:
                await self._changed.wait(self._pause_ms)

    async def _send_heartbeat(self, epoch: int, *, whole: bool) -> ShareGroupHeartbeatResponse:
        return await self.cluster.request_coordinator(
            self.group,
            ShareGroupHeartbeatRequest(
                self.group,
                self.member_id,
                epoch,
                (self.rack or None) if whole else None,
                sorted(self.topics) if whole else None,
            ),
            channel=Channel.HEARTBEAT,
        )

    def _on_heartbeat(self, response: ShareGroupHeartbeatResponse) -> None:
        epoch, self.epoch = self.epoch, response.member_epoch
        self._interval_ms = float(response.heartbeat_interval_ms)
        if epoch != self.epoch:
            self._pause_ms = _FIRST_PAUSE_MS
        self._pause_ms = min(self._pause_ms * _GROWTH, self._interval_ms)
        if response.assignment is not None:
            assignment = frozenset(
                PartitionId(topic.topic_id, number)
                for topic in response.assignment.topic_partitions
                if topic.topic_id is not None
                for number in topic.partitions
            )
            if assignment != self.assignment:
                self.assignment = assignment
                self.assigned()

    def _on_failure(self, error: KohortError) -> float:
        """Return after how many milliseconds to try again. Raises FatalGroupError."""
        code = error.code if isinstance(error, KafkaError) else None
        if isinstance(error, UnsupportedVersionError):
            code = _E.UNSUPPORTED_VERSION
        if code in _REMOVED or (code is _E.GROUP_ID_NOT_FOUND and self.epoch != JOIN):
            self.epoch, self._pause_ms = JOIN, _FIRST_PAUSE_MS
        elif (refusal := refusal_of(self.group, code)) is not None:
            raise refusal from error
        elif code is _E.TOPIC_AUTHORIZATION_FAILED and self.epoch == JOIN:
            raise FatalGroupError(
                f"the broker does not allow this client to see {', '.join(sorted(self.topics))}: give its "
                "principal the operations Describe and Read on the topics"
            ) from error
        elif code is not None and self._is_final(code):
            raise FatalGroupError(f"share group {self.group!r} refuses this member: {error}") from error
        if code in _MOVED or isinstance(error, BrokerConnectionError):
            self.cluster.forget_coordinator(self.group)
        self.report(BrokerUnavailable("a heartbeat of the share group", error))
        self._failures += 1
        return self.backoff.delay_ms(self._failures - 1)

    def _is_final(self, code: ErrorCode) -> bool:
        """Whether a retry cannot help. Rights that a member has had may be given back to it."""
        return not code.retriable and code not in _MOVED and code is not _E.TOPIC_AUTHORIZATION_FAILED

    async def leave(self) -> None:
        """Leave the group, if the coordinator can be reached soon."""
        if self.epoch != JOIN or self._joins:
            self.epoch, self._joins = JOIN, False
            async with asyncio.timeout(_LEAVE_MS / 1000):
                await self._send_heartbeat(LEAVE, whole=False)
