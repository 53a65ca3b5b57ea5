"""A shard: everything that one partition of an internal topic coordinates.

A plain object without sockets, clock, threads, randomness or logging. Requests, results of writes and the
time go in as arguments; the effects to carry out come out of :meth:`Shard.take_effects` as data. The same
inputs give the same outputs.

The engine does not know what it coordinates. Each :class:`Kind` of coordinator brings a table: the APIs that
it serves, how its records are applied, its timers, and what it does when the shard is loaded and unloaded.
``state`` belongs to the kinds: the engine passes it on and never looks inside.

Durable state starts as a record: a handler builds records, the shard hands them out as an Append with a
ticket, and only when ``on_appended`` or ``appended_all`` is called does it apply them (:meth:`Shard.apply`,
which also applies loaded records) and release the responses that depend on them. Writes and requests have a
*key*, such as the id of a group. Two rules keep reads consistent while a write is pending: a request that
reads what is being written waits for the writes of its key, and while a key is being removed all of its
requests wait for the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ...protocol import ErrorCode
from ...protocol.named_tuples import NamedTuple
from .effects import NO_PRODUCER, Append, Command, Effect, EndMarker, Reply, Request
from .events import CoordinatorEvent
from .readiness import LOADING, Unready, append_error, unready_error
from .timers import TimerKey, Timers

S = TypeVar("S")


class Waits(Enum):
    """The writes that a request waits for before it is handled."""

    NEVER = "nothing: it promises nothing about data"
    REMOVAL = "the removal of its key"
    WRITES = "every write of its key that is under way"


# plain values: reaching an enum's members costs more than a comparison
_WRITES: Final = Waits.WRITES
_NONE: Final = ErrorCode.NONE
# makes a named tuple in half the time of calling its class
_new: Final = tuple.__new__

#: The error when the outcome of a write stays unknown for too long.
_OVERDUE: Final = append_error(ErrorCode.REQUEST_TIMED_OUT)

Handler: TypeAlias = "Callable[[Shard[S], Request, int], None]"
Refusal: TypeAlias = Callable[[Request, int], object]


class FanOut(NamedTuple):
    """How a request that names many keys is handled: ``split`` makes a request body for each, ``join`` a
    response of their responses; both are given the version and what the coordinator looks topics up in.

    ``reads`` is true if it changes nothing: other work runs in between then. An ``exact`` one waits until
    shards are loaded: see ``ShardRuntime.submit_all``.
    """

    split: Callable[[int, Any, Any], list[Any]]
    join: Callable[[int, list[Any], Any], Any]
    reads: bool = True
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Api(Generic[S]):
    """One API of a kind. ``refusal`` makes a response body that is only an error. ``while_loading`` is the
    error until the shard is loaded, ``overdue`` the error when writes that the request waits for take too
    long; None: the request is handled then, and sees what is committed. With a ``fan_out`` the handler is
    given one request for each key.
    """

    handler: Handler[S]
    refusal: Refusal
    waits: Waits = Waits.REMOVAL
    while_loading: ErrorCode = LOADING
    overdue: ErrorCode | None = _OVERDUE
    fan_out: FanOut | None = None


def _do_nothing(_shard: Shard[Any], _now_ms: int) -> None:
    return


def _refuse_api(shard: Shard[Any], request: Request, _now_ms: int) -> None:
    shard.refuse(request, ErrorCode.NOT_COORDINATOR)


#: All APIs of a shard that is unloaded.
_GONE: Final[Api[Any]] = Api(_refuse_api, lambda _request, _error: None, Waits.NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[S]):
    """The table of one kind of coordinator.

    ``applies`` applies records: consecutive ones of one type, with the offset of the first, and the id of the
    producer whose transaction they belong to (NO_PRODUCER for none). ``ends_transaction`` applies that
    producer's marker. ``timers`` fire by the first part of their keys. ``activate`` is called when the shard
    is loaded, ``unload`` when it is unloaded.
    """

    apis: Mapping[int, Api[S]] = field(default_factory=dict)
    applies: Mapping[type[object], Callable[[S, Sequence[Any], int, int], None]] = field(default_factory=dict)
    ends_transaction: Callable[[S, int, bool], None] | None = None
    timers: Mapping[str, Callable[[Shard[S], TimerKey, int], None]] = field(default_factory=dict)
    activate: Callable[[Shard[S], int], None] = _do_nothing
    unload: Callable[[Shard[S], int], None] = _do_nothing


class LoadedRecord(NamedTuple):
    """A record of the log, not decoded yet."""

    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(eq=False, repr=False)
class CoordinatorTopic(Generic[S]):
    """An internal topic, and the kinds of coordinators whose records are in it.

    ``key_of`` finds the key in the body of a request. ``encode`` returns keys and values with their size in
    bytes, and raises ValueError or struct.error for values that do not fit in a record; ``decode`` raises
    KohortError for unreadable records. ``append_refused`` makes the event of a refused write. ``count`` says
    how much is coordinated, in groups for example. ``load`` returns the records of a plain batch that have to
    be decoded one by one; it applies the others itself, faster. ``append_error`` returns what requests are
    told whose records the log refused. ``later`` makes the times in records later by so many milliseconds.
    """

    name: str
    kinds: Sequence[Kind[S]]
    _: KW_ONLY
    key_of: Callable[[Any], str]
    encode: Callable[[Sequence[Any]], tuple[list[tuple[bytes, bytes | None]], int]]
    decode: Callable[[bytes | None, bytes | None], Any]
    append_refused: Callable[[str, ErrorCode], CoordinatorEvent]
    load: Callable[[S, Any], Iterable[LoadedRecord]]
    count: Callable[[S], int]
    append_error: Callable[[int], ErrorCode] = append_error
    later: Callable[[Sequence[Any], int], Sequence[Any]] = lambda records, _ahead_ms: records

    def __post_init__(self) -> None:
        self.apis = {key: api for kind in self.kinds for key, api in kind.apis.items()}
        self.fan_outs = {key: api.fan_out for key, api in self.apis.items() if api.fan_out is not None}
        self.applies = {record: apply for kind in self.kinds for record, apply in kind.applies.items()}
        self.timers = {name: fire for kind in self.kinds for name, fire in kind.timers.items()}

    def refusal(self, request: Request, error: int) -> object:
        """Make the response to a request that is refused with this error."""
        return self.apis[request.api_key].refusal(request, error)

    def unready_error(self, api_key: int, unready: Unready) -> ErrorCode:
        """The error of an API while its shard does not serve."""
        api = self.apis.get(api_key)
        return unready_error(unready, LOADING if api is None else api.while_loading)


class Shard(Generic[S]):
    """See the module. After all ``apply`` calls of a load comes one ``activate``; ``unload`` ends the
    shard.
    """

    def __init__(self, topic: CoordinatorTopic[S], state: S) -> None:
        self.topic = topic
        self.state = state
        self.timers = Timers()
        self.last_ticket = 0
        #: Timers that fire before the writes under way go out, with the key of the shard that they concern:
        #: see ``fire_before_write``.
        self.before_write: dict[TimerKey, str] = {}
        #: It is unloaded, or could not be loaded: ``state`` is not valid.
        self.gone = False
        self._apis, self._applies = topic.apis, topic.applies
        self._effects: list[Effect] = []
        # replies at its beginning to requests that are awaited
        self._awaited = 0
        self._writes: dict[int, Append] = {}
        self._in_flight: dict[str, int] = {}
        self._blocked: set[str] = set()
        self._deferred: dict[str, list[Request]] = {}
        # keys with a write that takes too long: no request waits for their writes
        self._stalled: set[str] = set()

    def __repr__(self) -> str:
        return f"<Shard of {self.topic.name}: {len(self._writes)} writes, {len(self.timers)} timers>"

    # --- what goes in -------------------------------------------------------------------------------------

    def handle(self, request: Request, now_ms: int) -> None:
        """Handle a request. Its one Reply comes now, after a write, or when a round ends."""
        api = self._apis[request.api_key]
        if self._in_flight and (self._blocked or api.waits is _WRITES) and self._must_wait(api, request):
            self.defer(request, now_ms)
        else:
            api.handler(self, request, now_ms)

    def on_appended(self, ticket: int, base_offset: int, now_ms: int) -> None:
        """Called when the records of this ticket are in the log, the first of them at ``base_offset``."""
        append = self._writes.pop(ticket, None)
        if append is None:
            return
        if append.marker is None:
            self.apply(append.records, base_offset, append.producer_id)
        else:
            self.end_transaction(append.producer_id, committed=append.marker.committed)
        if append.then is not None:
            append.then(_NONE, now_ms)
        for request, body in append.answers:
            self.reply(request, body)
        if append.key is not None:
            self._settle_key(append.key, now_ms)

    def appended_all(
        self, appends: Sequence[Append], records: Sequence[object], base_offset: int, now_ms: int
    ) -> None:
        """Do the same as ``on_appended`` for each ticket in turn; ``records`` are theirs. They are applied
        together if no step follows any of them and none is a marker.
        """
        if len(appends) == 1 or any(each.then is not None or each.marker is not None for each in appends):
            for append in appends:
                self.on_appended(append.ticket, base_offset, now_ms)
                base_offset += len(append.records)
            return
        self.apply(records, base_offset, appends[0].producer_id)
        for append in appends:
            del self._writes[append.ticket]
            for request, body in append.answers:
                self.reply(request, body)
            if append.key is not None:
                self._settle_key(append.key, now_ms)

    def append_failed(self, ticket: int, error: ErrorCode, now_ms: int) -> None:
        """Called when the log refused the records of this ticket with ``error``; none of them was written."""
        append = self._writes.get(ticket)
        if append is None:
            return
        failed = [append]
        if append.undo is not None:
            later = (each for each in self._writes.values() if each.ticket > ticket)
            failed += [each for each in later if each.key == append.key]
        # all of them first: a step may ask what is under way, and none of these records will be in the log
        for each in failed:
            del self._writes[each.ticket]
        for each in failed:
            if each.key is not None:
                self.tell(self.topic.append_refused(each.key, error))
            if each.then is not None:
                each.then(error, now_ms)
            if each.undo is not None:
                each.undo(now_ms)
        for each in failed:
            for request, _ in each.answers:
                self.refuse(request, self.topic.append_error(error))
        for each in failed:
            if each.key is not None:
                self._settle_key(each.key, now_ms)

    def append_overdue(self, ticket: int, now_ms: int) -> None:
        """Called when the outcome of this write has been unknown for too long: requests that wait for it, or
        for other writes of its key, are answered now. The outcome may still come.
        """
        append = self._writes.get(ticket)
        if append is None:
            return
        answers, append.answers = append.answers, ()
        for request, _ in answers:
            self.refuse(request, _OVERDUE)
        if append.key is not None:
            self._stalled.add(append.key)
            for request in self._deferred.pop(append.key, ()):
                self._answer_overdue(request, now_ms)

    def advance(
        self, now_ms: int, goes_on: Callable[[], bool] = lambda: True, *, due_ms: int | None = None
    ) -> None:
        """Fire the timers that were due at ``due_ms`` (None: now), as long as ``goes_on`` returns true."""
        while (key := self.timers.pop_due(now_ms if due_ms is None else due_ms)) is not None:
            self.topic.timers[key[0]](self, key, now_ms)
            if not goes_on():
                return

    def fire_before_write(self, now_ms: int) -> None:
        """Fire the timers in ``before_write`` that are due, so that what follows from them is part of the
        batch; if requests of their key wait for these writes, then with the writes of those. A driver that
        does not call this fires them in ``advance``.
        """
        timers, self.before_write = self.before_write, {}
        for timer, key in timers.items():
            due_ms = self.timers.deadline(timer)
            if due_ms is None or due_ms > now_ms:
                continue
            if key in self._deferred:
                self.before_write[timer] = key
            else:
                self.timers.cancel(timer)
                self.topic.timers[timer[0]](self, timer, now_ms)

    def next_deadline(self) -> int | None:
        """The time at which to call ``advance`` next; None if no timer runs."""
        return self.timers.next_deadline()

    def take_effects(self) -> list[Effect]:
        """Return the effects since the last call, in order."""
        effects, self._effects, self._awaited = self._effects, [], 0
        return effects

    # --- load and unload ----------------------------------------------------------------------------------

    def apply(self, records: Sequence[object], offset: int, producer_id: int = NO_PRODUCER) -> None:
        """Apply records of the log, just written or loaded. Durable state changes only here, by the end of a
        transaction, and in the topic's ``load``, which takes in plain batches.

        Their offsets are consecutive, from ``offset`` on. Those of a producer's transaction are pending until
        its marker.
        """
        start, count = 0, len(records)
        if count == 1:
            # nearly every commit
            apply = self._applies.get(type(records[0]))
            if apply is not None:
                apply(self.state, records, offset, producer_id)
            return
        while start < count:
            kind, end = type(records[start]), start + 1
            while end < count and type(records[end]) is kind:
                end += 1
            apply = self._applies.get(kind)
            if apply is not None:
                run = records if end - start == count else records[start:end]
                apply(self.state, run, offset + start, producer_id)
            start = end

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a marker, just written or loaded."""
        for kind in self.topic.kinds:
            if kind.ends_transaction is not None:
                kind.ends_transaction(self.state, producer_id, committed)

    def activate(self, now_ms: int) -> None:
        """The shard is loaded: start timers and what else its kinds need."""
        for kind in self.topic.kinds:
            kind.activate(self, now_ms)

    def unload(self, now_ms: int) -> None:
        """Unload the shard, because it moves or the broker stops: waiting requests are answered
        NOT_COORDINATOR.
        """
        self.gone, self._apis = True, dict.fromkeys(self._apis, _GONE)
        for ticket in list(self._writes):
            self.append_failed(ticket, ErrorCode.NOT_LEADER_OR_FOLLOWER, now_ms)
        for kind in self.topic.kinds:
            kind.unload(self, now_ms)
        self.timers.clear()
        self.before_write.clear()
        # nothing is written from here on
        self._effects = [effect for effect in self._effects if not isinstance(effect, (Append, Command))]

    # --- for the handlers ---------------------------------------------------------------------------------

    def append(
        self,
        key: str | None,
        records: tuple[object, ...],
        then: Callable[[ErrorCode, int], None] | None = None,
        answers: tuple[tuple[Request, object], ...] = (),
        *,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
        marker: EndMarker | None = None,
        undo: Callable[[int], None] | None = None,
        lazy: bool = False,
    ) -> None:
        """Hand out an Append. When its outcome is known ``then`` is called with the error (NONE for success)
        and the time; after that each request of ``answers`` is answered: with the body beside it, or refused.

        No request waits for a write with the key None, such as a marker, which concerns many keys. With
        ``undo`` later writes of the key build on this one: if the log refuses it they fail too, and the
        ``undo`` of each is called with the time. Earlier writes of the key may still be under way then.

        A ``lazy`` append may go out a moment later, with the next one: nothing waits for its outcome.
        """
        self.last_ticket += 1
        append = Append(
            self.last_ticket, records, producer_id, producer_epoch, marker, key, then, answers, undo, lazy
        )
        self._writes[self.last_ticket] = append
        if key is not None:
            self._in_flight[key] = self._in_flight.get(key, 0) + 1
        self._effects.append(append)

    def defer(self, request: Request, now_ms: int) -> None:
        """Handle a request when the writes of its key that are under way have ended."""
        key = self.topic.key_of(request.body)
        if key in self._stalled:
            self._answer_overdue(request, now_ms)
        else:
            self._deferred.setdefault(key, []).append(request)

    def reply(self, request: Request, body: object) -> None:
        """Answer a request; behind the records that it depends on, if it is ``awaited``."""
        reply = _new(Reply, (request.handle, body))
        if request.awaited:
            self._effects.insert(self._awaited, reply)
            self._awaited += 1
        else:
            self._effects.append(reply)

    def refuse(self, request: Request, error: int) -> None:
        """Answer a request with an error."""
        self.reply(request, self.topic.refusal(request, error))

    def reply_after(self, ticket: int, request: Request, body: object) -> None:
        """Answer when all that was appended after ``ticket`` is durable; at once if nothing was."""
        if self.last_ticket > ticket:
            last = self._writes[self.last_ticket]
            last.answers = (*last.answers, (request, body))
        else:
            self.reply(request, body)

    def reply_when_written(self, key: str, request: Request, body: object) -> None:
        """Answer when the pending writes of a key are durable; at once if there are none."""
        if key in self._stalled:
            self.refuse(request, _OVERDUE)
        elif key in self._in_flight:
            for last in reversed(self._writes.values()):
                if last.key == key:
                    last.answers = (*last.answers, (request, body))
                    break
        else:
            self.reply(request, body)

    def tell(self, event: CoordinatorEvent) -> None:
        """Report an event."""
        self._effects.append(event)

    def command(self, command: Command) -> None:
        """Ask for an action outside of the shard."""
        self._effects.append(command)

    def is_busy(self, key: str) -> bool:
        """Return whether a write of this key is under way."""
        return key in self._in_flight

    def awaits(self, ticket: int) -> bool:
        """Return whether the outcome of a write is still to be reported."""
        return ticket in self._writes

    def deferred(self) -> list[Request]:
        """Requests that wait for writes of their keys."""
        return [request for requests in self._deferred.values() for request in requests]

    def records_in_flight(self) -> Iterator[Any]:
        """Yield the records whose write is under way, oldest first."""
        for append in self._writes.values():
            yield from append.records

    def block(self, key: str) -> None:
        """Make requests of a key wait, because it is being removed."""
        self._blocked.add(key)

    def unblock(self, key: str) -> None:
        """End that wait: the removal is over, whether it succeeded or not."""
        self._blocked.discard(key)

    # --- inside -------------------------------------------------------------------------------------------

    def _must_wait(self, api: Api[S], request: Request) -> bool:
        if api.waits is Waits.NEVER:
            return False
        key = self.topic.key_of(request.body)
        return key in self._in_flight and (key in self._blocked or api.waits is _WRITES)

    def _answer_overdue(self, request: Request, now_ms: int) -> None:
        api = self._apis[request.api_key]
        if api.overdue is None:
            api.handler(self, request, now_ms)
        else:
            self.refuse(request, api.overdue)

    def _settle_key(self, key: str, now_ms: int) -> None:
        left = self._in_flight[key] - 1
        if left:
            self._in_flight[key] = left
            return
        del self._in_flight[key]
        self._stalled.discard(key)
        if self._deferred:
            for request in self._deferred.pop(key, ()):
                self.handle(request, now_ms)
