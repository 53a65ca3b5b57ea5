"""A test's running broker, with methods to disturb it. Call them from any thread except the broker's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..broker import Broker
from ..coordinator.engine.runner import Call
from ..coordinator.engine.runtime import steady_clock_ms
from ..coordinator.groups.groups import GroupShard
from ..protocol import ApiKey, RequestContext
from ._group_steps import begin_rebalance, end_session, member_of, members_of
from ._steering import RequestFaults

if TYPE_CHECKING:
    from ..consumer import Record

#: Timeout, in seconds, of each call of a test.
CALL_TIMEOUT_S = 30.0

T = TypeVar("T")


class TestClock:
    """The groups' clock in ms: the machine's time plus what a test has added."""

    __test__ = False  # pytest takes classes of this name for test cases

    def __init__(self) -> None:
        self._steady = steady_clock_ms()
        self._added_ms = 0

    def __call__(self) -> int:
        return self._steady() + self._added_ms

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if seconds < 0:
            raise ValueError(f"seconds={seconds}: time goes forward only")
        self._added_ms += round(seconds * 1000)


class RunningBroker:
    """A running broker. ``data`` is its folder, ``bootstrap`` its ``HOST:PORT``; ``faults`` makes requests
    fail.

    The arguments ``group`` and ``member`` are names; a member's is its member id or its instance id. Unknown
    ones raise KafkaError (GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID).
    """

    def __init__(
        self, broker: Broker, loop: asyncio.AbstractEventLoop, clock: TestClock, faults: RequestFaults
    ) -> None:
        assert broker.data is not None, "a broker that serves has a folder"
        self.bootstrap: str = broker.bootstrap
        #: ``HOST:PORT`` by the names of the listeners.
        self.endpoints: dict[str, str] = broker.endpoints
        self.data: Path = broker.data
        self.cluster_id: str = broker.cluster_id
        self.faults = faults
        self._broker = broker
        self._loop = loop
        self._clock = clock

    def __repr__(self) -> str:
        return f"RunningBroker({self.bootstrap})"

    @property
    def host(self) -> str:
        return self.bootstrap.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    # groups and their time

    def members(self, group: str) -> dict[str, str | None]:
        """Member ids, with the instance id of static members, in the order in which they joined."""
        found = self._steer(group, lambda shard, _: members_of(shard, group))
        return {member.member_id: member.instance_id for member in found}

    def advance_time(self, seconds: float) -> None:
        """Move the groups' clock forward: sessions, joins and retention that are due by then end now.

        This includes live members, whose last heartbeat is then longer ago, too; they rejoin with their next
        one. To end a single session, see ``expire_session``.
        """
        self._clock.advance(seconds)
        self._on_loop(self._broker.coordinator.time_moved)

    def expire_locks(self, group: str) -> int:
        """End all locks of a share group's members now, as if their time were over; return how many records
        were locked. They are delivered again, unless that was their last delivery.
        """
        return self._on_loop(lambda: self._broker.shares.end_locks(group))

    def expire_session(self, group: str, member: str) -> None:
        """Expire this member's session now; its next request is answered with UNKNOWN_MEMBER_ID."""
        self._steer(group, lambda shard, now_ms: end_session(shard, group, member, now_ms))

    def force_rebalance(self, group: str, reason: str = "the test wants a rebalance") -> bool:
        """Make all members rejoin or, in a consumer group, move to a new epoch. Returns False if a rebalance
        is already under way.
        """
        return self._steer(group, lambda shard, now_ms: begin_rebalance(shard, group, reason, now_ms))

    def fence(self, group: str, instance_id: str) -> None:
        """Replace this static member as if another process had started: the old one gets FENCED_INSTANCE_ID.

        The new member does nothing and is removed when its session expires.
        """
        member = self._steer(group, lambda shard, _: member_of(shard, group, instance_id))
        if member.instance_id is None:
            raise ValueError(
                f"{instance_id!r} is no static member, so it cannot be fenced: use expire_session, or give "
                "the member a group_instance_id"
            )
        classic = member.classic
        if classic is None:
            raise ValueError(
                f"group {group!r} is of the consumer protocol, where a newcomer takes no seat that is not "
                "free: use expire_session"
            )
        self._on_loop(lambda: self._join_again(group, classic))

    def coordinator_stopped(self) -> AbstractContextManager[None]:
        """In the block, requests about groups are answered NOT_COORDINATOR, as while a broker restarts."""
        return self.faults.coordinator_stopped()

    # records

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """``configs`` are Kafka's names with underscores. KafkaError if the topic exists."""
        from ._records import create_topic

        self._wait(create_topic(self.bootstrap, name, partitions, configs))

    def configure_share_group(self, group: str, **configs: object) -> None:
        """Set configs of a share group, by Kafka's names with underscores. It begins at the first records of
        its topics, unless ``share_auto_offset_reset`` says otherwise.
        """
        from ._records import configure_share_group

        self._wait(configure_share_group(self.bootstrap, group, configs))

    def produce(self, topic: str, values: Iterable[object], *, partition: int | None = None) -> None:
        """Write records: bytes, text, anything for JSON, pydantic models, None; or pairs (key, value).

        Without ``partition`` they are distributed as by Kafka's producers: by the key's hash, without a key
        in turn.
        """
        from ._records import produce

        self._wait(produce(self.bootstrap, topic, values, partition))

    def read(self, topic: str) -> list[Record]:
        """Read all records that a topic has now, partition by partition; none if it does not exist."""
        from ._records import read

        return self._wait(read(self.bootstrap, topic))

    # inside

    def _join_again(self, group: str, member: Any) -> None:
        from ..protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

        protocols = [JoinGroupRequestProtocol(name=n, metadata=m) for n, m in member.protocols]
        body = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            member_id="",
            group_instance_id=member.instance_id,
            protocol_type="consumer",
            protocols=protocols,
            reason="another process with the same instance id",
        )
        context = RequestContext(client_id="kohort-testing", client_host="/127.0.0.1")
        self._broker.coordinator.submit(ApiKey.JOIN_GROUP, 9, body, context, Call())

    def _steer(self, group: str, step: Callable[[GroupShard, int], T]) -> T:
        return self._on_loop(lambda: self._broker.coordinator.steer(group, step))

    def _on_loop(self, call: Callable[[], T]) -> T:
        async def run() -> T:
            return call()

        return self._wait(run())

    def _wait(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_TIMEOUT_S)
