"""Programs of processes: a ConsumerService with a handler of each kind, or one with a bare consumer."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from typing import Any, Final

from ....client import ConsumerClosedError
from ....consumer import AsyncGroupConsumer, Record, StaleRecordError
from ....service import ConsumerService, DbApiSink, Retry
from ._ledger import HandledEntry
from ._plan import DEAD_LETTERS
from ._process import Program, Refused, ServiceProcess

BOOTSTRAP: Final = "simulated:9092"
#: Tries of a record before it is set aside; none fails more often unless it is poison.
ATTEMPTS: Final = 4
_POLL_MS: Final = 100
#: Of polls, after which a program commits.
_COMMITS: Final = 0.15
#: And no sooner after the last time.
_PAUSE_S: Final = 0.1
#: An impatient program waits this long for its consumer to close.
_IMPATIENT_S: Final = 0.2


class ServiceProgram:
    """A ConsumerService."""

    def __init__(self, service: ConsumerService) -> None:
        self.service = service

    async def run(self) -> None:
        await self.service.serve()

    def stop(self) -> None:
        self.service.stop("asked to")

    def consumer(self) -> AsyncGroupConsumer | None:
        engine = self.service._engine
        return None if engine is None else engine._consumer

    def queues(self) -> object:
        """Queues of the records that wait for their handlers."""
        engine = self.service._engine
        return () if engine is None else [running.queues for running in engine._running]


def _settings(process: ServiceProcess) -> dict[str, Any]:
    plan = process.world.plan
    return {
        "bootstrap": BOOTSTRAP,
        "group": plan.group,
        "drain_timeout_ms": plan.drain_ms,
        **instance_of(process),
        **plan.config,
    }


def instance_of(process: ServiceProcess) -> dict[str, object]:
    """The setting of a static member; a group without a coordinator has none."""
    if process.world.plan.protocol == "registry":
        return {}
    return {"group_instance_id": process.plan.instance_id}


def make_service(process: ServiceProcess) -> ConsumerService:
    plan = process.world.plan
    settings = _settings(process)
    if plan.backlog_max_bytes is not None:
        settings["backlog_max_bytes"] = plan.backlog_max_bytes
    service = ConsumerService(**settings)
    options: dict[str, Any] = {
        "concurrency": plan.concurrency,
        "retry": Retry(attempts=ATTEMPTS, backoff_ms=20, max_backoff_ms=100),
        "dead_letter": DEAD_LETTERS if plan.dead_letters else None,
    }
    handlers = Handlers(process)
    if plan.retry_after_ms:
        options |= {"retry_after_ms": plan.retry_after_ms, "retry": Retry(attempts=1)}
    if plan.kind == "once":
        service.exactly_once(DbApiSink(process.connect))
    for topics in [[topic] for topic in plan.topics] if plan.several else [list(plan.topics)]:
        if plan.kind == "batch":
            service.batch_handler(*topics, max_records=5, **options)(handlers.batch)
        elif plan.kind == "once":
            service.handler(*topics, **options)(handlers.once)
        else:
            handler = handlers.plain if plan.kind == "plain" else handlers.coroutine
            service.handler(*topics, lanes=plan.lanes, **options)(handler)
    return service


async def _take_time(process: ServiceProcess, entries: list[HandledEntry]) -> None:
    for entry in entries:
        if entry.hangs:
            await process.hang()
        elif entry.work_ms:
            await asyncio.sleep(entry.work_ms / 1_000)


class Handlers:
    """Handlers of one process; each does what its records ask for."""

    def __init__(self, process: ServiceProcess) -> None:
        self._process = process
        self._ledger = process.world.ledger

    async def coroutine(self, record: Record) -> None:
        await self._handle([self._ledger.of(record.value)])

    async def batch(self, records: list[Record]) -> None:
        await self._handle([self._ledger.of(record.value) for record in records])

    async def _handle(self, entries: list[HandledEntry]) -> None:
        process, ledger = self._process, self._ledger
        ledger.begins(process, entries)
        try:
            await _take_time(process, entries)
        except asyncio.CancelledError:
            ledger.on_cancelled(process, entries)
            raise
        self._outcome(entries, on_loop=True)

    def plain(self, record: Record) -> None:
        entries = [self._ledger.of(record.value)]
        self._ledger.begins(self._process, entries)
        self._outcome(entries)

    def once(self, record: Record, database: sqlite3.Connection) -> None:
        entry = self._ledger.of(record.value)
        self._ledger.begins(self._process, [entry])
        # raises before anything is written, if it does
        self._outcome([entry])
        database.execute("INSERT INTO effects (number) VALUES (?)", (entry.number,))

    def _outcome(self, entries: list[HandledEntry], *, on_loop: bool = False) -> None:
        error: BaseException | None = None
        for entry in entries:
            if entry.poison:
                error = Refused(f"{entry} is poison")
            elif entry.cancels and on_loop:
                entry.cancels = False
                error = asyncio.CancelledError()
            elif entry.fails:
                entry.fails -= 1
                error = Refused(f"{entry} is not to be had now")
        self._ledger.ends(self._process, entries, finished=error is None)
        if error is not None:
            raise error


class App:
    """A program that reads, handles what it gets in tasks, and marks it done with its consumer of then."""

    def __init__(self, process: ServiceProcess) -> None:
        self._process = process
        self._ledger = process.world.ledger
        self._consumer: AsyncGroupConsumer | None = None
        self._stopping = False
        self._commit_at = 0.0
        self._works: dict[asyncio.Task[None], None] = {}
        rng = process.rng
        #: It marks whole polls, or each record.
        self._whole = rng.random() < 0.4
        #: It closes without waiting for what it is at, or not patiently enough.
        self._hasty = not process.world.plan.calm and rng.random() < 0.5
        self._impatient = rng.random() < 0.3
        self._reconnects = rng.random() < 0.4
        #: It takes one consumer for another.
        self._mixes_up = rng.random() < 0.4

    def stop(self) -> None:
        self._stopping = True

    def consumer(self) -> AsyncGroupConsumer | None:
        return self._consumer

    def queues(self) -> object:
        return ()

    async def run(self) -> None:
        rng, loop = self._process.rng, asyncio.get_running_loop()
        while not self._stopping:
            consumer = self._make()
            await consumer.start()
            self._consumer = consumer
            until = loop.time() + rng.uniform(0.5, 3.0) if self._reconnects else float("inf")
            try:
                await self._read(consumer, until)
            finally:
                await self._close(consumer)
        if self._works:
            await asyncio.wait(list(self._works), timeout=self._process.world.plan.drain_ms / 1_000)
        for work in list(self._works):
            work.cancel()
        await asyncio.gather(*self._works, return_exceptions=True)
        self._consumer = None

    def _make(self) -> AsyncGroupConsumer:
        return AsyncGroupConsumer(*self._process.world.plan.topics, **_settings(self._process))

    async def _read(self, consumer: AsyncGroupConsumer, until: float) -> None:
        rng, loop = self._process.rng, asyncio.get_running_loop()
        while not self._stopping and loop.time() < until:
            records = await consumer.getmany(timeout_ms=_POLL_MS)
            if self._mixes_up and records:
                self._tell_others(records)
            for some in [records] if self._whole and records else [[record] for record in records]:
                self._start_task(self._work(some))
            if loop.time() >= self._commit_at and rng.random() < _COMMITS:
                self._commit_at = loop.time() + _PAUSE_S
                self._start_task(self._commit(consumer))

    def _start_task(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work, name="work")
        self._works[task] = None
        task.add_done_callback(lambda done: self._works.pop(done, None))

    def _tell_others(self, records: list[Record]) -> None:
        """Say that these are done, which they are not: others were never given them."""
        for other in self._process.world.processes.values():
            consumer = other.consumer
            if other is not self._process and consumer is not None:
                other.loop.call_soon(_done_elsewhere, other, consumer, records)

    async def _commit(self, consumer: AsyncGroupConsumer) -> None:
        # what cannot be committed is handled again; the checks see what is committed
        with suppress(Exception):
            await consumer.commit(timeout_ms=1_000)

    async def _work(self, records: list[Record]) -> None:
        process, ledger = self._process, self._ledger
        entries = [ledger.of(record.value) for record in records]
        ledger.begins(process, entries)
        try:
            await _take_time(process, entries)
        except asyncio.CancelledError:
            ledger.gives_up(process, entries)
            raise
        ledger.ends(process, entries, finished=True)
        consumer = self._consumer
        if consumer is None:
            return
        with suppress(StaleRecordError, ConsumerClosedError):
            if self._whole:
                consumer.done_all(records)
            else:
                consumer.done(records[0])

    async def _close(self, consumer: AsyncGroupConsumer) -> None:
        process = self._process
        drain_ms = 0 if self._hasty else process.world.plan.drain_ms
        if self._impatient and process.world.plan.calm:
            # a signal's handler closes as well: who comes second waits for the first
            self._start_task(consumer.close(drain_timeout_ms=drain_ms))
            await asyncio.sleep(0)
        elif self._impatient:
            with suppress(TimeoutError):
                await asyncio.wait_for(consumer.close(drain_timeout_ms=drain_ms), _IMPATIENT_S)
        await consumer.close(drain_timeout_ms=drain_ms)
        await asyncio.sleep(0)
        process.on_closed(self._works)


def _done_elsewhere(process: ServiceProcess, consumer: AsyncGroupConsumer, records: list[Record]) -> None:
    try:
        consumer.done_all(records)
    except (StaleRecordError, ConsumerClosedError):
        return
    text = f"{process.name} takes it that {len(records)} records are done which another consumer delivered"
    process.world.found("S11", text)


def make_program(process: ServiceProcess) -> Program:
    if process.world.plan.kind == "app":
        return App(process)
    return ServiceProgram(make_service(process))
