"""Measures one attack: what the others notice of it, and what memory it takes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.attack.victim import TOPIC, Victim, resident_mib
from tests.broker.wire import Wire, create_topic
from tests.broker_process import QUICK_SETTINGS, BrokerProcess

#: 10,000 of the attacker, and those of the victim.
SETTINGS = {**QUICK_SETTINGS, "max.connections": "10100"}

#: Let the machine be what it is for so long, in seconds, before and during an attack.
USUAL_S = 3.0
SAMPLE_S = 0.05

#: Bytes of requests under way in all, and the answers beside them, in MiB.
IN_FLIGHT_MIB = 256


def crowd_mib(members: int) -> float:
    """What a group of large members may take: the requests under way, whose buffers have an eighth in
    reserve, the metadata that a group may have, and 8 KiB for each connection.
    """
    return IN_FLIGHT_MIB * 9 / 8 + 64 + members * 8 / 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """An attack by its name, how large, and how many MiB it may take by the limits."""

    attack: str
    count: int
    bound_mib: float
    what: str
    seconds: float = 10.0


@dataclass(slots=True)
class Result:
    """``usual`` and ``under`` are the 99th percentile of the victim's requests, in ms."""

    what: str
    usual_p99_ms: float
    attack_p99_ms: float
    requests: int
    grown_mib: float
    bound_mib: float
    counts: Mapping[str, int]
    wrong: list[str]
    alive: bool


def full() -> list[Plan]:
    """The attacks in the numbers that the limits are for."""
    return [
        Plan("announced", 1_000, IN_FLIGHT_MIB, "1,000 connections announce 100 MiB each and send 10 bytes"),
        Plan("idle", 10_000, IN_FLIGHT_MIB, "10,000 idle connections"),
        Plan("members", 5_000, crowd_mib(5_000), "5,000 members of one group with 1 MiB of metadata each"),
        Plan("slow-readers", 200, IN_FLIGHT_MIB, "200 connections ask for 48 MiB each and read nothing"),
        Plan("revolving-door", 10_000, IN_FLIGHT_MIB, "a member joins and leaves 10,000 times", 60.0),
        Plan("group-ids", 1_000_000, 2_048, "one client commits for 1,000,000 groups", 600.0),
    ]


def small() -> list[Plan]:
    """The same, for every change."""
    return [
        Plan("announced", 200, 64, "200 connections announce 100 MiB each and send 10 bytes", 1.0),
        Plan("idle", 500, 64, "500 idle connections", 1.0),
        Plan("members", 200, crowd_mib(200), "200 members of one group with 1 MiB of metadata each", 5.0),
        Plan("slow-readers", 20, 64, "20 connections ask for 48 MiB each and read nothing", 1.0),
        Plan("revolving-door", 300, 32, "a member joins and leaves 300 times", 20.0),
        Plan("group-ids", 5_000, 5_000 * 2 / 1024 + 32, "one client commits for 5,000 groups", 20.0),
    ]


ROOT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def under_way(plan: Plan, port: int) -> AsyncIterator[asyncio.Task[bytes]]:
    """The attack in a process of its own; the task gives its counts once it has done all it does."""
    command = (sys.executable, "-m", "tests.attack.attacks", plan.attack, str(port), str(plan.count))
    pipe = asyncio.subprocess.PIPE
    path = os.pathsep.join([str(ROOT / ".src"), os.environ.get("PYTHONPATH", "")])
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, cwd=ROOT / ".src", env={**os.environ, "PYTHONPATH": path}
    )
    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "it is a pipe"
    assert await process.stdout.readline() == b"begun\n", f"the attack {plan.attack} did not begin"
    counts = asyncio.create_task(process.stdout.readline())
    try:
        yield counts
    finally:
        process.stdin.close()
        await process.wait()


async def measure(broker: BrokerProcess, plan: Plan, *, usual_s: float = USUAL_S) -> Result:
    """Run an attack for its time, or until it has done all it does and a while more."""
    assert broker.process is not None, "the broker runs"
    process_id, now = broker.process.pid, asyncio.get_running_loop().time
    with Wire(broker.bootstrap) as wire:
        create_topic(wire, TOPIC)
    async with Victim(broker.port) as victim:
        await asyncio.sleep(0.5)
        victim.begin()
        await asyncio.sleep(usual_s)
        usual = victim.p99_ms()
        before = peak = resident_mib(process_id)
        victim.begin()
        async with under_way(plan, broker.port) as counts:
            deadline = end = now() + plan.seconds
            while now() < end:
                await asyncio.sleep(SAMPLE_S)
                peak = max(peak, resident_mib(process_id))
                if counts.done() and end == deadline:
                    end = min(now() + usual_s, deadline - SAMPLE_S)
            under, requests = victim.p99_ms(), len(victim.times_ms)
        told = json.loads(await counts)
    return Result(
        plan.what,
        usual,
        under,
        requests,
        peak - before,
        plan.bound_mib,
        told,
        victim.wrong,
        broker.alive,
    )


def run(plan: Plan, *, usual_s: float = USUAL_S) -> Result:
    """On a broker of its own."""
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder), data=Path(folder) / "data", settings=SETTINGS)
        broker.start()
        try:
            return asyncio.run(measure(broker, plan, usual_s=usual_s))
        finally:
            broker.kill()
