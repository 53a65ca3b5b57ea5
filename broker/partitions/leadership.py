"""One leadership of a replicated partition on this broker: followers' progress, and requests that wait
for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from ...cluster import PartitionState
from ...protocol import ErrorCode, KafkaError
from ...protocol.named_tuples import NamedTuple
from ...replication import IsrChangeRequest, Replication

#: Called once: with None when records are committed, or with the error that ends the wait here.
Then: TypeAlias = Callable[[KafkaError | None], None]


class _WaitingRequest(NamedTuple):
    end_offset: int
    then: Then


class _Condition(NamedTuple):
    is_met: Callable[[Replication], bool]
    then: Then


class Leadership:
    """``replication`` decides what is committed; ``committed`` is called with each new high watermark,
    ``request`` when ``replication`` requests other in-sync replicas. ``clock_ms`` never goes backwards.
    """

    __slots__ = ("_clock_ms", "_committed", "_conditions", "_request", "_waiting", "replication")

    def __init__(
        self,
        replication: Replication,
        clock_ms: Callable[[], int],
        committed: Callable[[int], None],
        request: Callable[[Leadership, IsrChangeRequest], None],
    ) -> None:
        self.replication = replication
        self._clock_ms = clock_ms
        self._committed = committed
        self._request = request
        # in the order of their offsets
        self._waiting: deque[_WaitingRequest] = deque()
        self._conditions: list[_Condition] = []

    def __repr__(self) -> str:
        return f"Leadership({self.replication}, {len(self._waiting)} wait)"

    def on_append(self, log_end_offset: int) -> None:
        """Called when the log has grown."""
        self._on_isr_change(moved=self.replication.on_append(log_end_offset, self._clock_ms()))

    def on_fetch(self, node_id: int, offset: int, broker_epoch: int, start_offset: int) -> None:
        """Called when a follower has everything from ``start_offset`` up to ``offset``. Raises KafkaError for
        a broker without a replica, and for one that has registered again since it sent the request.
        """
        moved = self.replication.on_fetch(
            node_id, offset, self._clock_ms(), broker_epoch=broker_epoch, start_offset=start_offset
        )
        self._on_isr_change(moved=moved)

    def on_change(self, state: PartitionState) -> None:
        """Called when the controller has changed the partition's state, under this leader epoch."""
        moved = self.replication.on_change(
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=state.isr,
            recovering=state.recovering,
            now_ms=self._clock_ms(),
        )
        self._on_isr_change(moved=moved)

    def on_refused(self, request: IsrChangeRequest, code: ErrorCode) -> None:
        """Called when the controller has refused a change, or its outcome is unknown; a retry may be due."""
        if self.replication.on_refused(request, code, self._clock_ms()):
            self._on_moved()
        self._look_at_conditions()

    def brokers_changed(self, eligible: Mapping[int, int]) -> None:
        """Called when the brokers that may be in sync have changed: node ids with their epochs."""
        self._on_isr_change(moved=self.replication.brokers_changed(eligible, self._clock_ms()))

    def reconfigure(self, min_isr: int, lag_time_max_ms: int) -> None:
        """Called when settings have changed."""
        self._on_isr_change(moved=self.replication.reconfigure(min_isr, lag_time_max_ms, self._clock_ms()))

    def advance(self) -> None:
        """Find followers that have lagged for too long."""
        self.replication.advance(self._clock_ms())
        self._on_isr_change(moved=False)

    def when_committed(self, end_offset: int, then: Then) -> bool:
        """Return whether records below ``end_offset`` are committed; if not, ``then`` is called when they
        are, or when this leadership has ended.
        """
        if self.replication.high_watermark >= end_offset:
            return True
        self._waiting.append(_WaitingRequest(end_offset, then))
        return False

    def when(self, is_met: Callable[[Replication], bool], then: Then) -> bool:
        """Return whether a condition is met; if not, ``then`` is called when it is, or when this leadership
        has ended.
        """
        if is_met(self.replication):
            return True
        self._conditions.append(_Condition(is_met, then))
        return False

    def wait_replicated(self, end_offset: int, timeout_ms: float) -> asyncio.Future[None] | None:
        """As ``when_committed``, as a future; None if they are committed. It may raise KafkaError:
        REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER.
        """
        what = "the records are not with all in-sync replicas"
        return self._in_time(partial(self.when_committed, end_offset), timeout_ms, what)

    def wait_deleted(self, before_offset: int, timeout_ms: float) -> asyncio.Future[None] | None:
        """A future for the time when no live in-sync replica has records below an offset; None if none has.
        It may raise KafkaError REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER.
        """

        def is_met(replication: Replication) -> bool:
            return replication.have_deleted(before_offset)

        what = "not all in-sync replicas have deleted the records"
        return self._in_time(partial(self.when, is_met), timeout_ms, what)

    def _in_time(
        self, begin: Callable[[Then], bool], timeout_ms: float, what: str
    ) -> asyncio.Future[None] | None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        # the caller may be gone by then
        done.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

        def then(error: KafkaError | None) -> None:
            late.cancel()
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        def time_is_up() -> None:
            self.forget(then)
            then(KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"{what} after {timeout_ms:.0f} ms"))

        late = loop.call_later(timeout_ms / 1_000, time_is_up)
        if not begin(then):
            return done
        late.cancel()
        return None

    def forget(self, then: Then) -> None:
        """Do not call ``then`` any more."""
        self._waiting = deque(each for each in self._waiting if each.then is not then)
        self._conditions = [each for each in self._conditions if each.then is not then]

    def end(self, error: KafkaError) -> None:
        """End the leadership: another broker leads, or none. Everything that waits gets an error."""
        waiting: list[_WaitingRequest | _Condition] = [*self._waiting, *self._conditions]
        self._waiting, self._conditions = deque(), []
        for each in waiting:
            each.then(error)

    def _on_isr_change(self, *, moved: bool) -> None:
        if moved:
            self._on_moved()
        if self._conditions:
            self._look_at_conditions()
        request = self.replication.take_isr_change()
        if request is not None:
            self._request(self, request)

    def _look_at_conditions(self) -> None:
        met = [each for each in self._conditions if each.is_met(self.replication)]
        self._conditions = [each for each in self._conditions if each not in met]
        for each in met:
            each.then(None)

    def _on_moved(self) -> None:
        high_watermark = self.replication.high_watermark
        self._committed(high_watermark)
        waiting = self._waiting
        while waiting and waiting[0].end_offset <= high_watermark:
            end_offset, then = waiting.popleft()
            try:
                self.replication.is_acknowledged(end_offset)
            except KafkaError as error:
                then(error)
            else:
                then(None)
