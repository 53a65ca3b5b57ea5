"""Checks the coordinator after every event: S1 to S10. Raises Violation."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from ....coordinator import (
    AppendRefused,
    CauseKind,
    CoordinatorEvent,
    GroupRemoved,
    MemberGone,
    MemberReplaced,
    RebalanceCompleted,
)
from ....coordinator.classic_groups.group import CLASSIC_TYPE, SESSION, ClassicGroup, live_classic
from ....coordinator.consumer_groups.group import (
    CONSUMER_TYPE,
    HOLD,
    RESUME,
    REVOCATION,
    ConsumerGroup,
    restore_group,
)
from ....coordinator.consumer_groups.group import SESSION as CONSUMER_SESSION
from ....coordinator.consumer_groups.holding import EVERYONE, NO_MOVE_MS
from ....coordinator.consumer_groups.reconciliation import has_all
from ....coordinator.consumer_groups.shard_state import state_of
from ....coordinator.groups.durable import Durable
from ....coordinator.groups.groups import GroupShard
from ....protocol import ApiKey, ErrorCode, TopicPartition, decode_assignment, subscribed_topics
from ....protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ....statemachine import GROUP_TRANSITIONS, ConsumerGroupState, GroupState
from ..engine._network import SimulatedCall
from ..engine._schedule import Schedule
from ._offsets import Book, offsets_in, removed_key, same_state, values_of
from ._plan import GroupsPlan

_ROWS: Final = frozenset((row.source, row.target) for row in GROUP_TRANSITIONS)
_ALIVE: Final = frozenset({ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS})
_HEARTBEATS: Final = frozenset({ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT})
_HELD: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
_NO_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
# of a consumer group, what a group that is read from the log again must have, too
_IN_THE_LOG: Final = (
    "epoch",
    "target_epoch",
    "targets",
    "static_members",
    "owners",
    "unsettled",
    "subscribed.names",
)
_HEARD_BY: Final = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.OFFSET_COMMIT})


def stable_members(shard: GroupShard | None, group_id: str) -> int | None:
    """Return the number of a stable group's members, of either type; None while it is not stable."""
    group = None if shard is None else shard.state.find(group_id)
    if isinstance(group, ConsumerGroup):
        return len(group.members) if group.state_name == ConsumerGroupState.STABLE.value else None
    stable = isinstance(group, ClassicGroup) and group.state is GroupState.STABLE
    return len(group.members) if stable and isinstance(group, ClassicGroup) else None


class Checks:
    """Compares the coordinator's state with the requests, answers and records that were seen."""

    def __init__(self, schedule: Schedule[GroupsPlan]) -> None:
        self.book = Book()
        self._schedule = schedule
        self._seen: dict[str, tuple[Any, ...]] = {}
        self._states: dict[str, tuple[ClassicGroup, GroupState]] = {}
        self._generations: dict[str, int] = {}
        self._handed_out: dict[str, int] = {}
        self._heard: dict[tuple[str, str], int] = {}
        self._settled: dict[str, tuple[int, dict[TopicPartition, str]]] = {}
        # the topics that members of a stable classic group subscribe to
        self._stable_topics: dict[str, frozenset[str]] = {}
        # when a group was last seen with members, on the coordinator's clock; -1: it does not matter
        self._peopled: dict[str, int] = {}
        self._before: Durable | None = None
        self._known: Durable | None = None
        # requests that the coordinator has not answered
        self._open: set[SimulatedCall] = set()
        #: Requests that have arrived at a coordinator that stands still.
        self.unread: set[SimulatedCall] = set()
        # duplicates of requests that arrived later, with what was known of their senders
        self._late: dict[SimulatedCall, object] = {}
        #: Removed members, with the last event that removed them.
        self.removed: dict[tuple[str, str], int] = {}

    # --- requests and answers -----------------------------------------------------------------------------

    def on_request(self, call: SimulatedCall) -> None:
        """Called before a request is handled."""
        self._schedule.touched = True
        self._open.add(call)
        key = call.api_key
        if call.is_late:
            self._late[call] = self._known_of(call.body)
        if key in _HEARTBEATS:
            call.note = self._schedule.heap.now
            return
        body, now_ms = call.body, self._schedule.clock_ms()
        if key == ApiKey.OFFSET_COMMIT:
            self.book.on_request(call, body.group_id, values_of(body), now_ms)
            call.note = self._may_commit(body)
        elif key == ApiKey.OFFSET_FETCH:
            call.note = self._schedule.heap.events
        elif key in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP):
            call.note = (body.group_id, self._round(call))
        elif key == ApiKey.DELETE_GROUPS:
            for group in body.groups_names:
                self.book.on_request(call, group, dict.fromkeys(self.book.partitions(group)), now_ms)
        elif key == ApiKey.OFFSET_DELETE:
            gone = [TopicPartition(t.name, p.partition_index) for t in body.topics for p in t.partitions]
            self.book.on_request(call, body.group_id, dict.fromkeys(gone), now_ms)

    def on_answer(self, call: SimulatedCall, reply: Any) -> None:
        self._schedule.touched = True
        self._open.discard(call)
        key = call.api_key
        known = self._late.pop(call, None)
        # what the log refused may be in it when it is read again
        refused = getattr(reply, "error_code", 0) == ErrorCode.NOT_COORDINATOR
        if known is not None and (refused or known is not self._known_of(call.body)):
            # as in Apache Kafka, the sender's claim is believed: no more than it owned long ago
            self.removed[call.body.group_id, call.body.member_id] = self._schedule.heap.events
        if self._schedule.trace is not None:
            text = repr(reply)
            self._schedule.say(f"{call}: {text if len(text) < 300 else text[:300] + '...'}")
        if key in _HEARTBEATS:
            # a static member's leaving does not restart its session
            if reply.error_code in _ALIVE and getattr(call.body, "member_epoch", 0) >= 0:
                # as in Apache Kafka it counts from when it came, though its answer waits for a write and the
                # process may stand still meanwhile; one that is held, not from longer ago than it may be held
                heard, is_held = call.note, getattr(call.body, "hold_ms", 0) > 0
                if is_held:
                    heard = max(heard, self._schedule.heap.now - self._schedule.plan.session_ms // 3)
                self._heard[call.body.group_id, call.body.member_id] = heard
            if getattr(reply, "member_epoch", 0) > 0:
                group = call.body.group_id
                self._handed_out[group] = max(self._handed_out.get(group, 0), reply.member_epoch)
            return
        if key == ApiKey.OFFSET_COMMIT:
            self._commit_answered(call, reply)
        elif key == ApiKey.OFFSET_FETCH:
            self._fetch_answered(call, reply)
        elif key == ApiKey.SYNC_GROUP and not reply.error_code:
            group = call.body.group_id
            self._handed_out[group] = max(self._handed_out.get(group, 0), call.body.generation_id)
        elif key == ApiKey.DELETE_GROUPS:
            for result in reply.results:
                for partition in self.book.partitions(result.group_id):
                    self._outcome(call, result.group_id, partition, result.error_code)
        elif key == ApiKey.OFFSET_DELETE:
            for topic in reply.topics:
                for row in topic.partitions:
                    partition = TopicPartition(topic.name, row.partition_index)
                    self._outcome(call, call.body.group_id, partition, reply.error_code or row.error_code)
        if key in _HEARD_BY and self._restarts_session(call, reply):
            who = getattr(reply, "member_id", "") or call.body.member_id
            self._heard[call.body.group_id, who] = self._schedule.heap.now

    def _known_of(self, body: object) -> object:
        """The assignment of a request's sender as a member of a consumer group; None if it is no member."""
        shard = self._schedule.shard
        group = None if shard is None else shard.state.find(getattr(body, "group_id", ""))
        if not isinstance(group, ConsumerGroup):
            return None
        member = group.members.get(getattr(body, "member_id", ""))
        return None if member is None else member.current

    def _restarts_session(self, call: SimulatedCall, reply: Any) -> bool:
        """Return whether the answered request restarts the member's session."""
        if call.api_key == ApiKey.OFFSET_COMMIT:
            # a request about topics that do not exist is answered without asking the group
            errors = [error for topic in reply.topics for _, error in topic.partitions]
            shard = self._schedule.shard
            if shard is None or live_classic(shard, call.body.group_id) is None:
                return False
            return call.note is True and not all(error in _NO_TOPIC for error in errors)
        if reply.error_code not in _ALIVE:
            return False
        if not reply.error_code:
            return True
        # an immediate REBALANCE_IN_PROGRESS does not count as a sign of life
        return bool(call.note != (call.body.group_id, self._round(call)))

    def _round(self, call: SimulatedCall) -> object:
        shard = self._schedule.shard
        group = None if shard is None else live_classic(shard, call.body.group_id)
        return None if group is None else (group.generation, group.state)

    def _commit_answered(self, call: SimulatedCall, reply: OffsetCommitResponse) -> None:
        group, taken = call.body.group_id, 0
        for topic in reply.topics:
            for index, error in topic.partitions:
                self._outcome(call, group, TopicPartition(topic.name, index), error)
                if not error:
                    taken = 1
                    self._require_durable()
                    if call.note is False:
                        self._schedule.fail("S2", f"{call} is acknowledged: {call.body}")
        self._schedule.stats.commits += taken

    def _fetch_answered(self, call: SimulatedCall, reply: object) -> None:
        if not self._schedule.checked:
            return
        for partition, found in offsets_in(reply).items():
            value = None if found is None else (found.offset, found.metadata)
            self.book.check_read(call.body.group_id, partition, value, call.note)

    def _outcome(self, call: SimulatedCall, group: str, partition: TopicPartition, error: int) -> None:
        if not error:
            self.book.on_confirmed(call, group, partition, self._schedule.heap.events)
        elif error in _NEVER_WRITTEN:
            self.book.on_refused(call, group, partition)

    def _may_commit(self, body: OffsetCommitRequest) -> bool | None:
        """Return whether the group as it is may take a commit; None where that is seen later."""
        shard = self._schedule.shard
        if shard is None or shard.is_busy(body.group_id):
            return None
        consumers = shard.state.find(body.group_id)
        if isinstance(consumers, ConsumerGroup):
            return _may_commit(consumers, body)
        group = live_classic(shard, body.group_id)
        generation = body.generation_id_or_member_epoch
        if generation < 0:
            return group is None or not group.members
        return (
            group is not None
            and generation == group.generation
            and body.member_id in group.members
            and group.state is not GroupState.COMPLETING_REBALANCE
        )

    def _require_durable(self) -> None:
        log = self._schedule.log
        if self._schedule.plan.fsync and log is not None and log.recovery_point < log.log_end_offset:
            self._schedule.fail("S6", "a commit is acknowledged that is not on the disk")

    # --- the log ------------------------------------------------------------------------------------------

    def removing(self, key: bytes, now_ms: int) -> None:
        """A tombstone is about to be written: asked for, or of an offset that has expired."""
        removed = removed_key(key)
        if removed is None:
            return
        group_id, partition = removed
        if partition is None:
            self._generations.pop(group_id, None)
            self._handed_out.pop(group_id, None)
            self._settled.pop(group_id, None)
        elif not self.book.may_be_gone(group_id, partition):
            if self._schedule.checked and not self._is_expired(group_id, partition, now_ms):
                self._schedule.fail(
                    "S1", f"{partition} of {group_id} is removed, which nobody asked for, at {now_ms}"
                )
            self.book.on_gone(group_id, partition.topic)
        self._schedule.stats.removals += 1

    def _is_expired(self, group_id: str, partition: TopicPartition, now_ms: int) -> bool:
        shard, retention_ms = self._schedule.shard, self._schedule.plan.retention_ms
        if shard is None or self.book.age_ms(shard.state.durable, group_id, partition, now_ms) < retention_ms:
            return False
        consumers = shard.state.groups.get(group_id)
        if isinstance(consumers, ConsumerGroup):
            # also of an empty one the age counts from the commit, as in Apache Kafka
            return not consumers.subscribes_to(partition.topic)
        # it may have been decided earlier in this event: timers that are late fire together
        (before, *_) = self._seen.get(group_id, (None,))
        if isinstance(before, ConsumerGroup) and not before.subscribes_to(partition.topic):
            return True
        stable_topics = self._stable_topics.get(group_id)
        if stable_topics is not None and partition.topic not in stable_topics:
            return True
        group = live_classic(shard, group_id)
        if group is None or not group.members:
            return now_ms - self._peopled.get(group_id, -1) >= retention_ms
        return group.state is GroupState.STABLE and partition.topic not in _topics_of(group)

    def on_crash(self, *, torn: bool) -> None:
        """The coordinator's run has ended; ``torn``: in the middle of something."""
        self._before = None if torn else self._known
        for group_id, stored in ({} if self._known is None else self._known.of_type(CLASSIC_TYPE)).items():
            if not stored.members:
                # who joined since then is forgotten; without a protocol, the age counts from the commit
                self._peopled[group_id] = stored.state_timestamp_ms if stored.protocol_type else -1
        self._known = None
        by_group = (
            self._seen,
            self._settled,
            self._states,
            self._stable_topics,
            self._generations,
            self._heard,
        )
        for each in by_group:
            each.clear()

    def on_gone(self) -> None:
        self._open.clear()
        self._late.clear()
        self.unread.clear()

    def on_loaded(self, skipped: int) -> None:
        shard = self._schedule.shard
        assert shard is not None
        durable = shard.state.durable
        self._schedule.say(f"loaded: {len(shard.state.group_ids())} groups")
        now = self._schedule.heap.now
        for group in shard.state.groups.values():
            for member_id in group.members if isinstance(group, ClassicGroup | ConsumerGroup) else ():
                self._heard[group.group_id, member_id] = now
        if self._schedule.checked:
            if skipped and not self._schedule.plan.flips:
                self._schedule.fail("S7", f"{skipped} pieces of the log could not be read back")
            self.book.check(durable, "the log read back has")
            for group_id, generation in self._handed_out.items():
                stored = shard.state.find(group_id)
                if not isinstance(stored, ClassicGroup | ConsumerGroup) or stored.generation < generation:
                    self._schedule.fail(
                        "S3", f"generation {generation} of {group_id} is read back as {stored}"
                    )
            if self._before is not None:
                same_state(self._before, durable, "the log read back")
        self._before = None
        self._schedule.touched = True

    def changed_while_loading(self) -> None:
        """The log changed while it was loaded: the loaded state will have more than before."""
        self._before = None

    def on_compacted(self, read_back: Callable[[], Durable]) -> None:
        """A compaction has ended: loading the log must give the coordinator's state."""
        shard = self._schedule.shard
        if self._schedule.checked and shard is not None:
            same_state(shard.state.durable, read_back(), "the compacted log")

    def on_event(self, note: CoordinatorEvent) -> None:
        if self._schedule.trace is not None:
            self._schedule.say(f"{note.name}: {note}")
        kind = type(note)
        if kind is AppendRefused:
            # the log may be offline without any client whose request would show it
            self._schedule.touched = True
        if isinstance(note, MemberGone | MemberReplaced):
            who = note.old_member if isinstance(note, MemberReplaced) else note.member
            self.removed[note.group, who] = self._schedule.heap.events
        if kind is RebalanceCompleted:
            self._schedule.stats.rebalances += 1
        elif isinstance(note, GroupRemoved):
            self._generations.pop(note.group, None)
            self._stable_topics.pop(note.group, None)
        elif isinstance(note, MemberGone) and note.cause_kind is CauseKind.SESSION_EXPIRED:
            self._check_expired(note)

    def _check_expired(self, note: MemberGone) -> None:
        heard = self._heard.get((note.group, note.member))
        silent_ms = self._schedule.heap.now - (0 if heard is None else heard)
        if silent_ms < self._schedule.plan.session_ms:
            self._schedule.fail(
                "S8", f"{note.member} of {note.group} expires {silent_ms} ms after it was heard"
            )
        for call in self.unread:
            body = call.body
            if call.api_key in _HEARTBEATS and (body.group_id, body.member_id) == (note.group, note.member):
                self._schedule.fail("S8", f"{note.member} of {note.group} expires, and {call} has arrived")

    # --- the live state -----------------------------------------------------------------------------------

    def look(self) -> None:
        """Check everything after an event that reached the coordinator."""
        shard = self._schedule.shard
        if self._schedule.checked and shard is not None:
            self._known = durable = shard.state.durable
            self.book.check(durable, "the coordinator has")
            seen, now_ms = self._seen, self._schedule.clock_ms()
            for group_id, group in shard.state.groups.items():
                if isinstance(group, ConsumerGroup):
                    self._consumer_group(shard, group, now_ms)
                    continue
                assert isinstance(group, ClassicGroup)
                members = group.members
                if members:
                    self._peopled[group_id] = now_ms
                waiting = (group.awaiting_join_count, len(group.pending_join))
                sign = (group.state, group.generation, len(members), *waiting)
                if seen.get(group_id) != sign:
                    seen[group_id] = sign
                    self._group(shard, group)

    def _group(self, shard: GroupShard, group: ClassicGroup) -> None:
        group_id, state = group.group_id, group.state
        known, before = self._states.get(group_id, (None, None))
        if known is not group or before is not state:
            self._states[group_id] = group, state
            row = (group.previous_state, state)
            if known is group and row not in _ROWS:
                self._schedule.fail("S5", f"{group_id} went from {row[0].value} to {row[1].value}")
        if known is group and group.generation < self._generations.get(group_id, 0):
            self._schedule.fail("S3", f"{group_id} fell back to generation {group.generation}")
        if state is not GroupState.STABLE:
            self._stable_topics.pop(group_id, None)
        elif group_id not in self._stable_topics:
            self._stable_topics[group_id] = _topics_of(group)
        self._generations[group_id] = group.generation
        instances = [m.instance_id for m in group.members.values() if m.instance_id is not None]
        if len(set(instances)) < len(instances):
            self._schedule.fail("S9", f"{group_id} has members {list(group.members)} for {instances}")
        self._limits(group)
        self._check_parked(shard, group)
        self._timers(shard, group)
        if state is GroupState.STABLE and (known is not group or before is not state):
            self._shares(group)

    def _consumer_group(self, shard: GroupShard, group: ConsumerGroup, now_ms: int) -> None:
        group_id = group.group_id
        epochs = {member_id: member.current for member_id, member in group.members.items()}
        sign = group, group.epoch, group.target_epoch, epochs
        # of an empty one the age counts from the commit, also when a classic group takes its place
        self._peopled[group_id] = now_ms if group.members else -1
        before = self._seen.get(group_id)
        if before == sign:
            return
        self._seen[group_id] = sign
        if before is not None and before[0] is group:
            _, epoch, target_epoch, was = before
            fell = [id_ for id_, each in epochs.items() if id_ in was and 0 < each.epoch < was[id_].epoch]
            if group.epoch < epoch or group.target_epoch < target_epoch or fell:
                self._schedule.fail(
                    "S3", f"{group_id} fell back from {before[1:]} to {sign[1:]}: {fell or 'the group'}"
                )
        self._generations[group_id] = group.epoch
        if not group.target_epoch <= group.epoch or any(
            each.epoch > group.target_epoch for each in epochs.values()
        ):
            self._schedule.fail("S3", f"{group_id} is ahead of its epoch or target: {sign[1:]}")
        self._consumer_timers(shard, group)
        self._check_held(shard, group, now_ms)
        self._settled_members(group)
        if not shard.is_busy(group_id):
            self._consumer_records(shard.state.durable, group)
        owner: dict[tuple[UUID, int], str] = {}
        for member_id, member in group.members.items():
            for having in (member.current.assigned, member.current.revoking):
                for partition in ((topic, number) for topic, numbers in having.items() for number in numbers):
                    if owner.setdefault(partition, member_id) != member_id:
                        both = f"{owner[partition]} and {member_id}"
                        self._schedule.fail("S4", f"{partition} belongs to {both} at epoch {group.epoch}")

    def _settled_members(self, group: ConsumerGroup) -> None:
        if group.computing is not None or group.target_epoch < group.epoch:
            # some have a target of the next epoch
            return
        for member_id in group.members.keys() - group.unsettled:
            member = group.members[member_id]
            for topic_id, numbers in group.targets.get(member_id, {}).items():
                missing = set(numbers) - set(member.current.assigned.get(topic_id, ()))
                if missing and topic_id in group.subscribed_by(member).ids:
                    self._schedule.fail("S19", f"{member_id} of {group.group_id} lacks {missing}")

    def _check_held(self, shard: GroupShard, group: ConsumerGroup, now_ms: int) -> None:
        for member_id in state_of(shard).held.get(group.group_id, ()):
            times = (shard.timers.deadline((HOLD, group.group_id, each)) for each in (member_id, EVERYONE))
            until_ms = min((each for each in times if each is not None), default=None)
            member, target = group.members.get(member_id), group.targets.get(member_id, {})
            # who has to give something up first gets nothing before
            has_news = (
                member is not None
                and not member.current.revoking
                and (
                    member.current.epoch != group.target_epoch
                    or any(
                        # who has all of an older target is given no more of it
                        (member_id in group.unsettled or group.epoch == group.target_epoch)
                        and number not in member.current.assigned.get(topic_id, ())
                        and number not in group.owners.get(topic_id, ())
                        for topic_id, numbers in target.items()
                        if topic_id in group.subscribed_by(member).ids
                        for number in numbers
                    )
                )
            )
            at_ms = now_ms + NO_MOVE_MS * (member is not None and has_all(member.current, target))
            if until_ms is None or (has_news and until_ms > at_ms):
                self._schedule.fail("S19", f"{member_id} of {group.group_id} waits until {until_ms}")

    def _consumer_timers(self, shard: GroupShard, group: ConsumerGroup) -> None:
        group_id, timers = group.group_id, shard.timers
        instances = [
            m.metadata.instance_id for m in group.members.values() if m.metadata.instance_id is not None
        ]
        if len(set(instances)) < len(instances) or group.static_members.keys() != set(instances):
            self._schedule.fail("S9", f"{group_id} has members {list(group.members)} for {instances}")
        # those of a group that was just loaded are about to start
        for member_id, member in group.members.items() if (RESUME, group_id) not in timers else ():
            if (CONSUMER_SESSION, group_id, member_id) not in timers:
                self._schedule.fail("S8", f"{member_id} of {group_id} has no session")
            if member.current.revoking and (REVOCATION, group_id, member_id) not in timers:
                self._schedule.fail("S8", f"{member_id} of {group_id} may give up partitions for ever")
        for key in timers._by_key:
            if (
                key[0] in (CONSUMER_SESSION, REVOCATION)
                and key[1] == group_id
                and key[2] not in group.members
            ):
                self._schedule.fail("S8", f"a timer is left of {key[2]}, who is gone from {group_id}")

    def _consumer_records(self, durable: Durable, group: ConsumerGroup) -> None:
        """Check that the group in memory equals the one in the log."""
        read = restore_group(
            group.group_id, durable.of_type(CONSUMER_TYPE).get(group.group_id, {}), group.topics
        )
        for name in _IN_THE_LOG:
            value_of = attrgetter(name)
            mine, other = value_of(group), value_of(read)
            if mine != other:
                self._schedule.fail("S7", f"{name} of {group.group_id}: {mine} here, {other} in the log")
        for member_id, member in group.members.items():
            other = read.members.get(member_id)
            if other is None or (other.metadata, other.current) != (member.metadata, member.current):
                self._schedule.fail("S7", f"{member} of {group.group_id} is {other} in the log")

    def _limits(self, group: ClassicGroup) -> None:
        most = self._schedule.plan.max_size
        settled = group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        parked = [member for member in group.members.values() if member.parked_join is not None]
        if len(parked) > most or (settled and len(group.members) > most and not group.static_members):
            self._schedule.fail("S10", f"{len(group.members)} members, {len(parked)} parked, {most} allowed")
        if len(parked) != group.awaiting_join_count:
            self._schedule.fail("S10", f"{len(parked)} joins are parked, counted {group.awaiting_join_count}")

    def _check_parked(self, shard: GroupShard, group: ClassicGroup) -> None:
        if not self._open or shard.is_busy(group.group_id):
            return
        slots = [slot for m in group.members.values() for slot in (m.parked_join, m.parked_sync)]
        held = {slot.handle for slot in slots if slot is not None}
        for call in self._open:
            if call.api_key in _HELD and call.body.group_id == group.group_id and call not in held:
                self._schedule.fail("S6", f"{call} is neither answered nor held for an answer")

    def unanswered_calls(self) -> list[SimulatedCall]:
        """Requests that wait in the coordinator, but for heartbeats that it holds."""
        return [call for call in self._open if getattr(call.body, "hold_ms", 0) <= 0]

    def _timers(self, shard: GroupShard, group: ClassicGroup) -> None:
        group_id, timers = group.group_id, shard.timers
        for member in group.members.values():
            if (SESSION, group_id, member.member_id) not in timers and not member.waits:
                self._schedule.fail("S8", f"{member.member_id} of {group_id} has no session")
        for key in timers._by_key:
            if key[0] != SESSION or key[1] != group_id:
                continue
            if key[2] not in group.members and key[2] not in group.pending_join:
                self._schedule.fail("S8", f"a session is left of {key[2]}, who is gone from {group_id}")

    def _shares(self, group: ClassicGroup) -> None:
        plan = self._schedule.plan.groups.get(group.group_id)
        if plan is None:
            return
        owner: dict[TopicPartition, str] = {}
        for member in group.members.values():
            for partition in decode_assignment(member.assignment).partitions if member.assignment else ():
                if partition in owner:
                    both = f"{owner[partition]} and {member.member_id}"
                    self._schedule.fail(
                        "S4", f"{partition} belongs to {both} in generation {group.generation}"
                    )
                owner[partition] = member.instance_id or member.member_id
        generation, owned = self._settled.get(group.group_id, (-1, owner))
        if generation == group.generation and owned != owner:
            self._schedule.fail("S4", f"generation {generation} was handed out twice: {owned}, then {owner}")
        self._settled[group.group_id] = group.generation, owner
        if plan.eager and group.subscribed_topics is not None:
            topics = self._schedule.plan.topics
            every = {TopicPartition(t, n) for t in group.subscribed_topics for n in range(topics[t])}
            if every - owner.keys():
                self._schedule.fail("S4", f"nobody has {sorted(every - owner.keys())}")


#: Errors of requests that were refused before anything was written.
_NEVER_WRITTEN: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def _may_commit(group: ConsumerGroup, body: OffsetCommitRequest) -> bool:
    """Return whether a commit has the member's epoch, or an older one and partitions owned ever since."""
    member, epoch = group.members.get(body.member_id), body.generation_id_or_member_epoch
    if member is None:
        return epoch < 0 and not group.members
    having = [member.current.assigned, member.current.revoking]

    def had(topic: str, number: int) -> bool:
        topic_id = group.topics.id_of_topic(topic)
        if topic_id is None:
            return False
        since = [numbers[number] for each in having if number in (numbers := each.get(topic_id, {}))]
        return any(0 <= each <= epoch for each in since)

    return epoch == member.current.epoch or all(
        had(topic.name, row.partition_index) for topic in body.topics for row in topic.partitions
    )


def _topics_of(group: ClassicGroup) -> frozenset[str]:
    members = group.members.values()
    topics = (subscribed_topics(member.metadata(group.protocol_name)) for member in members)
    return frozenset().union(*(each for each in topics if each is not None))
