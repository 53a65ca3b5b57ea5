"""The share consumer as it ships, in a process of its own that is killed, stands still, loses its connections
and has its wall clock put forward and back.

``python -m tests.torture.share_consumer JSON`` is that process. It tells what it is given and what it says in
lines of JSON, before it does anything else with a record, and takes commands as lines. SIGTERM closes it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from kohort.client.connection import Connection
from kohort.client.errors import ConsumerClosedError
from kohort.client.pool import Channel
from kohort.consumer import BlockingShareConsumer, ShareConsumer
from kohort.consumer.share import peers
from kohort.consumer.share.events import LockLost
from kohort.consumer.share.records import ShareRecord
from kohort.protocol import AcknowledgeType, KohortError
from kohort.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from tests.torture.share_ledger import Place, ShareLedger
from tests.torture.share_members import Decide, accept_all, decide_drawn

#: What the process may be told: to accept whatever comes, that its network fails, that its wall clock jumps,
#: to tell how it is.
ACCEPT_ALL, BREAK, JUMP, DESCRIBE = "accept all", "break", "jump", "describe"
_FLUSH_MS = 20_000
#: How likely it is that a record takes longer than a lock lasts, and for how long, in seconds.
_SLOW, _SLOW_S = 0.02, (1.0, 4.0, 7.0)
_JUMPS_S = (-86_400.0, -3_600.0, -5.0, 5.0, 3_600.0, 86_400.0)
_END_S = 30.0
_NO_ANSWER = TimeoutError()
#: Of a consumer that blocks: those that handle records.
_THREADS = 16

Answers = dict[ShareRecord, KohortError | None]


class ConsumerProcess:
    """Such a process, and what it has told the ledger."""

    def __init__(self, bootstrap: str, group: str, topic: str, ledger: ShareLedger, seed: int) -> None:
        self.name = f"consumer-{uuid.uuid4().hex[:8]}"
        self._ledger = ledger
        self._task_of_it = {"bootstrap": bootstrap, "group": group, "topic": topic, "seed": seed}
        self._process: asyncio.subprocess.Process | None = None
        self._kills = False
        #: What it has told of itself last.
        self._described = ""
        self._task = asyncio.create_task(self._run())

    def __str__(self) -> str:
        return f"{self.name} {self._described}"

    @property
    def decide(self) -> Decide:
        return decide_drawn

    @decide.setter
    def decide(self, _: Decide) -> None:
        self.tell(ACCEPT_ALL)

    def tell(self, command: str) -> None:
        """Have it do something."""
        if self._process is not None and self._process.stdin is not None and self._process.returncode is None:
            self._process.stdin.write(f"{command}\n".encode())

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def stand_still(self, for_s: float) -> None:
        """It does nothing for a while, and does not know of that."""
        self.send(signal.SIGSTOP)
        await asyncio.sleep(for_s)
        self.send(signal.SIGCONT)

    async def end(self) -> None:
        """As kill -9; what it has told is read."""
        self._kills = True
        self.send(signal.SIGKILL)
        await self._task
        self._ledger.on_dead(self.name)

    async def close(self) -> None:
        """Let it close in good order."""
        self._kills = True
        self.send(signal.SIGTERM)
        await self._task
        self._ledger.on_dead(self.name)

    def check(self) -> None:
        """Raise what has ended it."""
        if self._task.done() and not self._kills:
            self._task.result()
            raise AssertionError(f"{self} has ended")

    async def _run(self) -> None:
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.torture.share_consumer",
            json.dumps(self._task_of_it),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                if line.endswith(b"\n"):  # else it was killed meanwhile, before it had done what it says
                    self._hear(json.loads(line))
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()

    def _hear(self, told: dict[str, Any]) -> None:
        if told["what"] == "is":
            self._described = told["text"]
            return
        place, count, asked_at = Place(told["partition"], told["offset"]), told["count"], told["asked_at"]
        match told["what"]:
            case "given":
                self._ledger.give(self.name, place, count, asked_at)
                self._ledger.begin(self.name, place, count, asked_at)
                return
            case "said":
                # it may be carried out, also if the answer never comes
                self._ledger.say(place, told["verdict"], count, is_stored=False)
            case "stored":
                self._ledger.say(place, told["verdict"], count, is_stored=True)
        self._ledger.finish(self.name, place, asked_at, told["end"])


# the process


class _NotedConnection:
    """A connection that notes the answers to ShareFetch, with when each was asked for."""

    def __init__(self, connection: Connection, note: Callable[[float, ShareFetchResponse], None]) -> None:
        self._connection, self._note = connection, note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def ask(self, body: Any, **options: Any) -> asyncio.Future[Any]:
        sent_at = time.monotonic()
        answer = self._connection.ask(body, **options)
        if isinstance(body, ShareFetchRequest):
            answer.add_done_callback(partial(self._on_answer, sent_at))
        return answer

    def _on_answer(self, sent_at: float, answer: asyncio.Future[Any]) -> None:
        if not answer.cancelled() and answer.exception() is None:
            self._note(sent_at, answer.result())


class _Member:
    """Handles records, several at a time, which it reads in one of the ways there are."""

    def __init__(self, bootstrap: str, group: str, topic: str, seed: int) -> None:
        self._rng = random.Random(seed)
        self.decide: Decide = decide_drawn
        self._jumped_s = 0.0
        # by partition and offset: when the fetch that has brought the record was sent
        self._asked_at: dict[tuple[int, int], float] = {}
        self._given: dict[ShareRecord, float] = {}
        #: Told in several threads by a consumer that blocks.
        self._telling = threading.RLock()
        settings: dict[str, Any] = {
            "bootstrap": bootstrap,
            "group": group,
            "renew_locks": self._rng.random() < 0.8,
            "max_processing_ms": 5_000,
            "fetch_max_wait_ms": self._rng.choice((10, 50, 500)),
            "request_timeout_ms": 5_000,
            "retry_backoff_ms": 20,
            "retry_backoff_max_ms": 200,
            "metadata_max_age_ms": 1_000,
            # brokers are back sooner or later
            "default_api_timeout_ms": 600_000,
        }
        if (most := self._rng.choice((1, 20, 200, None, None))) is not None:
            settings["max_locked_records"] = most
        self._make_consumer(topic, settings)
        self.consumer.logged = False
        self.consumer.events.listen(self._on_event)
        # it asks for more than 500 records although few come at a time
        peers._AHEAD_MS = self._rng.choice((50, 20_000))
        self._connect_to, self.consumer.cluster.connect_to = self.consumer.cluster.connect_to, self._connect  # type: ignore[method-assign]
        real = time.time
        time.time = lambda: real() + self._jumped_s

    def _make_consumer(self, topic: str, settings: dict[str, Any]) -> None:
        self.consumer = ShareConsumer(topic, **settings)

    async def _connect(self, node_id: int, channel: Channel) -> Any:
        """As the client's, with a note of when records were asked for."""
        return _NotedConnection(await self._connect_to(node_id, channel), self._note_fetch)

    def _note_fetch(self, sent_at: float, answer: ShareFetchResponse) -> None:
        for row in (row for topic in answer.responses for row in topic.partitions):
            for part in row.acquired_records:
                offsets = range(part.first_offset, part.last_offset + 1)
                self._asked_at |= {(row.partition_index, offset): sent_at for offset in offsets}

    def _take(self, record: ShareRecord) -> None:
        """Tell that the application has a record."""
        with self._telling:
            self._given[record] = self._asked_at[record.partition, record.offset]
            self._tell("given", record)
        if record.lost:  # in the loop's thread, before that was told
            self._tell("over", record, end="lost")

    def _tell(self, what: str, record: ShareRecord, **more: Any) -> None:
        """Tell of a record that was given to the application."""
        with self._telling:
            if record in self._given:
                place = {"partition": record.partition, "offset": record.offset}
                count, asked_at = record.delivery_count, self._given[record]
                told = {"what": what, **place, "count": count, "asked_at": asked_at, **more}
                print(json.dumps(told), flush=True)

    def _on_event(self, event: object) -> None:
        if isinstance(event, LockLost):
            self._tell("over", event.record, end="lost")

    def obey(self, command: str) -> None:
        if command == ACCEPT_ALL:
            self.decide = accept_all
        elif command == BREAK:
            self.consumer.cluster.break_connections()
        elif command == JUMP:
            self._jumped_s += self._rng.choice(_JUMPS_S)
        elif command == DESCRIBE:
            print(json.dumps({"what": "is", "text": self._describe()}), flush=True)

    def _describe(self) -> str:
        """What it has, and what it asks of brokers."""
        ours = self.consumer._exchange
        assigned = sorted(place.partition for place in ours.assignment())
        held = {place.partition: sorted(part) for place, part in ours.locks.held.items() if part}
        sessions = {
            node: (
                f"epoch {peer.session.epoch} of {sorted(place.partition for place in peer.session.known)}, "
                f"{f'asked for {peer.asked_for}' if peer.is_asked else 'not asked'}, {peer.failures} failures"
            )
            for node, peer in ours._peers.by_node.items()
            if peer.task is not None and not peer.task.done()
        }
        return (
            f"assigned {assigned}, may have {self.consumer.config.max_locked_records}, held {held}, "
            f"{ours.locks}, {sessions}, {list(ours._peers._waiting)} wait for room"
        )

    async def run(self) -> None:
        read = self._rng.choice(
            (self._read_each, self._read_together, self._read_batches, self._read_in_turns)
        )
        async with self.consumer, asyncio.TaskGroup() as tasks:
            await read(tasks)

    async def _read_each(self, tasks: asyncio.TaskGroup) -> None:
        async for record in self.consumer:
            self._begin(tasks, record)

    async def _read_together(self, tasks: asyncio.TaskGroup) -> None:
        """Several tasks share the consumer."""
        await asyncio.gather(*(self._read_each(tasks) for _ in range(3)))

    async def _read_batches(self, tasks: asyncio.TaskGroup) -> None:
        async for batch in self.consumer.batches(self._rng.choice((None, 1, 30))):
            for record in batch:
                self._begin(tasks, record)

    async def _read_in_turns(self, tasks: asyncio.TaskGroup) -> None:
        """Now and then it is cancelled while it waits, leaves a loop, or reads nothing for a while."""
        with suppress(ConsumerClosedError):
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._rng.choice((0.0, 0.001, 0.05))):
                        for record in await self.consumer.getmany(self._rng.choice((None, 1, 30)), None):
                            self._begin(tasks, record)
                left = self._rng.choice((1, 20, 100))
                async for record in self.consumer:
                    self._begin(tasks, record)
                    if not (left := left - 1):
                        break
                await asyncio.sleep(self._rng.choice((0.0, 0.0, 0.2)))

    def _begin(self, tasks: asyncio.TaskGroup, record: ShareRecord) -> None:
        self._take(record)
        self._check_room()
        tasks.create_task(self._handle(record))

    def _check_room(self) -> None:
        now = self.consumer.state
        assert now.locked + now.buffered <= self.consumer.config.max_locked_records, now
        assert min(now.locked, now.buffered, now.unanswered) >= 0, now

    async def _handle(self, record: ShareRecord) -> None:
        verdict, slow = self._draw(record)
        await asyncio.sleep(slow)
        if verdict is None or record.lost:
            return  # its lock ends
        until, clock = record.deadline or 0.0, asyncio.get_running_loop().time
        self._tell("said", record, verdict=verdict, end="not answered")
        self.consumer.acknowledge(record, AcknowledgeType(verdict))
        if not self._waits():
            return
        with suppress(ConsumerClosedError, TimeoutError):
            impatient = self._rng.random() < 0.05 and self.decide is not accept_all
            async with asyncio.timeout(0.01 if impatient else None):
                answers = await self.consumer.flush(_FLUSH_MS)
            self._on_answers(record, verdict, answers, in_time=clock() < until)

    def _draw(self, record: ShareRecord) -> tuple[int | None, float]:
        """What to say of a record, and after how many seconds."""
        verdict = self.decide(self._rng, record.delivery_count)
        slow = self._rng.random() < _SLOW and self.decide is not accept_all
        return verdict, self._rng.choice(_SLOW_S) if slow else 0.002

    def _waits(self) -> bool:
        """Whether somebody waits for the answer to what was said of a record."""
        return self.decide is accept_all or self._rng.random() < 0.7

    def _on_answers(self, record: ShareRecord, verdict: int, answers: Answers, *, in_time: bool) -> None:
        if answers.get(record, _NO_ANSWER) is None:
            # brokers give no error for what others have done since a lock ended
            self._tell("stored", record, verdict=verdict, end=verdict if in_time else "answered late")

    async def close(self) -> None:
        await self.consumer.close(drain_timeout_ms=1_000, timeout_ms=_END_S * 1_000)


class _BlockingMember(_Member):
    """Has the consumer that blocks: a thread reads, and several handle what it reads."""

    def _make_consumer(self, topic: str, settings: dict[str, Any]) -> None:
        self._blocking = BlockingShareConsumer(topic, **settings)
        self.consumer = self._blocking._consumer

    async def run(self) -> None:
        await asyncio.to_thread(self._blocking.start)
        read = self._rng.choice((self._read_blocking, self._read_some))
        with ThreadPoolExecutor(_THREADS) as self._pool:
            await asyncio.to_thread(read)

    def _read_blocking(self) -> None:
        for record in self._blocking:
            self._submit(record)

    def _read_some(self) -> None:
        with suppress(ConsumerClosedError):
            while True:
                for record in self._blocking.getmany(
                    self._rng.choice((None, 1, 30)), self._rng.choice((0, 50))
                ):
                    self._submit(record)

    def _submit(self, record: ShareRecord) -> None:
        self._take(record)
        self._pool.submit(self._work, record).add_done_callback(self._on_worked)

    def _work(self, record: ShareRecord) -> None:
        verdict, slow = self._draw(record)
        time.sleep(slow)
        if verdict is None or record.lost:
            return  # its lock ends
        until = record.deadline or 0.0
        self._tell("said", record, verdict=verdict, end="not answered")
        self._blocking.acknowledge(record, AcknowledgeType(verdict))
        if self._waits():
            with suppress(ConsumerClosedError):
                answers = self._blocking.flush(_FLUSH_MS)
                self._on_answers(record, verdict, answers, in_time=time.monotonic() < until)

    def _on_worked(self, work: Future[None]) -> None:
        if (error := work.exception()) is not None:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)

    def obey(self, command: str) -> None:
        thread = self._blocking._thread
        assert thread is not None
        with suppress(RuntimeError):  # it has ended
            thread.loop.call_soon_threadsafe(super().obey, command)

    async def close(self) -> None:
        await asyncio.to_thread(self._blocking.close, drain_timeout_ms=1_000, timeout_ms=_END_S * 1_000)


async def _serve(task: dict[str, Any]) -> None:
    make = random.Random(task["seed"] + 1).choice((_Member, _Member, _BlockingMember))
    member, loop = make(**task), asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def obey() -> None:
        while line := await reader.readline():
            member.obey(line.decode().strip())

    closing: list[asyncio.Task[None]] = []

    def close() -> None:
        closing.append(loop.create_task(member.close()))

    loop.add_signal_handler(signal.SIGTERM, close)
    obeying = loop.create_task(obey())
    await member.run()
    await asyncio.gather(*closing)
    obeying.cancel()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.argv[1])))
