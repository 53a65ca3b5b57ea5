"""The broker's side: the shipped coordinator and log on a disk that fails, with starts and stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Final
from uuid import UUID, uuid5

from ....coordinator import GroupCoordinator, GroupSettings, group_shard
from ....coordinator.consumer_groups.target import ComputeTarget
from ....coordinator.engine.loader import Loader
from ....coordinator.engine.runner import READ_TURNS
from ....coordinator.groups.durable import Durable
from ....coordinator.groups.shards import OFFSETS_TOPIC
from ....log import Cleaning, CorruptLogError, LogConfig, PartitionLog
from ....offsets_topic import OffsetsStore
from ....protocol import KafkaError
from ..engine._disk import FailingDisk
from ..engine._loop import ProcessLoop
from ..engine._network import SimulatedCall
from ..engine._plan import Incident
from ..engine._schedule import Schedule
from ._checks import Checks
from ._plan import GroupsPlan
from ._plug_in import FAULTS, PlugInProcess

_FOLDER: Final = "/data/__consumer_offsets-0"
_TOPIC_ID: Final = uuid5(UUID(int=0), "__consumer_offsets")
_HOUR_MS: Final = 3_600_000


class _Settings(GroupSettings):
    """Expiry in the time that a schedule has."""

    retention_ms = 0

    @property
    def offsets_retention_ms(self) -> int:
        return self.retention_ms


class _Store(OffsetsStore):
    """Reports to the checks what is removed."""

    checks: Checks
    log: PartitionLog

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], now_ms: int, **options: Any
    ) -> int:
        for key, value in records:
            if value is None:
                self.checks.removing(key, now_ms)
        base_offset = super().append(partition, records, now_ms, **options)
        self.log.advance_high_watermark(self.log.log_end_offset)
        return base_offset


class CoordinatorProcess(FailingDisk):
    """One broker through all its runs."""

    _schedule: Schedule[GroupsPlan]

    def __init__(self, schedule: Schedule[GroupsPlan], checks: Checks) -> None:
        plan = schedule.plan
        self.reachable = False
        super().__init__(schedule)
        self._checks = checks
        self._fs.make_dirs("/data")
        self._fs.sync_dir("/")
        self._checkpoint = 0
        self._clean = False
        self._next_clock_off_ms = schedule.clock_off_ms
        self._loop = self._new_loop()
        #: Errors of tasks that nobody waited for.
        self._errors: list[BaseException] = []
        self._coordinator: GroupCoordinator | None = None
        self._settings = _Settings(
            group_min_session_timeout_ms=1,
            group_initial_rebalance_delay_ms=plan.initial_delay_ms,
            group_max_size=plan.max_size,
            group_consumer_min_session_timeout_ms=1,
            group_consumer_session_timeout_ms=plan.session_ms,
            group_consumer_min_heartbeat_interval_ms=1,
            group_consumer_heartbeat_interval_ms=plan.heartbeat_ms,
            group_consumer_assignment_interval_ms=plan.initial_delay_ms,
            group_consumer_migration_policy="bidirectional" if plan.turns_back else "upgrade",
            offsets_retention_check_interval_ms=500,
            # one that is not the coordinator's own is asked concurrently with everything else
            group_consumer_assignors="sticky" if plan.beside else "uniform,range",
            kohort_group_history_size=0,
        )
        self._settings.retention_ms = plan.retention_ms
        self._config = LogConfig(
            segment_bytes=plan.segment_bytes,
            segment_index_bytes=256,
            index_interval_bytes=256,
            cleanup_policy="compact",
            min_cleanable_dirty_ratio=0.0,
            delete_retention_ms=plan.session_ms,
            file_delete_delay_ms=100,
        )
        self._cleaning: Cleaning | None = None
        # what the plug-in that assigns partitions does wrong, and until when
        self._plug_in_fails = "", 0
        #: Requests about many groups that are not answered yet.
        self._fanned_out: set[Coroutine[object, None, object]] = set()

    # --- what others ask ----------------------------------------------------------------------------------

    def receive(self, call: SimulatedCall) -> None:
        if self._loop.frozen:
            self._checks.unread.add(call)
            self._read(call, self._schedule.rng.randrange(READ_TURNS))
        else:
            self._take(call)

    def _read(self, call: SimulatedCall, turns: int) -> None:
        """Take a request out of its socket in one of the process' next turns."""
        if turns:
            self._loop.call_soon(self._read, call, turns - 1)
        else:
            self._loop.call_soon(self._take, call)

    def _take(self, call: SimulatedCall) -> None:
        self._checks.unread.discard(call)
        coordinator = self._coordinator
        assert coordinator is not None
        self._schedule.stats.requests += 1
        self._checks.on_request(call)
        call.on_set = self._checks.on_answer
        if call.api_key in OFFSETS_TOPIC.fan_outs:
            answer = coordinator.handle(call.api_key, call.version, call.body, call.client.context)
            self._fanned_out.add(answer)
            self._fan_out(call, answer)
        else:
            coordinator.submit(call.api_key, call.version, call.body, call.client.context, call)

    def look(self) -> None:
        """Check what the machine's operator would notice; called after each event."""
        if self._errors:
            raise self._errors.pop()
        if self._schedule.log is not None and self._schedule.log.offline and self.reachable:
            self._schedule.say("the log is offline: the coordinator is stopped")
            self._crash()

    def _read_back(self) -> Durable:
        """Return the state that a coordinator would load if it started now."""
        assert self._schedule.log is not None
        shard = group_shard(self._settings, self._schedule.new_id)
        for _ in Loader(shard, 0, lambda _: None).run(OffsetsStore({0: self._schedule.log}).load(0)):
            pass
        return shard.state.durable

    # --- life ---------------------------------------------------------------------------------------------

    def _new_loop(self) -> ProcessLoop:
        return ProcessLoop(self._schedule.heap, failed=self._on_error, delay_ms=lambda _: 0)  # type: ignore[abstract]

    def _on_error(self, context: dict[str, Any]) -> None:
        """Pass errors of callbacks on to the heap's caller; the disk may have stopped everything."""
        error: BaseException = context.get("exception") or RuntimeError(context["message"])
        if "handle" in context:
            raise error
        self._errors.append(error)

    def start(self) -> None:
        """Open the log, accept requests, and load the log a little later."""
        schedule = self._schedule
        self._schedule.clock_off_ms = self._next_clock_off_ms
        try:
            log = PartitionLog.open(
                _FOLDER,
                self._config,
                now_ms=self._schedule.clock_ms(),
                clean=self._clean,
                recovery_point=self._checkpoint,
                topic_id=_TOPIC_ID,
                keep_damage=True,
                fs=self._fs,
            )
            log.advance_high_watermark(log.log_end_offset)
            schedule.log = log
        except (KafkaError, CorruptLogError) as error:
            # the disk still fails: the operator restarts the broker later
            if not self._fs.failed:
                raise
            schedule.say(f"the log cannot be opened: {error}")
            self._clean = False
            schedule.heap.at(schedule.heap.now + 200, self.start)
            return
        self._clean = False
        loop = self._loop = self._new_loop()
        asyncio._set_running_loop(loop)
        store = _Store({0: log})
        store.checks, store.log = self._checks, log
        self._coordinator = GroupCoordinator(
            settings=self._settings,
            store=store,
            partition_count_of=schedule.partition_count,
            topic_of_id=schedule.topic_of_id,
            id_of_topic=schedule.id_of_topic,
            topic_names=schedule.topic_names,
            topics_version=schedule.topics_version,
            clock_ms=schedule.clock_ms,
            new_id=schedule.new_id,
            on_event=self._checks.on_event,
            fsync=schedule.plan.fsync,
            workers={ComputeTarget: PlugInProcess(schedule, loop, self._plug_in_fault)},
        )
        self._coordinator.open()
        self.reachable = True
        loading_ms = (0, 0, 5) if schedule.plan.crashes else (0, 0, 5, 100)
        loop.call_later(schedule.rng.choice(loading_ms) / 1_000, self._load)

    def _crash(self, *, power: bool = False) -> None:
        """The process, or with ``power`` its machine, stops here; it starts again a little later."""
        if not self.reachable:
            return
        self._schedule.stats.crashes += 1
        at_risk = (
            self._schedule.log is None or self._schedule.log.offline or (power and self._cut_not_synced())
        )
        self._go_down()
        self._fs = self._what_is_left(power=power)
        self._start_again(torn=at_risk)

    def on_crash(self) -> None:
        """The file system has stopped the process in the middle of an operation."""
        schedule = self._schedule
        self._schedule.stats.crashes += 1
        schedule.say("everything stops in the middle of a write")
        self._go_down()
        self._fs = self._what_is_left(power=schedule.plan.fsync)
        self._start_again(torn=True)

    def _meet_stop(self, _incident: Incident) -> None:
        """Stop cleanly and restart."""
        coordinator, log = self._coordinator, self._schedule.log
        if not self.reachable or coordinator is None or log is None or log.offline:
            return
        schedule = self._schedule
        _run(coordinator.stop())
        try:
            log.close()
            self._clean = True
            self._checkpoint = log.recovery_point
        except KafkaError as error:
            schedule.say(f"the stop is not clean: {error}")
        self._go_down()
        self._start_again(torn=not self._clean)

    def _meet_move(self, _incident: Incident) -> None:
        """Resign the partition and take it over again."""
        coordinator = self._coordinator
        if not self.reachable or coordinator is None or self._schedule.shard is None:
            return
        schedule = self._schedule
        self._schedule.shard = None
        coordinator.unload(0)
        self._checks.on_crash(torn=True)
        self._loop.call_later(schedule.rng.choice((1, 50, 500)) / 1_000, self._load, 0)

    def close(self) -> None:
        """Drop all references, so that the objects are freed at once."""
        self._forget()
        vars(self).clear()

    # --- what goes wrong ----------------------------------------------------------------------------------

    def _meet_kill(self, _incident: Incident) -> None:
        self._crash()

    def _meet_power_loss(self, _incident: Incident) -> None:
        self._crash(power=True)

    def _meet_clock_jump(self, incident: Incident) -> None:
        # the wall clock has jumped at the next start
        self._next_clock_off_ms = self._schedule.clock_off_ms + int((2 * incident.draw - 1) * _HOUR_MS)

    def _meet_hold_up(self, incident: Incident) -> None:
        self._loop.freeze(self._schedule.heap.now + incident.length_ms)

    def _meet_assignor_fails(self, incident: Incident) -> None:
        fault = FAULTS[int(incident.draw * len(FAULTS))]
        self._schedule.say(f"... it {fault}")
        self._plug_in_fails = fault, self._schedule.heap.now + incident.length_ms

    def _plug_in_fault(self) -> str:
        fault, until_ms = self._plug_in_fails
        return fault if self._schedule.heap.now < until_ms else ""

    def _meet_checkpoint(self, _incident: Incident) -> None:
        if self._schedule.log is not None and not self._schedule.log.offline:
            self._checkpoint = self._schedule.log.recovery_point

    def _meet_compaction(self, _incident: Incident) -> None:
        log = self._schedule.log
        if log is None or log.offline or self._cleaning is not None:
            return
        try:
            log.roll_for_cleaning(self._schedule.clock_ms(), 1)
            self._cleaning = log.begin_cleaning(self._schedule.clock_ms(), memory_bytes=1 << 20)
        except (KafkaError, OSError, CorruptLogError) as error:
            self._schedule.say(f"no compaction: {error}")
            return
        self._loop.call_soon(self._clean_on, log, self._cleaning.stages())

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, with its offsets in every group."""
        if self._coordinator is not None:
            if self._schedule.shard is None:
                self._checks.changed_while_loading()
            self._coordinator.topics_deleted({topic})

    # --- inside -------------------------------------------------------------------------------------------

    def _start_again(self, *, torn: bool) -> None:
        schedule = self._schedule
        self._checks.on_crash(torn=torn)
        down_ms = (1, 5, 20) if schedule.plan.crashes else (1, 10, 300)
        schedule.heap.at(schedule.heap.now + schedule.rng.choice(down_ms), self.start)

    def _cut_not_synced(self) -> bool:
        """Return whether bytes that a failed append wrote and cut off again may outlive a loss of power.

        Nobody has been told whether they were written.
        """
        of_the_log = (each.kind for each in reversed(self._fs.operations) if each.path.endswith(".log"))
        return next((kind for kind in of_the_log if kind in ("cut", "sync")), "") == "cut"

    def _go_down(self) -> None:
        self.reachable = False
        self._loop.kill()
        self._checks.on_gone()
        self._forget()
        self._coordinator = self._cleaning = None
        self._schedule.shard = self._schedule.log = None
        self._schedule.connections_broke()

    def _forget(self) -> None:
        for answer in self._fanned_out:
            answer.close()
        self._fanned_out.clear()
        for runner in self._coordinator._shards if self._coordinator is not None else ():
            if runner._alarm is not None:
                runner._alarm.cancel()

    def _load(self, partition: int | None = None) -> None:
        coordinator = self._coordinator
        assert coordinator is not None
        _run(coordinator.load_all() if partition is None else coordinator.load(partition))
        if self._schedule.log is None or self._schedule.log.offline:
            # a partition that cannot be read is not served; the broker is restarted
            self._schedule.say("the log is offline: nothing is loaded")
            self._schedule.heap.at(self._schedule.heap.now, self.look)
            return
        runner = next(iter(coordinator._shards))
        self._schedule.shard = runner.shard
        self._schedule.stats.reloads += 1
        self._checks.on_loaded(runner.skipped)

    def _fan_out(self, call: SimulatedCall, answer: Coroutine[object, None, object]) -> None:
        """Run a request about many groups until it waits, and continue it when the wait is over."""
        try:
            waits = answer.send(None)
        except StopIteration as end:
            self._fanned_out.discard(answer)
            call.set(end.value)
            return
        assert isinstance(waits, asyncio.Future)
        # as a task would, without the cost of one
        waits._asyncio_future_blocking = False
        waits.add_done_callback(lambda _: self._fan_out(call, answer))

    def _clean_on(self, log: PartitionLog, stages: Iterator[Any]) -> None:
        cleaning = self._cleaning
        if cleaning is None or log.offline:
            return
        try:
            stage = next(stages, None)
            if stage is not None:
                stage.run()
                self._loop.call_later(self._schedule.rng.randint(0, 30) / 1_000, self._clean_on, log, stages)
                return
        except (KafkaError, OSError, CorruptLogError) as error:
            self._schedule.say(f"the compaction ends: {error}")
        self._cleaning = None
        if log.end_cleaning(cleaning):
            self._schedule.stats.compactions += 1
            self._checks.on_compacted(self._read_back)


def _run(coroutine: Coroutine[object, None, None]) -> None:
    """Run a coroutine that only ever yields to others."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        return
