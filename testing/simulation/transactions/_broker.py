"""The whole broker as it ships, without its sockets, on a disk that fails; killed, stopped and started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextvars import copy_context
from pathlib import Path
from random import Random
from typing import Any, Final, cast

from ....broker.apis import Request, served_apis
from ....broker.assembly import BrokerAssembly
from ....broker.event_loop.time_slices import LongWork
from ....broker.metadata.topics import FolderTopics, TopicPlan
from ....broker.partitions.partition import Partition
from ....broker.partitions.topic_names import TRANSACTIONS_TOPIC
from ....broker.requests.router import Router
from ....broker.settings import BrokerSettings
from ....client.pool import SURROUNDINGS, Surroundings
from ....cluster import Change, FolderStore
from ....cluster.tree import Tree
from ....log import CorruptLogError, DataFolderError, Result, Steps
from ....protocol import ErrorCode, KafkaError, KohortError
from .._disk import FailingDisk
from .._loop import ProcessLoop
from .._network import SimulatedCall
from .._plan import Incident
from .._schedule import Schedule
from ._plan import TransactionPlan

_DATA: Final = Path("/data")
_ENDPOINT: Final = ("simulated", 9092)
#: Time after which the operator restarts the broker.
_RESTART_MS: Final = (1, 10, 300)
_NOTICED_MS: Final = 50


class _Metadata(FolderStore):
    """The metadata of a folder, in memory: what becomes of its files is not what this is about."""

    def __init__(self, folder: str, tree: Tree) -> None:
        super().__init__(folder)
        self._tree = tree
        self._unread.clear()

    def commit_now(self, *changes: Change) -> None:
        self._tree.apply(self._tree.plan(changes))


class _DrawnTurns(LongWork):
    """Long work that randomly yields to others wherever it may."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    async def run(self, steps: Steps[Result]) -> Result:
        if self._rng.random() < 0.2:
            await asyncio.sleep(self._rng.randint(0, 5) / 1_000)
        found: Any = None
        try:
            while True:
                work = steps.send(found)
                found = None if work is None else work.call()
        except StopIteration as done:
            result: Result = done.value
            return result


class LoneProcess(FailingDisk):
    """One broker through all its runs; ``parts`` are those of the current run, None between runs."""

    def __init__(self, schedule: Schedule[TransactionPlan]) -> None:
        super().__init__(schedule)
        self.parts: BrokerAssembly | None = None
        self.reachable = False
        #: Partitions that may be looked at by now, with their topics' names.
        self.partitions: list[Partition] = []
        self._plan = schedule.plan
        self._tree = Tree()
        self._loop: ProcessLoop | None = None
        self._context = copy_context()
        # a slice of work ends by virtual time, however busy the machine is
        around = Surroundings(time_ms=schedule.clock_ms, work_clock=lambda: schedule.heap.now / 1_000)
        self._context.run(SURROUNDINGS.set, around)
        self._apis = served_apis()
        self._serving: dict[asyncio.Task[None], None] = {}
        self._settings = BrokerSettings(**schedule.plan.settings)
        #: Called when the machine loses power.
        self.lost_power: Callable[[], None] = lambda: None
        self._noticed = False

    # --- requests -----------------------------------------------------------------------------------------

    def receive(self, call: SimulatedCall) -> None:
        assert self._loop is not None
        self._schedule.stats.requests += 1
        call.on_set = lambda _call, _body: None
        task = self._context.run(self._loop.create_task, self._serve(call))
        self._serving[task] = None
        task.add_done_callback(lambda done: self._serving.pop(done, None))

    async def _serve(self, call: SimulatedCall) -> None:
        assert self.parts is not None
        api = self._apis[cast("Any", call.api_key)]
        request = Request(api, call.version, call.body, call.client.context, _ENDPOINT, self._apis)
        try:
            body = await api.handler(self.parts.node, request)
        except KafkaError as error:
            body = request.error_answer(error.code)
        except OSError:
            body = request.error_answer(ErrorCode.KAFKA_STORAGE_ERROR)
        except Exception as error:
            self._schedule.found("S0", f"{call} fails with {error!r}")
            return
        if self.reachable:
            call.set(body)

    # --- looking ------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check what the machine's operator would notice; called after each event."""
        if self._fs.crashed and self._loop is not None:
            self.on_crash()
        elif self.reachable and not self._noticed and any(self._damaged()):
            self._schedule.say("a partition is offline: the broker is started again soon")
            self._noticed = True
            self._schedule.heap.at(self._schedule.heap.now + _NOTICED_MS, self._restart, self.parts)

    def _damaged(self) -> Iterator[bool]:
        for partition in self.partitions:
            yield partition.damage is not None or (partition.log is not None and partition.log.offline)

    def _restart(self, parts: BrokerAssembly) -> None:
        if self.parts is parts:
            self._crash()

    # --- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        schedule = self._schedule
        self._loop = loop = ProcessLoop(  # type: ignore[abstract]
            schedule.heap, failed=self._on_error, delay_ms=self._delay_ms
        )
        self._context.run(loop.create_task, self._start())

    async def _start(self) -> None:
        schedule = self._schedule
        try:
            parts = BrokerAssembly(
                _DATA,
                _ENDPOINT,
                self._settings,
                None,
                schedule.clock_ms,
                Router,
                fs=self._fs,
                make_store=lambda folder: _Metadata(folder, self._tree),
                now_ms=schedule.clock_ms,
            )
            self.parts = parts
            # there are no sockets
            parts.server.start = lambda: None  # type: ignore[method-assign]
            parts.node.long_work = _DrawnTurns(schedule.rng)
            topics = parts.node.topics
            assert isinstance(topics, FolderTopics)
            if topics.get(TRANSACTIONS_TOPIC) is None:
                count = self._settings.transaction_state_log_num_partitions
                topics.create_internal(TRANSACTIONS_TOPIC, count)
                await topics.carry_out(
                    [TopicPlan(name, count, self._plan.configs) for name, count in self._plan.topics.items()]
                )
            self.partitions = list(parts.node.logs.partitions())
            parts.coordinator.open()
            self.reachable = True
            schedule.stats.reloads += 1
            await parts.start()
        except (KohortError, CorruptLogError, DataFolderError, OSError) as error:
            # the disk still fails: the operator restarts the broker later
            if not self._fs.failed:
                raise
            schedule.say(f"the broker cannot start: {error}")
            schedule.heap.at(schedule.heap.now, self._crash)

    def on_crash(self) -> None:
        self._schedule.say("everything stops in the middle of a write")
        self._crash(power=self._plan.fsync)

    def _crash(self, *, power: bool = False) -> None:
        """The process, or with ``power`` its machine, stops here; it starts again a little later."""
        if self._loop is None:
            return
        self._schedule.stats.crashes += 1
        if power:
            self.lost_power()
        left = self._what_is_left(power=power)
        self._go_down()
        self._fs = left
        self._start_later()

    def _start_later(self) -> None:
        schedule = self._schedule
        schedule.heap.at(schedule.heap.now + schedule.rng.choice(_RESTART_MS), self.start)

    def _go_down(self) -> None:
        loop, self._loop = self._loop, None
        self.reachable = self._noticed = False
        self.parts, self.partitions = None, []
        self._serving.clear()
        # a discarded coroutine can no longer write to the disk
        self._fs.crashed = True
        if loop is not None:
            loop.clear()
        self._schedule.connections_broke()

    def close(self) -> None:
        """Drop all references, so that this is freed at once."""
        self._schedule.healed = True
        if self._loop is not None:
            self._fs.crashed = True
            self._loop.clear()
        vars(self).clear()

    # --- what goes wrong ----------------------------------------------------------------------------------

    def _meet_kill(self, _incident: Incident) -> None:
        self._crash()

    def _meet_power_loss(self, _incident: Incident) -> None:
        self._crash(power=True)

    def _meet_stop(self, _incident: Incident) -> None:
        if self.reachable and self._loop is not None:
            self.reachable = False
            self._context.run(self._loop.create_task, self._stop())

    async def _stop(self) -> None:
        parts = self.parts
        assert parts is not None
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
        try:
            await parts.stop()
        except KohortError as error:
            self._schedule.say(f"the stop is not clean: {error}")
        self._schedule.heap.at(self._schedule.heap.now, self._on_stopped, parts)

    def _on_stopped(self, parts: BrokerAssembly) -> None:
        if self.parts is parts:
            left = self._what_is_left(power=False)
            self._go_down()
            self._fs = left
            self._start_later()

    def _on_error(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not self._fs.crashed:
            self._schedule.found("S0", f"{context['message']}: {error!r}")

    def _delay_ms(self, _call: object) -> int:
        return self._schedule.rng.choice((0, 1, 5, 30))
