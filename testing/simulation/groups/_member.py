"""A light member: the shipped membership on virtual time, with an application that handles records at once.

Schedules of services test which records the shipped consumer delivers, marks done and commits. Schedules of
light members test the coordinator: a member reads a partition in order from its committed offset, and a
handled record is done.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Any, Protocol
from uuid import UUID, uuid5

from ....assignors import TopicInfo
from ....client.errors import BrokerConnectionError
from ....client.offsets import CommittedOffset
from ....client.pool import Channel
from ....consumer.config import ConsumerConfig, consumer_config
from ....consumer.events import AssignorFailed
from ....consumer.group.classic import Membership
from ....consumer.group.consumer_group import ConsumerMembership
from ....consumer.group.effects import (
    Assign,
    Effect,
    Fail,
    NeedTopics,
    ReportEvent,
    ResolvePattern,
    Revoke,
    Send,
    SessionAtRisk,
)
from ....consumer.record import Record
from ....coordinator.classic_groups.group import live_classic
from ....coordinator.consumer_groups.group import ConsumerGroup
from ....coordinator.consumer_groups.group import live_consumer_group as live_consumers
from ....coordinator.groups.subscribed_topics import Topic
from ....protocol import ApiKey, ErrorCode, RequestContext, TopicPartition
from ....statemachine import MemberState
from ..engine._network import Receiver, SimulatedCall, SimulatedLink
from ..engine._schedule import Schedule
from ._offsets import commit_request, fetch_request, offsets_in
from ._plan import ASIDE, GroupsPlan, MemberPlan

_TOPICS = UUID(int=0)
_REQUEST_TIMEOUT_MS = 1_000
_BATCH = 4
#: Once nothing fails any more, slow reading shows nothing new.
_HEALED_BATCH = 1_000
_RETRY_MS = 100
#: More than a broker takes with an offset.
_TOO_LARGE = "m" * 5_000
#: How often a leaving member checks whether it may leave.
_LOOK_MS = 5


class Application(Protocol):
    """Handles the members' records: one object for all of them, created for each schedule.

    If ``handle`` raises, the record is not done and is delivered again. ``settled`` is called at the end,
    when every record was done at least once; ``produced`` is how many there are of each partition. If it
    raises, the schedule fails.
    """

    def handle(self, record: Record, /) -> None: ...
    def check_results(self, produced: Mapping[TopicPartition, int], /) -> None: ...


MakeApplication = Callable[[], Application]


@dataclass(slots=True, eq=False)
class Giving:
    """A step of a handover: these partitions are given up; after the ``last`` step the process ends."""

    partitions: tuple[TopicPartition, ...]
    last: bool = False
    lost: bool = False
    #: Whether the coordinator may give them to others from when the commit is stored.
    told: bool = False


@lru_cache(maxsize=1_024)
def _settings(
    group: str, instance_id: str | None, session_ms: int, heartbeat_ms: int, rebalance_ms: int
) -> ConsumerConfig:
    """Settings of a member; checking them for each member would be a twentieth of a schedule."""
    return consumer_config(
        bootstrap="localhost:9092",
        group=group,
        group_instance_id=instance_id,
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        rebalance_timeout_ms=rebalance_ms,
        request_timeout_ms=_REQUEST_TIMEOUT_MS,
        retry_backoff_ms=50,
        retry_backoff_max_ms=300,
    )


class SimulatedMember:
    """One process of a member, from its start to its end; a restart is another one."""

    def __init__(
        self, schedule: Schedule[GroupsPlan], broker: Receiver, consumers: Consumers, plan: MemberPlan
    ) -> None:
        group = schedule.plan.groups[plan.group]
        self.plan = plan
        self.name = plan.name
        self.context = RequestContext(plan.name, "/10.0.0.1")
        self.versions = plan.speaks
        self.alive = True
        self.leaving = False
        self.paused = False
        self.error: Exception | None = None
        self.frozen_until = 0
        #: The next offset of each partition being read.
        self.reading: dict[TopicPartition, int] = {}
        #: The partitions it read when it learned that it had missed a generation.
        self.stale: set[TopicPartition] = set()
        drawn = schedule.plan
        settings = _settings(
            plan.group, plan.instance_id, drawn.session_ms, drawn.heartbeat_ms, drawn.rebalance_ms
        )
        self.membership: Membership | ConsumerMembership = (
            ConsumerMembership(settings, schedule.rng)
            if plan.consumer
            else Membership(settings, group.make_assignors(), schedule.rng)
        )
        #: The event in which the coordinator added it to the group, as far as the member knows.
        self.joined_at = -1
        #: Of a classic member: whether it was removed and may not know, and what it read when it rejoined.
        self.was_removed = False
        self.inherited: set[TopicPartition] = set()
        self._schedule = schedule
        self._consumers = consumers
        self._heap = schedule.heap
        self._halted = False
        self._wake_ms = -1
        self._seeking: dict[TopicPartition, int] = {}
        self._assignments = 0
        #: The known committed offsets, and whether a commit is under way.
        self._committed: dict[TopicPartition, int] = {}
        self._committing = False
        self.handing_over: deque[Giving] = deque()
        self.connections = {
            channel: SimulatedLink(schedule, broker)
            for channel in (Channel.GROUP, Channel.HEARTBEAT, Channel.CONTROL)
        }
        if plan.regex and isinstance(self.membership, ConsumerMembership):
            self.membership.subscribe_pattern(plan.regex, schedule.heap.now)
        else:
            self.membership.subscribe(group.topics, schedule.heap.now)
        self.later(plan.poll_ms, self._poll)
        self._commit_due_ms = self.now + plan.commit_ms
        self.carry_out()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.membership}>"

    @property
    def now(self) -> int:
        return self._heap.now

    @property
    def idle(self) -> bool:
        """Return whether it has no pending request, no handover and no announced rebalance."""
        waits = self.handing_over or self._seeking or self._committing
        return not (waits or getattr(self.membership, "another_round_follows", False))

    # --- incidents -------------------------------------------------------------------------------

    def kill(self) -> None:
        self.alive = False
        for connection in self.connections.values():
            connection.close()

    def close(self) -> None:
        """Drop all references, so that this is freed at once."""
        for part in (self.membership, self):
            vars(part).clear()

    def leave(self) -> None:
        """Announce leaving, give everything up when the others are ready or the notice is over, and end."""
        if self.leaving:
            return
        self.leaving = True
        heartbeat_ms = self._schedule.plan.heartbeat_ms
        # the shorter notice ends before everybody has heard of it
        notice_ms = heartbeat_ms // 2 if self.plan.hasty else 2 * heartbeat_ms
        told = self.membership.announce_leave("it stops", self.now)
        self.carry_out()
        self._leave_when_ready(self.now + notice_ms if told else self.now)

    def _leave_when_ready(self, at_ms: int) -> None:
        if self.now < at_ms and not self.membership.may_leave:
            self.later(_LOOK_MS, self._leave_when_ready, at_ms)
        else:
            self._give(Giving(tuple(sorted(self.reading.keys() | self._seeking.keys())), last=True))

    def stop_polling(self, until_ms: int) -> None:
        """The application hangs longer than it may between polls."""
        self.paused = True
        self.membership.pause("it does not poll")
        self.carry_out()
        self.later(max(until_ms - self.now, 0), self._poll_again)

    def _poll_again(self) -> None:
        self.paused = False
        self.membership.resume(self.now)
        self.carry_out()

    def subscribe(self, topics: Iterable[str], then: Iterable[str] = (), at_ms: int = 0) -> None:
        """Subscribe to these topics, and at a later time to others."""
        self.membership.subscribe(topics, self.now)
        self.carry_out()
        if then:
            self.later(max(at_ms - self.now, 0), self.subscribe, then)

    def rejoin(self) -> None:
        if isinstance(self.membership, Membership):
            self.membership.rejoin("asked for", self.now)
            self.carry_out()

    # --- time ---------------------------------------------------------------------------------------------

    def later(self, delay_ms: int, action: Callable[..., None], *args: object) -> None:
        """Do something later, if the process still lives."""
        heap = self._heap
        heap.at(heap.now + delay_ms, self.do, action, *args)

    def do(self, action: Callable[..., None], *args: object) -> None:
        """Do something now, or when the process is resumed."""
        if not self.alive:
            return
        if self._heap.now < self.frozen_until:
            self._heap.at(self.frozen_until, self.do, action, *args)
        else:
            action(*args)

    # --- membership ---------------------------------------------------------------------------------------

    def carry_out(self) -> None:
        membership = self.membership
        while effects := membership.take_effects():
            for effect in effects:
                self._carry_out(effect)
        deadline = membership.next_deadline()
        if deadline is not None:
            now = self._heap.now
            wake_ms = max(ceil(deadline), now)
            if self._wake_ms < now or wake_ms < self._wake_ms:
                self._wake_ms = wake_ms
                self._heap.at(wake_ms, self.do, self._wake, wake_ms)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self.send(effect.channel, effect.api_key, effect.body, effect, int(effect.timeout_ms))
        elif isinstance(effect, ReportEvent):
            if isinstance(effect.event, AssignorFailed):
                self._schedule.fail("A", f"{self.name}: {effect.event}")
        elif isinstance(effect, Assign):
            self._assign(effect)
        elif isinstance(effect, Revoke):
            self._revoke(effect)
        elif isinstance(effect, SessionAtRisk):
            self._halted = effect.at_risk
        elif isinstance(effect, NeedTopics):
            self.later(self._schedule.rng.randint(1, 8), self.learn_topics)
        elif isinstance(effect, ResolvePattern):
            self.later(0, self.subscribe, self._consumers.topics)
        elif isinstance(effect, Fail):
            self._schedule.say(f"{self.name} gives up: {effect.error}")
            self.error = effect.error

    def _wake(self, wake_ms: int) -> None:
        if wake_ms == self._wake_ms:
            self._wake_ms = -1
            self.membership.do_due(self._heap.now)
            self.carry_out()

    def learn_topics(self) -> None:
        """Refresh the metadata."""
        topics = self._consumers.topics
        infos = {name: TopicInfo(topic.partition_count) for name, topic in topics.items()}
        gone = frozenset(self._schedule.plan.topics.keys() - topics.keys())
        self.membership.on_topics(infos, self.now, gone, {topic.id: name for name, topic in topics.items()})
        self.carry_out()

    def _assign(self, effect: Assign) -> None:
        self._consumers.on_assigned(self)
        self._assignments += 1
        added = dict.fromkeys(effect.added, self._assignments)
        self._seeking.update(added)
        for partition, committed in effect.starts.items():
            self._start(partition, committed)
        if asked := {p: token for p, token in added.items() if p not in effect.starts}:
            self._seek(asked)

    def _revoke(self, effect: Revoke) -> None:
        for partition in effect.partitions:
            self._seeking.pop(partition, None)
        if effect.lost:
            for step in self.handing_over:
                step.lost = True
        self._give(Giving(effect.partitions, lost=effect.lost))

    # --- requests -----------------------------------------------------------------------------------------

    def send(
        self, channel: Channel, api_key: int, body: Any, memo: Any, timeout_ms: int = _REQUEST_TIMEOUT_MS
    ) -> None:
        """Send a request; ``memo`` comes back with its outcome."""
        connection = self.connections[channel]
        connection.send(SimulatedCall(self, connection, api_key, body, memo), timeout_ms)

    def on_answer(self, call: SimulatedCall, body: Any) -> None:
        self.do(self._on_answer, call, body)

    def on_failure(self, call: SimulatedCall, error: BrokerConnectionError) -> None:
        self.do(self._on_failure, call, error)

    def _on_answer(self, call: SimulatedCall, body: Any) -> None:
        memo = call.memo
        if type(memo) is Send:
            before = self.membership.generation
            self.membership.on_answer(memo, body, self.now)
            self._consumers.on_answer(self, before, call, body)
            if call.api_key == ApiKey.JOIN_GROUP:
                self._consumers.on_joined(self)
                if "early-commit" in self._schedule.plan.network and not self._schedule.healed:
                    self._commit_early()
            self.carry_out()
        elif call.api_key == ApiKey.OFFSET_COMMIT:
            self._commit_ended(call, body)
        else:
            self._found(memo, body)

    def _on_failure(self, call: SimulatedCall, error: BrokerConnectionError) -> None:
        memo = call.memo
        if type(memo) is Send:
            self.membership.on_failure(memo, error, self.now)
            self.carry_out()
        elif call.api_key == ApiKey.OFFSET_COMMIT:
            self._commit_ended(call, None)
        else:
            self.later(_RETRY_MS, self._seek, memo)

    # --- records ------------------------------------------------------------------------------------------

    def _seek(self, asked: dict[TopicPartition, int]) -> None:
        wanted = {p: token for p, token in asked.items() if self._seeking.get(p) == token}
        if wanted:
            body = fetch_request(self.plan.group, wanted, self.membership.identity)
            self.send(Channel.CONTROL, ApiKey.OFFSET_FETCH, body, wanted)

    def _found(self, asked: dict[TopicPartition, int], body: object) -> None:
        found = offsets_in(body)
        for partition, token in asked.items():
            if self._seeking.get(partition) != token or partition not in found:
                continue
            self._start(partition, found[partition])
        if self._schedule.healed:
            self.deliver()
        if any(self._seeking.get(p) == token for p, token in asked.items()):
            self.later(_RETRY_MS, self._seek, asked)

    def _start(self, partition: TopicPartition, committed: CommittedOffset | None) -> None:
        del self._seeking[partition]
        position = 0 if committed is None else committed.offset
        self._consumers.on_started(self, partition, position)
        self.reading[partition] = self._committed[partition] = position

    def _poll(self) -> None:
        self.later(self.plan.poll_ms, self._poll)
        self.deliver()
        if self._heap.now >= self._commit_due_ms:
            self._commit_due_ms = self._heap.now + self.plan.commit_ms
            self._commit_some()

    def deliver(self) -> None:
        """Handle some records of each partition."""
        if self._halted or self.paused:
            return
        consumers, generation = self._consumers, self.membership.generation
        batch = _HEALED_BATCH if self._schedule.healed else _BATCH
        held = {partition for step in self.handing_over for partition in step.partitions}
        for partition, position in self.reading.items():
            end = min(consumers.ends[partition], position + batch)
            if position >= end or partition in held:
                continue
            consumers.delivering(self, partition)
            for offset in range(position, end):
                record = Record(*partition, offset, 0, None, None, (), generation, 0)
                if not consumers.handle_record(self, record):
                    break
                self.reading[partition] = offset + 1
        if self._schedule.healed:
            self._commit_some()

    # --- commits and handovers ----------------------------------------------------------------------------

    def _commit_some(self) -> None:
        if not self._committing:
            self._commit(self.reading)

    def _commit(self, partitions: Iterable[TopicPartition], giving: Giving | None = None) -> bool:
        """Commit what is done; return whether a commit was sent."""
        if not self.membership.can_commit():
            return False
        offsets = {
            partition: CommittedOffset(self.reading[partition])
            for partition in partitions
            if partition in self.reading
            and self.reading[partition] != self._committed[partition]
            and partition not in self.membership.given_up
        }
        if not offsets:
            return False
        if giving is not None and self.plan.consumer and self.plan.hasty:
            # refused: the shipped consumer, too, says less then and tries again
            offsets = {p: replace(said, metadata=_TOO_LARGE) for p, said in offsets.items()}
        self._committing = True
        self._send_commit(offsets, giving)
        return True

    def _send_commit(self, offsets: dict[TopicPartition, CommittedOffset], giving: Giving | None) -> None:
        generation, member_id = self.membership.generation, self.membership.member_id
        body = commit_request(self.plan.group, offsets, generation, member_id, self.plan.instance_id)
        self.send(Channel.CONTROL, ApiKey.OFFSET_COMMIT, body, (offsets, giving))
        if giving is not None and not giving.lost:
            giving.told = isinstance(self.membership, ConsumerMembership)
            self.membership.gives_up(giving.partitions, offsets, self.now)
            self.carry_out()

    def _commit_early(self) -> None:
        """Commit with the new generation before the assignment is known; none of our clients does so."""
        if self.membership.state is MemberState.COMPLETING:
            self._send_commit({TopicPartition(ASIDE, 0): CommittedOffset(self.membership.generation)}, None)

    def _commit_ended(self, call: SimulatedCall, reply: Any | None) -> None:
        offsets, giving = call.memo
        self._committing = False
        refused, again = 0, {}
        for topic in reply.topics if reply is not None else ():
            for index, error in topic.partitions:
                partition = TopicPartition(topic.name, index)
                if error == ErrorCode.OFFSET_METADATA_TOO_LARGE:
                    again[partition] = replace(offsets[partition], metadata="")
                elif error:
                    refused = refused or error
                elif partition in self.reading:
                    self._committed[partition] = offsets[partition].offset
        if refused:
            generation = call.body.generation_id_or_member_epoch
            self.membership.commit_refused(ErrorCode(refused), generation, self.now)
            self.carry_out()
        if giving in self.handing_over:
            if again and not giving.lost and self.membership.can_commit():
                self._committing = True
                self._send_commit(again, giving)
            else:
                self._give_records(giving)

    def _give(self, giving: Giving) -> None:
        """Stop the delivery of partitions and commit what is done a little later, step by step."""
        self.handing_over.append(giving)
        if len(self.handing_over) == 1 or giving.lost:
            self._begin_step()

    def _begin_step(self) -> None:
        step = self.handing_over[0]
        self.later(0 if step.lost else self.plan.work_ms, self._work_off, step)

    def _work_off(self, step: Giving) -> None:
        if step in self.handing_over and (step.lost or not self._commit(step.partitions, step)):
            self._give_records(step)

    def _give_records(self, step: Giving) -> None:
        self.handing_over.remove(step)
        for partition in step.partitions:
            self.reading.pop(partition, None)
        if step.last:
            self.membership.leave("it stops")
            self.carry_out()
            self.alive = False
            for channel in (Channel.GROUP, Channel.CONTROL):
                # what says goodbye goes by the other one
                self.connections[channel].close()
            return
        if self.handing_over:
            self._begin_step()
        self.membership.revocation_done(self.now)
        self.carry_out()


class Consumers:
    """Checks the members: S11, and S4 as they see it; also keeps track of what is done.

    ``application`` may be None: then records are done, and that is all.
    """

    def __init__(
        self,
        schedule: Schedule[GroupsPlan],
        members: Mapping[str, SimulatedMember],
        application: Application | None,
    ) -> None:
        self._schedule = schedule
        self._members = members
        self._application = application
        #: The offset after the last record of each partition.
        self.ends = {
            TopicPartition(t, n): 3 for t, count in schedule.plan.topics.items() for n in range(count)
        }
        #: The topics as they are now.
        self.topics = {
            name: Topic(uuid5(_TOPICS, name), count) for name, count in schedule.plan.topics.items()
        }
        #: Recreated topics: a member that still reads the former one reads deleted records.
        self.remade: set[str] = set()
        #: Members that the coordinator removed, with the last event that did so.
        self.removed: dict[tuple[str, str], int] = {}
        #: Everything before this offset was done by some member of the group.
        self.done_before: defaultdict[tuple[str, TopicPartition], int] = defaultdict(int)

    def handle_record(self, member: SimulatedMember, record: Record) -> bool:
        """Pass a record to the application; return whether it is done."""
        if self._application is not None:
            try:
                self._application.handle(record)
            except Exception as error:
                self._schedule.say(f"{member.name}: the application raises {error!r}")
                return False
        self._schedule.stats.records += 1
        key = member.plan.group, record.topic_partition
        self.done_before[key] = max(self.done_before[key], record.offset + 1)
        return True

    def check_results(self) -> None:
        """Everything is done: let the application check its results."""
        if self._application is not None:
            try:
                self._application.check_results(dict(self.ends))
            except Exception as error:
                self._schedule.fail("A", f"the application: {error!r}")

    # --- checks -------------------------------------------------------------------------------------------

    def on_started(self, member: SimulatedMember, partition: TopicPartition, position: int) -> None:
        if self._schedule.trace is not None:
            self._schedule.say(f"{member.name} reads {partition} from {position}")
        done = self.done_before[member.plan.group, partition]
        if position > done:
            text = f"begins {partition} at {position}, done is what is before {done}"
            self._schedule.fail("S11", f"{member.name} {text}")

    def delivering(self, member: SimulatedMember, partition: TopicPartition) -> None:
        membership = member.membership
        if membership.generation < 0 or partition not in membership.owned:
            text = f"delivers from {partition}, which it has not: it is {membership}"
            self._schedule.fail("S11", f"{member.name} {text}")

    def on_joined(self, member: SimulatedMember) -> None:
        """A member has joined a generation: nobody else in it reads the same partitions."""
        shard = self._schedule.shard
        if shard is not None and live_consumers(shard, member.plan.group) is not None:
            # it hears with its SyncGroup what it has
            member.stale.clear()
        elif self._is_behind(member):
            # others may own what it still reads: it has not been told yet, and cannot commit
            member.stale = set(member.reading)
        else:
            self.on_assigned(member)

    def _is_behind(self, member: SimulatedMember) -> bool:
        """Return whether the previous generation left it out, as may happen to a static member."""
        membership = member.membership
        assert isinstance(membership, Membership)
        return membership._owned_generation < membership.generation - 1

    def on_assigned(self, member: SimulatedMember) -> None:
        """A member has received its assignment: nobody else in its generation owns the same partitions."""
        generation = member.membership.generation
        if generation < 0:
            return
        shard = self._schedule.shard
        if self._schedule.plan.mixed:
            self._one_reader(member)
        group = None if shard is None else live_classic(shard, member.plan.group)
        if group is None or group.generation != generation or not isinstance(member.membership, Membership):
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

    def on_answer(self, member: SimulatedMember, before: int, call: SimulatedCall, body: Any) -> None:
        """A member has received the answer to a request of its membership."""
        membership, now = member.membership, member.membership.generation
        if isinstance(membership, Membership):
            key = member.plan.group, membership.member_id
            member.was_removed |= self.removed.get(key, -1) > member.joined_at
            member.joined_at = call.answered_at
            if call.api_key == ApiKey.SYNC_GROUP and membership.state is MemberState.STABLE:
                moving = (member.reading.keys() - membership.owned) | membership._moving
                member.inherited = set(moving) if member.was_removed else set()
                member.was_removed = False
        elif 0 <= now < before:
            self._schedule.fail("S3", f"{member.name} fell from epoch {before} to {now}")
        elif call.api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT and not body.error_code:
            member.joined_at = call.answered_at
            if now > before and call.body.gives_up:
                self._gave_up(member)

    def _gave_up(self, member: SimulatedMember) -> None:
        """A member has heard that others get what it is giving up: they go on where it stopped."""
        shard, group = self._schedule.shard, member.plan.group
        if shard is None:
            return
        for partition in member.membership.given_up:
            entry = shard.state.durable.offset(group, partition)
            stopped = member.reading.get(partition, 0)
            if (0 if entry is None else entry.offset) < stopped:
                text = f"{member.name} gave up {partition} at {stopped}, committed is {entry}"
                self._schedule.fail("S20", text)

    def _one_reader(self, member: SimulatedMember) -> None:
        """A member of a consumer group begins to read: nobody else there may read the same."""
        shard = self._schedule.shard
        group = None if shard is None else live_consumers(shard, member.plan.group)
        if group is None:
            return
        mine = self._may_read(member, group)
        for other in self._members.values():
            if other is member or not other.alive:
                continue
            if both := mine & self._may_read(other, group):
                text = f"{member.name} and {other.name} may read {sorted(both)}"
                self._schedule.fail("S4", f"{text} at epoch {group.epoch}")

    def _may_read(self, member: SimulatedMember, group: ConsumerGroup) -> set[TopicPartition]:
        """Return the partitions that only this member of a consumer group may read."""
        membership = member.membership
        if not self._is_in(member, group):
            return set()
        has = {p for p in membership.owned | member.reading.keys() if p.topic not in self.remade}
        stopped = {p for step in member.handing_over if step.told for p in step.partitions}
        return has - member.inherited - stopped

    def _is_in(self, member: SimulatedMember, group: ConsumerGroup) -> bool:
        """Return whether the group still has this member: the member may not know that it was removed."""
        key = group.group_id, member.membership.member_id
        knows = self.removed.get(key, -1) <= member.joined_at and not member.was_removed
        return key[1] in group.members and knows


def _has(member: SimulatedMember) -> frozenset[TopicPartition]:
    """Return the partitions that a member owns or still reads, without those that others got while it was
    left out.
    """
    membership = member.membership
    assert isinstance(membership, Membership)
    owned = membership.owned - (member.stale & membership._moving)
    return owned | (member.reading.keys() - member.stale)
