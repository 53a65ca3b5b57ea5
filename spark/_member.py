"""Exclusive membership of a driver in its group (``group_mode="exclusive"``): no other member can join.

The driver joins with a unique assignor name, so the coordinator refuses any other consumer or driver with
INCONSISTENT_GROUP_PROTOCOL (23). Tools show the driver as a member. Its commits have a generation, so they
are refused after the coordinator has removed it.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Iterable

from ..client import BrokerConnectionError, Channel, Cluster
from ..protocol import (
    ErrorCode,
    KafkaError,
    KohortError,
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from ..protocol.messages.heartbeat import HeartbeatRequest
from ..protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ..protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ..protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ._client import Client

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "consumer"
SESSION_TIMEOUT_MS = 10_000
HEARTBEAT_INTERVAL_SECONDS = 2.0

#: How long to try to join: a killed driver stays a member until its session times out.
JOIN_PATIENCE_SECONDS = SESSION_TIMEOUT_MS / 1000 + 5.0
_PAUSE_SECONDS = 0.25

_TAKEN = frozenset({ErrorCode.INCONSISTENT_GROUP_PROTOCOL})
_AGAIN = frozenset(
    {
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class GroupTakenError(KohortError):
    """The group has other members, so this driver cannot be its only one."""


class ExclusiveMember:
    """The only member of a group. ``take`` joins; commits then need ``generation`` and ``member_id``."""

    def __init__(
        self, client: Client, group: str, topics: Iterable[str], partitions: Iterable[TopicPartition]
    ) -> None:
        self._client = client
        self._group = group
        self._protocol = f"kohort-exclusive-{uuid.uuid4().hex[:8]}"
        self._subscription = encode_subscription(Subscription(tuple(sorted(topics))))
        self._assignment = encode_assignment(sorted(partitions))
        self._beating: asyncio.Task[None] | None = None
        self.generation = -1
        self.member_id = ""
        self.lost: KohortError | None = None

    def __repr__(self) -> str:
        return f"ExclusiveMember({self._group}, generation {self.generation}, member {self.member_id!r})"

    def take(self) -> None:
        """Join the group. Raises GroupTakenError if other members stay for longer than a session timeout."""
        self._client.run(self._take_group)

    def leave(self) -> None:
        """Leave the group, so that others need not wait for the session timeout."""
        if self.member_id:
            try:
                self._client.run(self._leave_group)
            except (KafkaError, BrokerConnectionError) as error:
                log.info("group %s: the membership ends with its session: %s", self._group, error)

    async def _take_group(self, cluster: Cluster) -> None:
        deadline = time.monotonic() + JOIN_PATIENCE_SECONDS
        while (code := await self._join_group(cluster)) is not ErrorCode.NONE:
            if code not in _AGAIN | _TAKEN:
                raise KafkaError(code, f"joining group {self._group!r}")
            if time.monotonic() > deadline:
                raise GroupTakenError(
                    f"group {self._group!r} has other members ({code.name}), so it cannot be had "
                    "exclusively: stop them, or give this job a group of its own"
                )
            if code is not ErrorCode.MEMBER_ID_REQUIRED:
                await asyncio.sleep(_PAUSE_SECONDS)
        log.info("%r taken", self)
        self._beating = asyncio.get_running_loop().create_task(self._send_heartbeats(cluster))

    async def _join_group(self, cluster: Cluster) -> ErrorCode:
        protocols = [JoinGroupRequestProtocol(self._protocol, self._subscription)]
        reason = "a Spark driver that wants the group for itself"
        timeouts = (SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS)
        join = JoinGroupRequest(
            self._group, *timeouts, self.member_id, None, PROTOCOL_TYPE, protocols, reason
        )
        joined = await cluster.request_coordinator(self._group, join, timeout_ms=SESSION_TIMEOUT_MS * 2)
        code = ErrorCode(joined.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            cluster.forget_coordinator(self._group)
        if code is not ErrorCode.NONE:
            return code
        self.member_id = joined.member_id
        rows = [SyncGroupRequestAssignment(self.member_id, self._assignment)]
        place = (self._group, joined.generation_id, self.member_id)
        sync = SyncGroupRequest(*place, None, PROTOCOL_TYPE, self._protocol, rows)
        synced = await cluster.request_coordinator(self._group, sync)
        if not synced.error_code:
            self.generation = joined.generation_id
        return ErrorCode(synced.error_code)

    async def _send_heartbeats(self, cluster: Cluster) -> None:
        """Send heartbeats until cancelled, or removed by the coordinator: then ``lost`` has the error."""
        while self.lost is None:
            await asyncio.sleep(HEARTBEAT_INTERVAL_SECONDS)
            body = HeartbeatRequest(self._group, self.generation, self.member_id, None)
            try:
                answer = await cluster.request_coordinator(self._group, body, channel=Channel.HEARTBEAT)
                await self._on_heartbeat(cluster, ErrorCode(answer.error_code))
            except (KafkaError, BrokerConnectionError) as error:
                log.info("group %s: heartbeat: %s", self._group, error)

    async def _on_heartbeat(self, cluster: Cluster, code: ErrorCode) -> None:
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            await self._join_group(cluster)
        elif code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            cluster.forget_coordinator(self._group)
        elif code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.FENCED_INSTANCE_ID,
        ):
            self.lost = KafkaError(code, f"membership of this driver in group {self._group!r}")
            log.error("group %s: the coordinator has given up this driver: %s", self._group, code.name)

    async def _leave_group(self, cluster: Cluster) -> None:
        if self._beating is not None:
            self._beating.cancel()
        who = MemberIdentity(self.member_id, None, "the job ends")
        body = LeaveGroupRequest(self._group, self.member_id, [who])
        await cluster.request_coordinator(self._group, body)
        self.member_id, self.generation = "", -1
