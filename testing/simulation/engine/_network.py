"""Connections between members and the coordinator, and their faults.

A connection keeps the order of its requests and of its answers, and the coordinator takes one request of it
at a time, and one more behind a heartbeat that it holds. A lost message breaks its connection, as with TCP;
only then does its sender learn of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ....client.errors import BrokerConnectionError
from ....protocol import ApiKey, RequestContext
from ._plan import SchedulePlan
from ._schedule import Schedule

_PARKED = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)


class SimulatedClient(Protocol):
    """A sender of requests."""

    name: str
    context: RequestContext
    versions: dict[int, int]

    def on_answer(self, call: SimulatedCall, body: object, /) -> None: ...
    def on_failure(self, call: SimulatedCall, error: BrokerConnectionError, /) -> None: ...


class Receiver(Protocol):
    """A reachable receiver of requests."""

    @property
    def reachable(self) -> bool: ...
    def receive(self, call: SimulatedCall, /) -> None: ...


class Link(Protocol):
    """The path between two machines: the time at which a message that would arrive at ``at_ms`` does.
    ``late_ms`` returns after which time a request arrives that its sender gives up before, None if it does
    not; ``is_up`` whether the process that it was sent to still runs.
    """

    def there(self, at_ms: int, /) -> int: ...
    def back(self, at_ms: int, /) -> int: ...
    def late_ms(self, api_key: int, /) -> int | None: ...
    def is_up(self) -> bool: ...


class SimulatedCall:
    """A request on its way, and the coordinator's handle to answer it.

    ``memo`` belongs to the sender, ``note`` to the checks. ``cut``: the connection breaks before the
    response. ``is_late``: it is a duplicate that arrives long after its sender got a response. ``at_once``: a
    duplicate of it arrives right behind it.
    """

    __slots__ = (
        "answered_at",
        "api_key",
        "at_once",
        "body",
        "client",
        "connection",
        "cut",
        "epoch",
        "is_late",
        "memo",
        "note",
        "on_set",
        "version",
    )

    def __init__(
        self, client: SimulatedClient, connection: SimulatedLink, api_key: int, body: Any, memo: Any = None
    ) -> None:
        self.client = client
        self.connection = connection
        self.epoch = connection.epoch
        self.api_key = api_key
        self.version = client.versions[api_key]
        self.body = body
        self.cut = self.is_late = self.at_once = False
        #: The event in which it was answered.
        self.answered_at = -1
        self.memo = memo
        self.note: Any = None
        #: Called with the coordinator's answer.
        self.on_set: Callable[[SimulatedCall, object], None] | None = None

    def __repr__(self) -> str:
        return f"{ApiKey(self.api_key).name} v{self.version} of {self.client.name}"

    def again(self) -> SimulatedCall:
        """Return a duplicate of the request, on a connection that nobody listens to."""
        connection = SimulatedLink(self.connection.schedule, self.connection.node)
        late = SimulatedCall(self.client, connection, self.api_key, self.body)
        late.version, late.is_late = self.version, True
        return late

    def set(self, body: object) -> None:
        """Take the coordinator's answer."""
        if self.on_set is None:
            self.connection.schedule.fail("S6", f"{self} is answered a second time, with {body}")
            return
        on_set, self.on_set = self.on_set, None
        self.answered_at = self.connection.schedule.heap.events
        on_set(self, body)
        self.connection.on_answer(self, body)


class SimulatedLink:
    """One connection, over a ``link`` if its delay varies; each break begins a new epoch."""

    __slots__ = (
        "_busy",
        "_held",
        "_in_ms",
        "_link",
        "_out_ms",
        "_queue",
        "epoch",
        "node",
        "on_broken",
        "schedule",
        "under_way",
    )

    def __init__(self, schedule: Schedule[SchedulePlan], node: Receiver, link: Link | None = None) -> None:
        self.epoch = 0
        #: Called when the connection breaks, if the receiver wants to know.
        self.on_broken: Callable[[], None] | None = None
        #: Requests whose sender waits for an answer.
        self.under_way: list[SimulatedCall] = []
        self.schedule = schedule
        self.node = node
        self._link = link
        self._busy: SimulatedCall | None = None
        #: A heartbeat that is held, while the coordinator takes the one behind it.
        self._held: SimulatedCall | None = None
        self._queue: deque[SimulatedCall] = deque()
        self._in_ms = self._out_ms = 0

    def send(self, call: SimulatedCall, timeout_ms: int) -> None:
        """Send a request; its sender gets an answer or a failure."""
        schedule = self.schedule
        heap, rng = schedule.heap, schedule.rng
        self.under_way.append(call)
        if not self.node.reachable:
            heap.at(heap.now + 1 + int(rng.random() * 20), self._break, self.epoch, "connection refused")
            return
        late_ms = None if schedule.healed or self._link is None else self._link.late_ms(call.api_key)
        if late_ms is not None:
            heap.at(heap.now + 1, self._break, self.epoch, "given up")
            heap.at(heap.now + late_ms, self._arrive_late, call)
            return
        delay_ms = 1 + int(rng.random() * 4)
        fault = None if schedule.healed else schedule.network_fault()
        if fault is not None:
            if schedule.trace is not None:
                schedule.say(f"{call} meets {fault}")
            delay_ms = self._meet(fault, call, delay_ms, timeout_ms)
            if delay_ms < 0:
                return
        self._in_ms = max(heap.now + delay_ms, self._in_ms + 1)
        if self._link is not None:
            self._in_ms = self._link.there(self._in_ms)
        heap.at(self._in_ms, self._arrive, call)
        if call.api_key in _PARKED:
            heap.at(heap.now + timeout_ms, self._time_out, call)

    def close(self) -> None:
        """The client's process has ended or is cut off; nobody is notified."""
        self.under_way.clear()
        self._next_epoch()

    def reset(self, why: str) -> None:
        self._break(self.epoch, why)

    def on_answer(self, call: SimulatedCall, body: object) -> None:
        """The coordinator has answered; the next request may be taken."""
        if call is self._held:
            self._held = None
        elif call is self._busy:
            self._busy = None
        else:
            return
        schedule = self.schedule
        heap = schedule.heap
        if self._queue and self._busy is None:
            heap.at(heap.now, self._take, self.epoch)
        if call.cut:
            self._break(self.epoch, "the connection broke")
            return
        self._out_ms = max(heap.now + 1 + int(schedule.rng.random() * 4), self._out_ms + 1)
        if self._link is not None:
            self._out_ms = self._link.back(self._out_ms)
        heap.at(self._out_ms, self._deliver, call, body)

    def _meet(self, fault: str, call: SimulatedCall, delay_ms: int, timeout_ms: int) -> int:
        """Let a request meet a fault; return how long it takes to arrive in ms, -1 if it does not."""
        schedule = self.schedule
        heap, rng = schedule.heap, schedule.rng
        if fault == "drop":
            heap.at(heap.now + rng.randint(1, timeout_ms), self._break, self.epoch, "the request was lost")
            return -1
        if fault == "delay":
            return rng.randint(1, min(schedule.plan.session_ms, timeout_ms - 1))
        if fault == "duplicate":
            late_ms = 1 if call.at_once else rng.randint(1, 3 * schedule.plan.session_ms)
            heap.at(heap.now + delay_ms + late_ms, self._arrive_again, call.again())
        elif fault == "reset":
            heap.at(heap.now + rng.randint(1, 10), self._break, self.epoch, "reset by peer")
        else:
            call.cut = True
        return delay_ms

    def _arrive(self, call: SimulatedCall) -> None:
        if call.epoch != self.epoch or not self.node.reachable:
            return
        busy = self._busy
        if busy is not None and self._held is None and getattr(busy.body, "hold_ms", 0) > 0:
            self._held, self._busy = busy, None
        if self._busy is None and not self._queue:
            self._busy = call
            self.node.receive(call)
        else:
            self._queue.append(call)

    def _arrive_late(self, call: SimulatedCall) -> None:
        if self._link is not None and self._link.is_up():
            if self.schedule.trace is not None:
                self.schedule.say(f"{call} arrives, which was given up")
            self._arrive_again(call.again())

    def _arrive_again(self, call: SimulatedCall) -> None:
        if not self.schedule.healed:
            call.connection._arrive(call)

    def _take(self, epoch: int) -> None:
        if epoch == self.epoch and self._busy is None and self._queue and self.node.reachable:
            self._busy = self._queue.popleft()
            self.node.receive(self._busy)

    def _deliver(self, call: SimulatedCall, body: object) -> None:
        if call.epoch == self.epoch and call in self.under_way:
            self.under_way.remove(call)
            call.client.on_answer(call, body)

    def _time_out(self, call: SimulatedCall) -> None:
        if call.epoch == self.epoch and call in self.under_way:
            self._break(self.epoch, "no answer in time")

    def _break(self, epoch: int, why: str) -> None:
        if epoch != self.epoch:
            return
        failed, self.under_way = self.under_way, []
        self._next_epoch()
        for call in failed:
            call.client.on_failure(call, BrokerConnectionError("coordinator", why))

    def _next_epoch(self) -> None:
        self.epoch += 1
        on_broken, self.on_broken = self.on_broken, None
        if on_broken is not None:
            on_broken()
        self._busy = self._held = None
        self._queue.clear()
        # messages of the next connection do not wait for those that this one has lost
        self._in_ms = self._out_ms = 0
