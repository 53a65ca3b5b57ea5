"""All shards of one internal topic on one event loop: they are loaded, queried and unloaded.

All brokers and clients agree on a key's partition: see ``partition_for``.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from ...offsets_topic import partition_for
from .effects import Command, Request
from .events import CoordinatorEvent
from .readiness import Unready
from .runner import CoordinatorLog, ShardReplicas, ShardRunner, Writes
from .shard import CoordinatorTopic, S, Shard

T = TypeVar("T")

#: Most keys whose runner is cached, and the longest such key: requests may name groups that do not exist.
_MAX_REMEMBERED: Final = 50_000
_MAX_REMEMBERED_KEY: Final = 100

#: Requests about many keys that change nothing let other work run after this long, in seconds. All others are
#: carried out whole, even if their response is given up.
_TURN_S: Final = 0.002

#: Longest time for which a request is held during a load: shorter than every client's timeout.
_LOAD_PARK_SECONDS: Final = 5.0
#: Clocks drift, and are set right step by step.
_LEAST_AHEAD_MS: Final = 1_000


class ShardRuntime(Generic[S]):
    """The shards of a topic that are on this broker, for one event loop.

    ``new_state`` makes the state of a new shard. ``clock_ms`` must not go backwards. ``on_event`` is called
    with each event and its shard. ``fsync`` puts each batch on the disk before it is acknowledged.
    ``on_command`` carries out the commands of shards. ``replicas`` is set if other brokers have copies of the
    topic, and says what is committed; shards then come and go by ``load`` and ``unload``. ``ahead_ms`` is how
    far the wall clock, whose times are stored, is ahead of this one.
    """

    def __init__(
        self,
        *,
        topic: CoordinatorTopic[S],
        new_state: Callable[[], S],
        log: CoordinatorLog,
        clock_ms: Callable[[], int],
        on_event: Callable[[S, CoordinatorEvent], None],
        fsync: bool,
        linger_ms: int,
        on_command: Callable[[ShardRunner[S], Command], None] | None = None,
        replicas: ShardReplicas | None = None,
        ahead_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        self.started = False
        self.writes = Writes()
        self._topic = topic
        self._key_of = topic.key_of
        self._new_state = new_state
        self._log = log
        self._clock_ms = clock_ms
        self._on_event = on_event
        self._fsync = fsync
        self._linger_ms = linger_ms
        self._on_command = on_command
        self._replicas = replicas
        self._ahead_ms = ahead_ms
        self._runners: dict[int, ShardRunner[S]] = {}
        self._by_key: dict[str, ShardRunner[S]] = {}

    def __repr__(self) -> str:
        loading = sum(runner.loading for runner in self._runners.values())
        return f"{len(self._runners)} shards, {loading} of them loading"

    def __iter__(self) -> Iterator[ShardRunner[S]]:
        return iter(self._runners.values())

    def open(self) -> None:
        """Start to answer requests as a coordinator that is loading."""
        self.started = True
        if self._replicas is None:
            for partition in range(self._log.partition_count):
                self._runners[partition] = self._make_runner(partition)

    async def load_all(self) -> dict[int, int]:
        """Load every shard; each serves once it is loaded. Return the number of unreadable records of
        each.
        """
        collecting = gc.isenabled()
        gc.disable()  # loaded state is never garbage: the collector would traverse it again and again
        try:
            for runner in list(self):
                await runner.load()
        finally:
            if collecting:
                gc.enable()
        return {runner.partition: runner.skipped for runner in self if runner.skipped}

    def stop(self) -> None:
        """Write what is pending, then answer waiting requests NOT_COORDINATOR."""
        self.started = False
        for runner in self:
            runner.close()
        self._runners.clear()
        self._by_key.clear()

    async def load(self, partition: int) -> None:
        """Load one partition, which this broker now leads."""
        self.unload(partition)
        runner = self._runners[partition] = self._make_runner(partition)
        await runner.load()

    def unload(self, partition: int) -> bool:
        """Unload one partition, which another broker leads now, or which is deleted. Return whether it was
        loaded here.
        """
        self._by_key.clear()
        runner = self._runners.pop(partition, None)
        if runner is not None:
            runner.close()
        return runner is not None

    def submit(self, request: Request) -> None:
        """Submit a request; its response goes to its handle, before this returns or later."""
        key = self._key_of(request.body)
        runner = self._by_key.get(key) or self._runner_of(key)
        if runner is not None and self.started and not runner.loading:
            runner.step(request)
        else:
            self._refuse_request(request, self._unready_reason(runner))

    async def submit_all(self, requests: Iterable[Request], *, reads: bool, exact: bool) -> None:
        """Submit requests that arrived as one. Those that only read let other work run between them.
        ``exact`` ones wait while their shard is loaded, and are refused while another broker may have
        replaced this one: its writes would be missing in their responses.
        """
        loop = asyncio.get_running_loop()
        turn_ends = loop.time() + _TURN_S
        for request in requests:
            if exact and await self._wait_for_load(self._key_of(request.body)):
                turn_ends = loop.time() + _TURN_S
            if exact and self._may_be_replaced(self._key_of(request.body)):
                self._refuse_request(request, Unready.NOT_HERE)
            else:
                self.submit(request)
            if reads and loop.time() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = loop.time() + _TURN_S

    def serving(self, key: str) -> Shard[S] | Unready:
        """The shard of a key, or the reason why it does not serve."""
        runner = self.serving_partition(self.partition_of(key))
        return runner if isinstance(runner, Unready) else runner.shard

    def serving_partition(self, partition: int) -> ShardRunner[S] | Unready:
        """The runner of a partition's shard, or the reason why it does not serve."""
        runner = self._runners.get(partition)
        if runner is None or runner.loading or not self.started:
            return self._unready_reason(runner)
        return Unready.NOT_HERE if runner.shard.gone else runner

    def steer(self, key: str, step: Callable[[Shard[S], int], T]) -> T:
        """Run a step on the shard of a key and carry out what follows, as for a request."""
        return self._runners[self.partition_of(key)].steer(step)

    def time_moved(self) -> None:
        """Do what has become due, after the clock was moved forward."""
        for runner in self:
            runner.wake()

    def partition_of(self, key: str) -> int:
        """The partition of a key, by Java's hash of strings."""
        return partition_for(key, self._log.partition_count)

    def _refuse_request(self, request: Request, unready: Unready) -> None:
        error = self._topic.unready_error(request.api_key, unready)
        request.handle.set(self._topic.refusal(request, error))

    def _may_be_replaced(self, key: str) -> bool:
        return self._replicas is not None and self._replicas.may_be_replaced(self.partition_of(key))

    async def _wait_for_load(self, key: str) -> bool:
        """Wait while the shard of a key loads, up to a timeout; return whether it is loaded."""
        runner = self._runner_of(key)
        if runner is None or not runner.loading:
            return False
        await runner.wait_loaded(_LOAD_PARK_SECONDS)
        return True

    def _runner_of(self, key: str) -> ShardRunner[S] | None:
        runner = self._by_key.get(key)
        if runner is None:
            runner = self._runners.get(self.partition_of(key))
            if runner is not None and len(key) <= _MAX_REMEMBERED_KEY:
                if len(self._by_key) >= _MAX_REMEMBERED:
                    self._by_key.clear()
                self._by_key[key] = runner
        return runner

    def _unready_reason(self, runner: ShardRunner[S] | None) -> Unready:
        if not self.started:
            return Unready.INACTIVE
        return Unready.NOT_HERE if runner is None else Unready.LOADING

    def _make_runner(self, partition: int) -> ShardRunner[S]:
        state = self._new_state()
        return ShardRunner(
            partition,
            Shard(self._topic, state),
            self._log,
            self._clock_ms,
            lambda event: self._on_event(state, event),
            self.writes,
            self._fsync,
            self._linger_ms,
            self._on_command,
            self._replicas,
            self._ahead_ms,
        )


def steady_clock_ms() -> Callable[[], int]:
    """A clock in ms since the epoch that does not follow later changes of the wall clock."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + offset_ns) // 1_000_000


def wall_clock_ahead_ms(clock_ms: Callable[[], int]) -> int:
    """How far the wall clock is ahead of a steady one, as it was wrong at the start, or the machine was
    suspended; 0 where it is behind, or not a second ahead.
    """
    ahead_ms = time.time_ns() // 1_000_000 - clock_ms()
    return ahead_ms if ahead_ms > _LEAST_AHEAD_MS else 0
