"""A member: the real membership and tracker on virtual time, with an application that does records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

from ...assignors import TopicInfo
from ...client.errors import BrokerConnectionError
from ...client.offsets import CommittedOffset
from ...client.pool import Channel
from ...consumer.config import consumer_config
from ...consumer.effects import Assign, Effect, Fail, NeedTopics, Report, Revoke, Send, SessionAtRisk
from ...consumer.errors import StaleRecordError
from ...consumer.events import AssignorFailed
from ...consumer.membership import Membership
from ...consumer.partition_session import PartitionSession
from ...consumer.record import Record
from ...consumer.tracker import Tracker
from ...protocol import ApiKey, ErrorCode, RequestContext, TopicPartition
from ...statemachine import MemberState
from ._consumers import Consumers
from ._network import Call, Connection, Receiver
from ._offsets import commit_request, fetch_request, fetched
from ._plan import ASIDE, MemberPlan, Plan
from ._schedule import Schedule

_REQUEST_TIMEOUT_MS = 1_000
_BATCH = 4
#: Nothing is to be learned from slow reading once nothing fails any more.
_HEALED_BATCH = 1_000
_MAX_UNDONE = 12
_RETRY_MS = 100
#: How often a member that leaves looks whether it may.
_LOOK_MS = 5


class Member:
    """One process of a member, from its start to its end; a restart is another one."""

    def __init__(
        self, schedule: Schedule[Plan], broker: Receiver, consumers: Consumers, plan: MemberPlan
    ) -> None:
        group = schedule.plan.groups[plan.group]
        self.plan = plan
        self.name = plan.name
        self.context = RequestContext(plan.name, "/10.0.0.1")
        self.versions = plan.versions
        self.alive = True
        self.leaving = False
        self.paused = False
        self.error: Exception | None = None
        self.frozen_until = 0
        self.reading: dict[TopicPartition, PartitionSession] = {}
        #: What it read when it learned that it had missed a generation.
        self.stale: set[TopicPartition] = set()
        self.tracker = Tracker()
        settings = consumer_config(
            bootstrap="localhost:9092",
            group=plan.group,
            group_instance_id=plan.instance_id,
            session_timeout_ms=schedule.plan.session_ms,
            heartbeat_interval_ms=schedule.plan.heartbeat_ms,
            rebalance_timeout_ms=schedule.plan.rebalance_ms,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            retry_backoff_ms=50,
            retry_backoff_max_ms=300,
        )
        self.membership = Membership(settings, group.make_assignors(), schedule.rng)
        self._schedule = schedule
        self._consumers = consumers
        self._heap = schedule.heap
        self._halted = False
        self._wake_ms = -1
        self._seeking: dict[TopicPartition, int] = {}
        self._assignments = 0
        self._committing = False
        self._handover = Handover(self, schedule.plan.rebalance_ms // 2)
        self.connections = {
            channel: Connection(schedule, broker)
            for channel in (Channel.GROUP, Channel.HEARTBEAT, Channel.CONTROL)
        }
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
        """Return whether it waits for no answer, gives nothing up and knows of no round to come."""
        waits = self._handover.steps or self._seeking or self._committing
        return not (waits or self.membership.another_round_follows)

    # --- what happens to it -------------------------------------------------------------------------------

    def kill(self) -> None:
        self.alive = False
        for connection in self.connections.values():
            connection.close()

    def close(self) -> None:
        """Drop all references, so that this is freed at once."""
        for part in (self.membership, self._handover, self):
            vars(part).clear()

    def leave(self) -> None:
        """Tell the group, give all up when the others are ready for it, leave and end."""
        if not self.leaving:
            self.leaving = True
            self._handover.leave(self._schedule.plan.heartbeat_ms)

    def everything(self) -> tuple[TopicPartition, ...]:
        """Partitions that it reads or is about to read."""
        return tuple(sorted(self.reading.keys() | self._seeking.keys()))

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
        self.membership.rejoin("asked for", self.now)
        self.carry_out()

    def left(self) -> None:
        self.membership.leave("it stops")
        self.carry_out()
        self.alive = False
        for channel in (Channel.GROUP, Channel.CONTROL):
            # what says goodbye goes by the other one
            self.connections[channel].close()

    # --- time ---------------------------------------------------------------------------------------------

    def later(self, delay_ms: int, action: Callable[..., None], *args: Any) -> None:
        """Do something in a while, if the process lives then."""
        heap = self._heap
        heap.at(heap.now + delay_ms, self.do, action, *args)

    def do(self, action: Callable[..., None], *args: Any) -> None:
        """Do something now, or when the process goes on."""
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
        elif isinstance(effect, Report):
            if isinstance(effect.event, AssignorFailed):
                self._schedule.fail("A", f"{self.name}: {effect.event}")
        elif isinstance(effect, Assign):
            self._assign(effect)
        elif isinstance(effect, Revoke):
            for partition in effect.partitions:
                self._seeking.pop(partition, None)
            self._handover.revoke(effect)
        elif isinstance(effect, SessionAtRisk):
            self._halted = effect.at_risk
        elif isinstance(effect, NeedTopics):
            self.later(self._schedule.rng.randint(1, 8), self._learn_topics)
        elif isinstance(effect, Fail):
            self._schedule.say(f"{self.name} gives up: {effect.error}")
            self.error = effect.error

    def _wake(self, wake_ms: int) -> None:
        if wake_ms == self._wake_ms:
            self._wake_ms = -1
            self.membership.advance(self._heap.now)
            self.carry_out()

    def _learn_topics(self) -> None:
        infos = {name: TopicInfo(count) for name, count in self._schedule.plan.topics.items()}
        self.membership.topics(infos, self.now)
        self.carry_out()

    def _assign(self, effect: Assign) -> None:
        self._consumers.assigned(self)
        self._assignments += 1
        added = dict.fromkeys(effect.added, self._assignments)
        self._seeking.update(added)
        if added:
            self._seek(added)

    # --- requests -----------------------------------------------------------------------------------------

    def send(
        self, channel: Channel, api_key: int, body: Any, memo: Any, timeout_ms: int = _REQUEST_TIMEOUT_MS
    ) -> None:
        """Send a request; ``memo`` comes back with its outcome."""
        connection = self.connections[channel]
        connection.send(Call(self, connection, api_key, body, memo), timeout_ms)

    def on_answer(self, call: Call, body: Any) -> None:
        self.do(self._answered, call, body)

    def on_failure(self, call: Call, error: BrokerConnectionError) -> None:
        self.do(self._failed, call, error)

    def _answered(self, call: Call, body: Any) -> None:
        memo = call.memo
        if type(memo) is Send:
            self.membership.answered(memo, body, self.now)
            if call.api_key == ApiKey.JOIN_GROUP:
                self._consumers.joined(self)
                if "early-commit" in self._schedule.plan.network and not self._schedule.healed:
                    self._commit_early()
            self.carry_out()
        elif call.api_key == ApiKey.OFFSET_COMMIT:
            self._committed(call, body)
        else:
            self._found(memo, body)

    def _failed(self, call: Call, error: BrokerConnectionError) -> None:
        memo = call.memo
        if type(memo) is Send:
            self.membership.failed(memo, error, self.now)
            self.carry_out()
        elif call.api_key == ApiKey.OFFSET_COMMIT:
            self._committed(call, None)
        else:
            self.later(_RETRY_MS, self._seek, memo)

    # --- records ------------------------------------------------------------------------------------------

    def _seek(self, asked: dict[TopicPartition, int]) -> None:
        wanted = {p: token for p, token in asked.items() if self._seeking.get(p) == token}
        if wanted:
            body = fetch_request(self.plan.group, wanted)
            self.send(Channel.CONTROL, ApiKey.OFFSET_FETCH, body, wanted)

    def _found(self, asked: dict[TopicPartition, int], body: Any) -> None:
        found = fetched(body)
        for partition, token in asked.items():
            if self._seeking.get(partition) != token or partition not in found:
                continue
            del self._seeking[partition]
            committed = found[partition]
            position = 0 if committed is None else committed.offset
            self._consumers.started(self, partition, position)
            self.reading[partition] = self.tracker.begin(partition, position, committed=committed)
        if self._schedule.healed:
            self.deliver()
        if any(self._seeking.get(p) == token for p, token in asked.items()):
            self.later(_RETRY_MS, self._seek, asked)

    def _poll(self) -> None:
        self.later(self.plan.poll_ms, self._poll)
        if self._heap.now >= self._commit_due_ms:
            self._commit_due_ms = self._heap.now + self.plan.commit_ms
            if not self._committing:
                self.commit(None, None)
        self.deliver()

    def deliver(self) -> None:
        if self._halted or self.paused:
            return
        batch = _HEALED_BATCH if self._schedule.healed else _BATCH
        for partition, stay in self.reading.items():
            end = self._consumers.ends[partition]
            if stay.position >= end or partition in self._handover.held or stay.undone >= _MAX_UNDONE:
                continue
            self._consumers.delivering(self, partition)
            offsets = list(range(stay.position, min(end, stay.position + batch)))
            records = [self._record(partition, stay, offsets[place]) for place in stay.fresh(offsets)]
            if records:
                stay.delivered_all([record.offset for record in records])
            stay.passed(offsets[-1] + 1)
            if records and self.plan.in_order:
                self.later(1 + self.plan.work_ms, self._work, records)
                continue
            self._schedule.rng.shuffle(records)
            for number, record in enumerate(records):
                self.later(1 + self.plan.work_ms * (number + 1) // len(records), self._work, [record])

    def _record(self, partition: TopicPartition, stay: PartitionSession, offset: int) -> Record:
        topic, number = partition
        generation = self.membership.generation
        return Record(topic, number, offset, 0, None, None, (), generation, stay.session_id)

    def _work(self, records: list[Record]) -> None:
        handled, tracker = self._consumers.handled, self.tracker
        for number, record in enumerate(records):
            if not handled(self, record):
                self.later(self.plan.poll_ms, self._work, records[number:])
                return
            try:
                tracker.done(record)
            except StaleRecordError:
                continue
        if self._handover.steps:
            self._handover.work_off()
        elif self._schedule.healed and not self._committing and not tracker.undone(self.reading):
            self.commit(None, None)

    # --- commits ------------------------------------------------------------------------------------------

    def commit(self, partitions: Iterable[TopicPartition] | None, giving: Giving | None) -> bool:
        """Commit what is done; return whether there was something to commit and a chance to."""
        if not self.membership.can_commit():
            return False
        offsets = self.tracker.committable(partitions)
        if not offsets:
            return False
        self._consumers.committing(self, offsets)
        self._committing = True
        self._send_commit(offsets, giving)
        return True

    def _send_commit(self, offsets: dict[TopicPartition, CommittedOffset], giving: Giving | None) -> None:
        generation, member_id = self.membership.generation, self.membership.member_id
        body = commit_request(self.plan.group, offsets, generation, member_id, self.plan.instance_id)
        self.send(Channel.CONTROL, ApiKey.OFFSET_COMMIT, body, (offsets, giving))

    def _commit_early(self) -> None:
        """Commit with the new generation before the assignment is known, as none of our clients does."""
        if self.membership.state is MemberState.COMPLETING:
            self._send_commit({TopicPartition(ASIDE, 0): CommittedOffset(self.membership.generation)}, None)

    def _committed(self, call: Call, reply: Any | None) -> None:
        offsets, giving = call.memo
        self._committing = False
        errors = {
            TopicPartition(topic.name, index): error
            for topic in (reply.topics if reply is not None else ())
            for index, error in topic.partitions
        }
        self.tracker.committed({p: offsets[p] for p, error in errors.items() if not error})
        refused = next(filter(None, errors.values()), 0)
        if refused:
            generation = call.body.generation_id_or_member_epoch
            self.membership.commit_refused(ErrorCode(refused), generation, self.now)
            self.carry_out()
        if giving is not None:
            self._handover.committed(giving)


@dataclass(slots=True, eq=False)
class Giving:
    """A step of a handover. Membership waits for one that it ``asked`` for; the ``last`` ends the process."""

    partitions: tuple[TopicPartition, ...]
    deadline_ms: int
    asked: bool = True
    last: bool = False
    lost: bool = False
    waits: bool = False
    commits: bool = False


class Handover:
    """Gives partitions up: stops delivery, waits for what is delivered, commits what is done; step by step.

    Nothing of the partitions ``held`` is delivered.
    """

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
