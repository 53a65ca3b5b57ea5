"""One shard: the groups whose records are in one partition of ``__consumer_offsets``.

A plain object without sockets, clock, threads, randomness or logging. Requests, results of writes and the
time go in as arguments; what is to be done comes out of :meth:`Shard.take_effects` as data. The same inputs
give the same outputs.

What must survive is a record first: a handler builds records, the shard hands them out as an Append under a
ticket, and only when told ``appended`` does it take them in (``Durable``, the way in for loaded records too)
and let go of the answers that depend on them. Two rules keep readers right while a write is under way: a read
or a removal of offsets waits for the writes of its group, and whoever asks for a group that is being deleted
waits for the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ...offsets_topic import NONE, OffsetCommitted, Record
from ...protocol import ApiKey, ErrorCode, TopicPartition
from ...statemachine import GroupTrigger
from .. import admin
from ..classic import heartbeat, join, leave, rebalance, sessions, sync
from ..classic.group import Group, group_from_record
from ..classic.members import answer_join_error, answer_sync, restart_session
from ..durable import Durable, OffsetEntry
from ..events import Cause
from ..offsets import commit, expiry, fetch
from ..replies import SyncReply
from ..settings import GroupSettings
from .effects import Append, Effect, Note, Reply, Request
from .readiness import append_error
from .timers import JOIN, RETENTION, SESSION, SYNC, TimerKey, Timers

Handler: TypeAlias = Callable[["Shard", Request, int], None]
Refusal: TypeAlias = Callable[[Request, int], Any]


class Waiting(Protocol):
    """What goes on when records are appended, or are not."""

    group_id: str

    def done(self, shard: Shard, now_ms: int, /) -> None: ...
    def failed(self, shard: Shard, error: ErrorCode, now_ms: int, /) -> None: ...


@dataclass(slots=True, eq=False)
class _Ticket:
    records: tuple[Record, ...]
    waiting: Waiting
    held: list[tuple[Request, Any, Refusal]] | None = None


class Shard:
    """See the module. ``new_id`` gives a fresh unique text for each member id; ``replay`` is for loading and
    is followed by one ``activate``; ``unload`` ends it.
    """

    def __init__(self, settings: GroupSettings, new_id: Callable[[], str]) -> None:
        self.settings = settings
        self.new_id = new_id
        self.durable = Durable()
        self.groups: dict[str, Group] = {}
        self.timers = Timers()
        self.retention_queue: list[str] = []
        #: Offsets of deleted topics whose tombstones could not be written, as they were then.
        self.orphans: dict[tuple[str, TopicPartition], OffsetEntry | bytes] = {}
        self.last_ticket = 0
        self._effects: list[Effect] = []
        self._tickets: dict[int, _Ticket] = {}
        self._in_flight: dict[str, int] = {}
        self._blocked: set[str] = set()
        self._deferred: dict[str, list[Request]] = {}
        self._unloaded = False

    def __repr__(self) -> str:
        return (
            f"<Shard: {len(self.groups)} live groups, {len(self._tickets)} writes, {len(self.timers)} timers>"
        )

    # --- what goes in -------------------------------------------------------------------------------------

    def handle(self, request: Request, now_ms: int) -> None:
        """Take in a request; its Reply comes now, after a write, or when a round ends: exactly once."""
        if self._unloaded:
            self.reply(request, refuse(request, ErrorCode.NOT_COORDINATOR))
        elif self._in_flight and request.api_key != _HEARTBEAT and self._must_wait(request):
            self._deferred.setdefault(request.body.group_id, []).append(request)
        else:
            HANDLERS[request.api_key](self, request, now_ms)

    def appended(self, ticket: int, base_offset: int, now_ms: int) -> None:
        """The records of this ticket are in the log, the first of them at ``base_offset``."""
        done = self._tickets.pop(ticket, None)
        if done is None:
            return
        self.durable.apply_all(done.records, base_offset)
        done.waiting.done(self, now_ms)
        if done.held is not None:
            for request, body, _ in done.held:
                self.reply(request, body)
        self._settle(done.waiting.group_id, now_ms)

    def append_failed(self, ticket: int, error: ErrorCode, now_ms: int) -> None:
        """The log refused the records of this ticket with ``error``; nothing of them is kept."""
        failed = self._tickets.pop(ticket, None)
        if failed is None:
            return
        failed.waiting.failed(self, error, now_ms)
        for request, _, refusal in failed.held or ():
            self.reply(request, refusal(request, append_error(error)))
        self._settle(failed.waiting.group_id, now_ms)

    def advance(self, now_ms: int) -> None:
        """Fire every timer that is due."""
        while (key := self.timers.pop_due(now_ms)) is not None:
            self._fire(key, now_ms)

    def next_deadline(self) -> int | None:
        """When ``advance`` is wanted next."""
        return self.timers.next_deadline()

    def take_effects(self) -> list[Effect]:
        """What there is to do, in order; a second call gives only what came after."""
        effects, self._effects = self._effects, []
        return effects

    def topics_deleted(self, names: set[str]) -> None:
        """Topics are gone: remove their offsets from every group."""
        expiry.remove_topics(self, names)

    # --- load and unload ----------------------------------------------------------------------------------

    def replay(self, record: Record, offset: int, producer_id: int = NONE) -> None:
        """Take in a record of the log, read back or just written: the only way durable state changes."""
        self.durable.apply(record, offset, producer_id)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Take in the end of a transaction."""
        self.durable.end_transaction(producer_id, committed=committed)

    def activate(self, now_ms: int) -> None:
        """All is loaded: members' sessions run anew, groups that are too large start over."""
        for group_id, record in self.durable.stored.items():
            if not record.members:
                continue
            group = self.find(group_id)
            assert group is not None
            for member in group.members.values():
                restart_session(self, group, member, now_ms)
            if len(group.members) > self.settings.group_max_size:
                text = (
                    f"{len(group.members)} members loaded, group.max.size is {self.settings.group_max_size}"
                )
                rebalance.prepare(self, group, Cause(text), now_ms)
        self.timers.start((RETENTION,), now_ms + self.settings.offsets_retention_check_interval_ms)

    def unload(self, now_ms: int) -> None:
        """The shard goes elsewhere, or the broker stops: everyone who waits is sent to look for it."""
        error = ErrorCode.NOT_COORDINATOR
        self._unloaded = True
        for ticket in list(self._tickets):
            self.append_failed(ticket, ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
        for request in self.deferred():
            self.reply(request, refuse(request, error))
        for group in self.groups.values():
            for member in group.members.values():
                answer_join_error(self, group, member, error, member.member_id)
                answer_sync(self, member, SyncReply(error))
            rebalance.move(group, GroupTrigger.UNLOAD, now_ms)
        self.timers.clear()
        self.groups.clear()
        self._deferred.clear()
        self._tickets.clear()
        self._effects = [effect for effect in self._effects if not isinstance(effect, Append)]
        self.durable = Durable()

    # --- for the handlers ---------------------------------------------------------------------------------

    def knows(self, group_id: str) -> bool:
        """Whether there is such a group."""
        return group_id in self.groups or self.durable.knows(group_id)

    def find(self, group_id: str) -> Group | None:
        """The live group; one that is only in the log comes to life here."""
        group = self.groups.get(group_id)
        if group is None and self.durable.knows(group_id):
            record = self.durable.stored.get(group_id)
            group = Group(group_id) if record is None else group_from_record(record)
            self.groups[group_id] = group
        return group

    def create(self, group_id: str, now_ms: int) -> Group:
        """A new Empty group, in memory."""
        group = self.groups[group_id] = Group(group_id, state_timestamp_ms=now_ms)
        return group

    def drop(self, group: Group) -> None:
        """Take a group and its timers out of memory; whoever is parked in it must have been answered."""
        for member_id in (*group.members, *group.pending_join):
            self.timers.cancel((SESSION, group.group_id, member_id))
        self.timers.cancel((JOIN, group.group_id))
        self.timers.cancel((SYNC, group.group_id))
        del self.groups[group.group_id]

    def group_ids(self) -> list[str]:
        """Every group, those of the log first."""
        return list({**self.durable.group_ids(), **dict.fromkeys(self.groups)})

    def append(self, records: tuple[Record, ...], waiting: Waiting) -> None:
        """Hand out records to be written; ``waiting`` goes on when the outcome is known."""
        self.last_ticket += 1
        self._tickets[self.last_ticket] = _Ticket(records, waiting)
        group_id = waiting.group_id
        self._in_flight[group_id] = self._in_flight.get(group_id, 0) + 1
        self._effects.append(Append(self.last_ticket, records))

    def reply(self, request: Request, body: Any) -> None:
        """Answer a request."""
        self._effects.append(Reply(request.handle, body))

    def reply_after(self, ticket: int, request: Request, body: Any, refusal: Refusal) -> None:
        """Answer when all that was appended after ``ticket`` is durable: at once if nothing was."""
        if self.last_ticket > ticket:
            last = self._tickets[self.last_ticket]
            last.held = [*(last.held or ()), (request, body, refusal)]
        else:
            self.reply(request, body)

    def note(self, note: Note) -> None:
        """Tell that something happened."""
        self._effects.append(note)

    def is_busy(self, group_id: str) -> bool:
        """Whether a write of the group is under way."""
        return group_id in self._in_flight

    def deferred(self) -> list[Request]:
        """Requests that wait for writes of their groups."""
        return [request for requests in self._deferred.values() for request in requests]

    def commits_in_flight(self) -> Iterator[tuple[str, TopicPartition]]:
        """Group and partition of each offset that is being written."""
        for ticket in self._tickets.values():
            for record in ticket.records:
                if type(record) is OffsetCommitted:
                    yield record.group, TopicPartition(record.topic, record.partition)

    def is_orphan(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an offset should have gone with its topic; it is not asked about again."""
        entry = self.orphans.pop((group_id, partition), None)
        return entry is not None and self.durable.offsets[group_id].get(partition) is entry

    def block(self, group_id: str) -> None:
        """The group is being deleted: its requests wait from here on."""
        self._blocked.add(group_id)

    def unblock(self, group_id: str) -> None:
        """The deletion failed."""
        self._blocked.discard(group_id)

    def forget(self, group_id: str) -> None:
        """The group is deleted: take it out of memory."""
        self._blocked.discard(group_id)
        group = self.groups.get(group_id)
        if group is not None:
            self.drop(group)

    # --- inside -------------------------------------------------------------------------------------------

    def _must_wait(self, request: Request) -> bool:
        if not self._blocked and request.api_key not in _AFTER_WRITES:
            return False
        group_id = getattr(request.body, "group_id", None)
        if group_id not in self._in_flight:
            return False
        return group_id in self._blocked or request.api_key in _AFTER_WRITES

    def _settle(self, group_id: str, now_ms: int) -> None:
        left = self._in_flight[group_id] - 1
        if left:
            self._in_flight[group_id] = left
            return
        del self._in_flight[group_id]
        for request in self._deferred.pop(group_id, ()):
            self.handle(request, now_ms)

    def _fire(self, key: TimerKey, now_ms: int) -> None:
        kind = key[0]
        if kind == SESSION:
            sessions.on_session_timer(self, key[1], key[2], now_ms)
        elif kind == JOIN:
            rebalance.on_join_timer(self, key[1], now_ms)
        elif kind == SYNC:
            rebalance.on_sync_timer(self, key[1], now_ms)
        else:
            expiry.on_retention_timer(self, now_ms)


def refuse(request: Request, error: int) -> Any:
    """The body that answers a request with nothing but an error."""
    return _REFUSALS[request.api_key](request, error)


def _no_list(_request: Request, _error: int) -> list[Any]:
    return []


HANDLERS: Final[dict[int, Handler]] = {
    ApiKey.JOIN_GROUP: join.handle_join,
    ApiKey.SYNC_GROUP: sync.handle_sync,
    ApiKey.HEARTBEAT: heartbeat.handle_heartbeat,
    ApiKey.LEAVE_GROUP: leave.handle_leave,
    ApiKey.OFFSET_COMMIT: commit.handle_commit,
    ApiKey.OFFSET_FETCH: fetch.handle_fetch,
    ApiKey.OFFSET_DELETE: fetch.handle_offset_delete,
    ApiKey.DESCRIBE_GROUPS: admin.handle_describe,
    ApiKey.LIST_GROUPS: admin.handle_list,
    ApiKey.DELETE_GROUPS: admin.handle_delete,
}

_REFUSALS: Final[dict[int, Refusal]] = {
    ApiKey.JOIN_GROUP: join.refusal,
    ApiKey.SYNC_GROUP: sync.refusal,
    ApiKey.HEARTBEAT: heartbeat.refusal,
    ApiKey.LEAVE_GROUP: leave.refusal,
    ApiKey.OFFSET_COMMIT: commit.refusal,
    ApiKey.OFFSET_FETCH: fetch.fetch_refusal,
    ApiKey.OFFSET_DELETE: fetch.delete_refusal,
    ApiKey.DESCRIBE_GROUPS: admin.describe_refusal,
    ApiKey.LIST_GROUPS: _no_list,
    ApiKey.DELETE_GROUPS: admin.delete_refusal,
}

#: Promises nothing about data, and so waits for no write.
_HEARTBEAT: Final = ApiKey.HEARTBEAT

#: Reads and removals of offsets: they wait for writes of the group that are under way.
_AFTER_WRITES: Final = frozenset({ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE, ApiKey.DELETE_GROUPS})
