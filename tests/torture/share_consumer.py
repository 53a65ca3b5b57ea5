"""The share consumer as it ships, in a process of its own that is killed, stands still, loses its connections
and has its wall clock put forward and back.

``python -m tests.torture.share_consumer JSON`` is that process. It tells what it is given and what it says in
lines of JSON, before it does anything else with a record, and takes commands as lines. SIGTERM closes it.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from kohort.client.errors import ConsumerClosedError
from kohort.consumer import ShareConsumer
from kohort.consumer.share.events import LockLost
from kohort.consumer.share.records import ShareRecord
from kohort.protocol import AcknowledgeType, ApiKey
from tests.torture.share_ledger import Place, ShareLedger
from tests.torture.share_members import Decide, accept_all, decide_drawn

#: What the process may be told: to accept whatever comes, that its network fails, that its wall clock jumps.
ACCEPT_ALL, BREAK, JUMP = "accept all", "break", "jump"
_FLUSH_MS = 20_000
#: How likely it is that a record takes longer than a lock lasts, and for how long, in seconds.
_SLOW, _SLOW_S = 0.02, (1.0, 4.0, 7.0)
_JUMPS_S = (-86_400.0, -3_600.0, -5.0, 5.0, 3_600.0, 86_400.0)
_END_S = 30.0
_NO_ANSWER = TimeoutError()


class ConsumerProcess:
    """Such a process, and what it has told the ledger."""

    def __init__(self, bootstrap: str, group: str, topic: str, ledger: ShareLedger, seed: int) -> None:
        self.name = f"consumer-{uuid.uuid4().hex[:8]}"
        self._ledger = ledger
        self._task_of_it = {"bootstrap": bootstrap, "group": group, "topic": topic, "seed": seed}
        self._process: asyncio.subprocess.Process | None = None
        self._kills = False
        self._task = asyncio.create_task(self._run())

    def __str__(self) -> str:
        return self.name

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


class _Member:
    """Handles records, several at a time."""

    def __init__(self, bootstrap: str, group: str, topic: str, seed: int) -> None:
        self._rng = random.Random(seed)
        self.decide: Decide = decide_drawn
        self._jumped_s = 0.0
        # by partition and offset: when the fetch that has brought the record was sent
        self._asked_at: dict[tuple[int, int], float] = {}
        self._given: dict[ShareRecord, float] = {}
        self.consumer = ShareConsumer(
            topic,
            bootstrap=bootstrap,
            group=group,
            max_locked_records=self._rng.choice((1, 20, 200)),
            max_processing_ms=5_000,
            request_timeout_ms=5_000,
            retry_backoff_ms=20,
            retry_backoff_max_ms=200,
            metadata_max_age_ms=1_000,
            # brokers are back sooner or later
            default_api_timeout_ms=600_000,
        )
        self.consumer.logged = False
        self.consumer.events.listen(self._on_event)
        self._waits = self._rng.random() < 0.7
        self._send, self.consumer.cluster.request = self.consumer.cluster.request, self._request  # type: ignore[method-assign]
        real = time.time
        time.time = lambda: real() + self._jumped_s

    async def _request(self, node_id: int | None, api_key: int, body: Any, **options: Any) -> Any:
        """As the client's, with a note of when records were asked for."""
        sent_at = time.monotonic()
        answer = await self._send(node_id, api_key, body, **options)
        if api_key == ApiKey.SHARE_FETCH:
            for row in (row for topic in answer.responses for row in topic.partitions):
                for part in row.acquired_records:
                    offsets = range(part.first_offset, part.last_offset + 1)
                    self._asked_at |= {(row.partition_index, offset): sent_at for offset in offsets}
        return answer

    def _tell(self, what: str, record: ShareRecord, **more: Any) -> None:
        """Tell of a record that was given to the application."""
        if record in self._given:
            place = {"partition": record.partition, "offset": record.offset, "count": record.delivery_count}
            told = {"what": what, **place, "asked_at": self._given[record], **more}
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

    async def run(self) -> None:
        async with self.consumer, asyncio.TaskGroup() as tasks:
            async for record in self.consumer:
                self._given[record] = self._asked_at.pop((record.partition, record.offset))
                self._tell("given", record)
                tasks.create_task(self._handle(record))

    async def _handle(self, record: ShareRecord) -> None:
        verdict = self.decide(self._rng, record.delivery_count)
        slow = self._rng.random() < _SLOW and self.decide is not accept_all
        await asyncio.sleep(self._rng.choice(_SLOW_S) if slow else 0.002)
        if verdict is None or record.lost:
            return  # its lock ends
        until, clock = record.deadline or 0.0, asyncio.get_running_loop().time
        self._tell("said", record, verdict=verdict, end="not answered")
        self.consumer.acknowledge(record, AcknowledgeType(verdict))
        if not self._waits and self.decide is not accept_all:
            return
        with suppress(ConsumerClosedError):
            answers = await self.consumer.flush(_FLUSH_MS)
            if answers.get(record, _NO_ANSWER) is None:
                # brokers give no error for what others have done since a lock ended
                in_time = verdict if clock() < until else "answered late"
                self._tell("stored", record, verdict=verdict, end=in_time)


async def _serve(task: dict[str, Any]) -> None:
    member, loop = _Member(**task), asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def obey() -> None:
        while line := await reader.readline():
            member.obey(line.decode().strip())

    closing: list[asyncio.Task[None]] = []

    def close() -> None:
        closing.append(
            loop.create_task(member.consumer.close(drain_timeout_ms=1_000, timeout_ms=_END_S * 1_000))
        )

    loop.add_signal_handler(signal.SIGTERM, close)
    obeying = loop.create_task(obey())
    await member.run()
    obeying.cancel()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.argv[1])))
