"""A shard in a bottle: virtual clock, a log in memory, every answer recorded, invariants after every step.

``World`` carries the shard's effects out. Writes succeed at once unless ``hold_writes`` (then ``write`` lets
the oldest go) or ``fail_next_write`` is set. Records go through their bytes, so a reload reads what Kafka
would.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from kohort.coordinator import Append, CoordinatorEvent, GroupSettings, Reply, Request, group_shard
from kohort.coordinator.classic_groups.describe import FAN_OUT as DESCRIBE_FAN_OUT
from kohort.coordinator.classic_groups.group import ClassicGroup
from kohort.coordinator.groups.delete_groups import split_delete
from kohort.coordinator.groups.durable import Durable
from kohort.coordinator.groups.groups import GroupShard
from kohort.coordinator.groups.list_groups import list_request
from kohort.coordinator.offsets.commit import resolve_commit
from kohort.coordinator.offsets.delete import resolve_delete
from kohort.coordinator.offsets.expiry import remove_topics
from kohort.coordinator.offsets.fetch import join_fetches, split_fetch
from kohort.offsets_topic import decode, encode
from kohort.protocol import ApiKey, ErrorCode, RequestContext
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from kohort.protocol.messages.list_groups import ListGroupsRequest
from kohort.statemachine import GroupState
from tests.coordinator.bodies import (
    DIRECTORY,
    RANGE_T,
    REBALANCE_MS,
    SESSION_MS,
    START_MS,
    commit_body,
    delete_body,
)
from tests.coordinator.invariants import check_invariants


class Call:
    """A request on its way; ``reply`` is its answer, once there is one."""

    def __init__(self, what: str, body: Any = None) -> None:
        self.what = what
        self.body = body
        self.answers: list[Any] = []

    def __repr__(self) -> str:
        return f"<{self.what}: {self.answers}>"

    @property
    def parked(self) -> bool:
        return not self.answers

    @property
    def reply(self) -> Any:
        assert len(self.answers) == 1, f"{self.what} has {len(self.answers)} answers"
        return self.answers[0]

    @property
    def error(self) -> int:
        """The error number of the answer."""
        return int(self.reply.error_code)


class World:
    """One shard and its surroundings; times are ms of a virtual clock."""

    def __init__(self, *, initial_delay_ms: int = 0, **settings: Any) -> None:
        self.settings = GroupSettings(group_initial_rebalance_delay_ms=initial_delay_ms, **settings)
        self.now = START_MS
        self.log: list[tuple[bytes, bytes | None]] = []
        self.notes: list[CoordinatorEvent] = []
        self.calls: list[Call] = []
        #: What happened, in order: (time, call, its answer), (time, None, records), (time, group, state).
        self.trace: list[tuple[int, Any, Any]] = []
        self.hold_writes = False
        self.fail_next_write: ErrorCode | None = None
        #: Every so many writes one fails; 0: none.
        self.fail_every = 0
        self.writes = 0
        self._ids = itertools.count(1)
        self._writes: deque[Append] = deque()
        self._states: dict[str, GroupState] = {}
        self.shard = self._shard()
        self.shard.activate(self.now)

    @property
    def groups(self) -> dict[str, ClassicGroup]:
        """The groups that live; all are classic ones."""
        return cast("dict[str, ClassicGroup]", self.shard.state.groups)

    # --- the outside ---------------------------------------------------------------------------------------

    def advance(self, ms: int) -> None:
        """Let time go by, firing each timer at its own moment."""
        end = self.now + ms
        while (deadline := self.shard.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.shard.advance(self.now)
            self._carry_out()
        self.now = end
        self.shard.advance(self.now)
        self._carry_out()

    def write(self) -> None:
        """Let the oldest held write succeed, or fail if that is set."""
        self._write(self._writes.popleft())
        self._carry_out()

    def write_all(self) -> None:
        while self._writes:
            self.write()

    @property
    def held_writes(self) -> int:
        return len(self._writes)

    def crash(self, keep: int | None = None) -> None:
        """Start over from the log (or its first ``keep`` records); held writes and parked calls are lost."""
        self._writes.clear()
        if keep is not None:
            del self.log[keep:]
        for call in self.calls:
            if call.parked:
                call.answers.append(None)
        self.shard = self._shard()
        for offset, pair in enumerate(self.log):
            self.shard.apply((decode(*pair),), offset)
        self.shard.activate(self.now)
        self._carry_out()

    def unload(self) -> None:
        self.shard.unload(self.now)
        self._carry_out()

    def topics_deleted(self, *names: str) -> None:
        remove_topics(self.shard, names)
        self._carry_out()

    def reloaded(self, keep: int | None = None) -> Durable:
        """What a fresh shard would know from the log."""
        shard = self._shard()
        for offset, pair in enumerate(self.log[:keep]):
            shard.apply((decode(*pair),), offset)
        return shard.state.durable

    # --- requests ------------------------------------------------------------------------------------------

    def join(
        self,
        group: str = "g",
        member: str = "",
        *,
        instance: str | None = None,
        offers: Sequence[Any] = RANGE_T,
        type_: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
        client: str = "c",
        host: str = "/127.0.0.1",
        reason: str | None = None,
    ) -> Call:
        body = SimpleNamespace(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member,
            group_instance_id=instance,
            protocol_type=type_,
            protocols=offers,
            reason=reason,
        )
        return self.send(ApiKey.JOIN_GROUP, version, body, RequestContext(client, host))

    def new_member(self, group: str = "g", **options: Any) -> tuple[str, Call]:
        """The two steps of a dynamic member: its id, and its JoinGroup."""
        first = self.join(group, **options)
        assert first.error == ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.reply.member_id
        return member_id, self.join(group, member_id, **options)

    def sync(
        self,
        group: str = "g",
        member: str = "",
        generation: int = 1,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        version: int = 5,
        type_: str | None = "consumer",
        protocol: str | None = "range",
    ) -> Call:
        body = SimpleNamespace(
            group_id=group,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            protocol_type=type_,
            protocol_name=protocol,
            assignments=[
                SimpleNamespace(member_id=who, assignment=data) for who, data in (assignments or {}).items()
            ],
        )
        return self.send(ApiKey.SYNC_GROUP, version, body)

    def heartbeat(
        self, group: str = "g", member: str = "", generation: int = 1, *, instance: str | None = None
    ) -> int:
        body = SimpleNamespace(
            group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
        )
        return self.send(ApiKey.HEARTBEAT, 4, body).error

    def leave(
        self, group: str, *members: tuple[str, str | None], version: int = 5, reason: str | None = None
    ) -> Call:
        if version < 3:
            body = SimpleNamespace(group_id=group, member_id=members[0][0])
        else:
            body = SimpleNamespace(
                group_id=group,
                members=[
                    SimpleNamespace(member_id=m, group_instance_id=i, reason=reason) for m, i in members
                ],
            )
        return self.send(ApiKey.LEAVE_GROUP, version, body)

    def commit(
        self,
        group: str = "g",
        offsets: dict[tuple[str, int], int] | None = None,
        member: str = "",
        generation: int = -1,
        *,
        instance: str | None = None,
        metadata: str | None = "",
        retention_ms: int = -1,
        epoch: int = -1,
        version: int = 9,
    ) -> Call:
        body = commit_body(
            group,
            {("t", 0): 1} if offsets is None else offsets,
            member,
            generation,
            instance,
            metadata,
            epoch,
            retention_ms,
        )
        most = self.settings.kohort_commit_max_partitions
        return self.send(ApiKey.OFFSET_COMMIT, version, resolve_commit(version, body, DIRECTORY, most))

    def commit_errors(self, *args: Any, **options: Any) -> list[int]:
        """The errors of an answered commit, one a partition."""
        return errors_of(self.commit(*args, **options))

    def fetch_call(
        self, group: str = "g", partitions: Iterable[tuple[str, int]] | None = None, *, stable: bool = False
    ) -> Call:
        topics = None
        if partitions is not None:
            topics = [SimpleNamespace(name=topic, partition_indexes=[p]) for topic, p in partitions]
        body = SimpleNamespace(
            groups=[SimpleNamespace(group_id=group, topics=topics, member_id=None, member_epoch=-1)],
            require_stable=stable,
        )
        return self.send(ApiKey.OFFSET_FETCH, 9, split_fetch(9, body, DIRECTORY)[0])

    def fetch(self, group: str = "g", partitions: Iterable[tuple[str, int]] | None = None) -> dict[Any, int]:
        """Committed offsets; all of them by default."""
        reply = join_fetches(9, [self.fetch_call(group, partitions).reply], DIRECTORY).groups[0]
        return {
            (topic.name, found.partition_index): found.committed_offset
            for topic in reply.topics
            for found in topic.partitions
        }

    def offset_delete(self, group: str, *partitions: tuple[str, int]) -> Call:
        return self.send(ApiKey.OFFSET_DELETE, 0, resolve_delete(delete_body(group, *partitions), DIRECTORY))

    def describe(self, group: str = "g", version: int = 6, *, operations: bool = False) -> Any:
        body = DescribeGroupsRequest([group], operations)
        (request,) = DESCRIBE_FAN_OUT.split(6, body, None)
        return self.send(ApiKey.DESCRIBE_GROUPS, version, request).reply

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[Any]:
        body = ListGroupsRequest(states, types)
        listed: list[Any] = self.send(ApiKey.LIST_GROUPS, 5, list_request(body)).reply
        return listed

    def delete(self, group: str = "g") -> Call:
        (request,) = split_delete(DeleteGroupsRequest([group]))
        return self.send(ApiKey.DELETE_GROUPS, 2, request)

    def send(self, api_key: int, version: int, body: Any, context: RequestContext | None = None) -> Call:
        call = Call(f"{ApiKey(api_key).name} at {self.now}", body)
        self.calls.append(call)
        self.shard.handle(Request(api_key, version, body, context or RequestContext("c"), call), self.now)
        self._carry_out()
        return call

    # --- shortcuts -----------------------------------------------------------------------------------------

    def state(self, group: str = "g") -> str:
        return str(self.describe(group).group_state)

    def stable(self, count: int = 1, group: str = "g", **options: Any) -> list[str]:
        """A Stable group of new dynamic members, the leader first; each has its own name as assignment."""
        members = [self.new_member(group, **options)[0] for _ in range(count)]
        while self.groups[group].is_initial:
            self.advance(self.settings.group_initial_rebalance_delay_ms)
        self.settle(members, group)
        return members

    def settle(self, members: Sequence[str], group: str = "g") -> int:
        """Every member rejoins if it must, and all sync; the generation."""
        live = self.groups[group]
        for member_id in members:
            if live.state is GroupState.PREPARING_REBALANCE and live.members[member_id].parked_join is None:
                member = live.members[member_id]
                self.join(
                    group,
                    member_id,
                    instance=member.instance_id,
                    offers=[SimpleNamespace(name=n, metadata=m) for n, m in member.protocols],
                    type_=live.protocol_type or "",
                    session_ms=member.session_timeout_ms,
                    rebalance_ms=member.rebalance_timeout_ms,
                )
        assignments = {member_id: member_id.encode() for member_id in live.members}
        for member_id in live.members:
            self.sync(
                group,
                member_id,
                live.generation,
                assignments,
                instance=live.members[member_id].instance_id,
                type_=live.protocol_type,
                protocol=live.protocol_name,
            )
        assert live.state is GroupState.STABLE, live.state
        return live.generation

    # --- inside --------------------------------------------------------------------------------------------

    def _shard(self) -> GroupShard:
        return group_shard(self.settings, lambda: str(next(self._ids)))

    def _carry_out(self) -> None:
        while effects := self.shard.take_effects():
            self._trace_states()
            for effect in effects:
                if isinstance(effect, Reply):
                    effect.handle.answers.append(effect.body)
                    self.trace.append((self.now, effect.handle, effect.body))
                elif isinstance(effect, Append):
                    self._writes.append(effect)
                elif isinstance(effect, CoordinatorEvent):
                    self.notes.append(effect)
            while self._writes and not self.hold_writes:
                self._write(self._writes.popleft())
        self._trace_states()
        check_invariants(self.shard)
        assert all(len(call.answers) <= 1 for call in self.calls), "a request was answered twice"

    def _trace_states(self) -> None:
        for group_id in {**self._states, **self.groups}:
            group = self.groups.get(group_id)
            state = None if group is None else group.state
            if self._states.get(group_id) is not state:
                self.trace.append((self.now, group_id, state))
            if state is None:
                del self._states[group_id]
            else:
                self._states[group_id] = state

    def _write(self, append: Append) -> None:
        error, self.fail_next_write = self.fail_next_write, None
        self.writes += 1
        if self.fail_every and self.writes % self.fail_every == 0:
            error = ErrorCode.NOT_ENOUGH_REPLICAS
        if error is not None:
            self.shard.append_failed(append.ticket, error, self.now)
            return
        self.trace.append((self.now, None, append.records))
        base = len(self.log)
        self.log += [encode(record) for record in append.records]
        self.shard.on_appended(append.ticket, base, self.now)


def errors_of(call: Call) -> list[int]:
    """The errors of an answer's partitions (none if it has no such)."""
    return [int(p.error_code) for topic in getattr(call.reply, "topics", ()) for p in topic.partitions]
