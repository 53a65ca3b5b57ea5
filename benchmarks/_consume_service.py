"""Measurements of services: records through handlers that do nothing, or that work by key."""

from __future__ import annotations

import asyncio
import time
import zlib
from typing import Any

from kohort.consumer import Record
from kohort.service import ConsumerService

from ._clients import kohort_settings, resident_mib
from ._consumer_rows import KEYS
from ._rows import Figures

Job = dict[str, Any]
CONCURRENCY = 32
#: Handlers of the work by key take up to so long, by the record's offset: the same in every run.
MOST_MS = 5
_TIMEOUT_S = 120


class _Tally:
    """Counts calls of a handler, from the first one on; ``done`` is set with the last."""

    def __init__(self, records: int) -> None:
        self.done = asyncio.Event()
        self._records = self._left = records
        self._began = self._began_work = 0.0
        self.took = self._worked = 0.0

    def add(self) -> None:
        self._left -= 1
        if not self._began:
            self._began, self._began_work = time.perf_counter(), time.process_time()
        elif not self._left:
            self.took = time.perf_counter() - self._began
            self._worked = time.process_time() - self._began_work
            self.done.set()

    def figures(self) -> Figures:
        counted = self._records - 1
        return {"per_second": counted / self.took, "cpu_us": self._worked * 1e6 / counted}


async def faststream_service(job: Job) -> Figures:
    from faststream.kafka import KafkaBroker

    tally, broker = _Tally(job["records"]), KafkaBroker(job["bootstrap"], logger=None)

    # one handler at a time, which is quicker than max_workers=32 where handlers do nothing
    @broker.subscriber(job["topic"], group_id=kohort_settings(job)["group"], auto_offset_reset="earliest")
    async def handle(_: bytes) -> None:
        tally.add()

    async with broker:
        await broker.start()
        await asyncio.wait_for(tally.done.wait(), _TIMEOUT_S)
    return tally.figures()


async def kohort_service(job: Job) -> Figures:
    tally = _Tally(job["records"])

    async def handle(_: Record) -> None:
        tally.add()

    await _serve(job, handle, tally, "key")
    return tally.figures()


async def kohort_work_by_key(job: Job) -> Figures:
    """Seconds of all of it one after the other, and the shares of that by 20, 100 and 1,000 keys."""
    took = {}
    for lanes, topic in [("partition", f"keys-{KEYS[0]}"), *(("key", f"keys-{keys}") for keys in KEYS)]:
        tally = _Tally(job["records"])

        async def handle(record: Record, tally: _Tally = tally) -> None:
            await asyncio.sleep(zlib.crc32(b"%d" % record.offset) / 2**32 * MOST_MS / 1000)
            tally.add()

        await _serve({**job, "topic": topic}, handle, tally, lanes)
        took[lanes, topic] = tally.took
    serial, *by_key = took.values()
    return {"serial_s": serial, **{f"of_{keys}": s / serial for keys, s in zip(KEYS, by_key, strict=True)}}


async def kohort_service_memory(job: Job) -> Figures:
    """What the process grew by at most, with all that it takes before its handlers have done anything."""
    service = ConsumerService(**kohort_settings(job), drain_timeout_ms=0)
    begun = asyncio.Event()

    async def handle(_: Record) -> None:
        begun.set()
        await asyncio.Event().wait()

    service.handler(job["topic"], lanes="none", concurrency=CONCURRENCY)(handle)
    before = most = resident_mib()
    running = asyncio.create_task(service.serve())
    await asyncio.wait_for(begun.wait(), _TIMEOUT_S)
    loop = asyncio.get_running_loop()
    until = loop.time() + job["rest_s"]
    while loop.time() < until:
        await asyncio.sleep(0.02)
        most = max(most, resident_mib())
    service.stop()
    await running
    return {"mib": most - before}


async def _serve(job: Job, handle: Any, tally: _Tally, lanes: Any) -> None:
    service = ConsumerService(**kohort_settings(job))
    service.handler(job["topic"], lanes=lanes, concurrency=CONCURRENCY)(handle)
    running = asyncio.create_task(service.serve())
    await asyncio.wait_for(tally.done.wait(), _TIMEOUT_S)
    service.stop()
    await running
