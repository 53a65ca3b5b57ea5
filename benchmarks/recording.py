"""What the recording of groups costs: ``python -m benchmarks.recording [DAYS [GROUPS [REBALANCES]]]``.

First time is simulated: so many days (7) of so many groups (100) with so many rebalances a day each (10, of
eight members with 64 partitions) and a sample of lag each minute. Processor time and the size of the file are
shown for a thousand groups, in proportion. Then a broker in a process of its own is asked, with a recording
and without by turns, for the time that its event loop works: on heartbeats, which make no event, and on
rebalances, which make some.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kohort.broker.reporting.group_recording import row_of_event
from kohort.coordinator import GroupEvent, MemberGone, MemberJoined, RebalanceCompleted
from kohort.protocol import ApiKey
from kohort.recording import EventRow, LagSample, RecordingBounds
from kohort.recording.file import open_writable
from kohort.recording.store import Store
from kohort.recording.thinning import thin_by_age, thin_by_size, used_bytes
from tests.broker.rebalances import rebalances_of_one
from tests.broker.wire import Wire
from tests.broker_process import QUICK_SETTINGS, BrokerProcess

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
MEMBERS, PARTITIONS, SHOWN_GROUPS = 8, 64, 1_000
ROUNDS, REBALANCES, HEARTBEATS = 5, 300, 3_000
START_MS = 1_700_000_000_000


def rebalance(group: str, generation: int, at_ms: int) -> Iterator[GroupEvent]:
    """A member goes, another one comes, and what the first had moves."""
    made_up = "3f2b8c1e-9d4a-4e07-8c55-0a6be9d1f2"
    names = [f"{group}-consumer-{number}-{made_up}{number:02}" for number in range(MEMBERS)]
    gone, come = names[0], f"{group}-consumer-{generation}-8a0d5b77-1c2e-4f6a-b3d9-5e7c0f1a2b3c"
    numbers = [range(first, PARTITIONS, MEMBERS) for first in range(MEMBERS)]
    before = {name: {"orders": [*owned]} for name, owned in zip(names, numbers, strict=True)}
    after = {come if name == gone else name: owned for name, owned in before.items()}
    cause = f"session of member {gone} expired after 45.0 s"
    whole = RebalanceCompleted(
        group,
        generation=generation,
        cause=f"{cause}; member {come} joined",
        members=MEMBERS,
        members_before=MEMBERS,
        leader=names[1],
        protocol="cooperative-sticky",
        protocol_type="consumer",
        duration_ms=3_045,
        join_ms=3_001,
        sync_ms=44,
        before=before,
        after=after,
        member=gone,
        client_id="orders-service",
        client_host="/10.20.30.40",
    )
    left = MemberGone(group, generation=generation - 1, cause=cause, member=gone, client_id="orders-service")
    joined = MemberJoined(group, generation=generation - 1, cause=f"member {come} joined", member=come)
    for event in (left, joined, whole):
        event.timestamp_ms = at_ms
        yield event


def simulate(folder: Path, days: float, groups: int, rebalances: int) -> tuple[float, int, float]:
    """Record so many days; return seconds of processor time, bytes of the file, and the share of causes that
    it still has.
    """
    bounds = RecordingBounds(100 * (1 << 20) * groups // SHOWN_GROUPS)
    store = Store(open_writable(folder), START_MS)
    store.watch("", START_MS)
    names = [f"service-{number}" for number in range(groups)]
    every = max(1, DAY_MS // MINUTE_MS // max(rebalances, 1))
    began, made = time.process_time(), 0
    for minute in range(round(days * DAY_MS / MINUTE_MS)):
        now_ms = START_MS + minute * MINUTE_MS
        rows: list[EventRow] = [
            row_of_event(event)
            for number, name in enumerate(names)
            if rebalances and minute % every == number % every
            for event in rebalance(name, minute // every + 1, now_ms)
        ]
        samples = [
            LagSample(name, now_ms, (minute * 7_919 + number) % 50_000, 12_345, MEMBERS)
            for number, name in enumerate(names)
        ]
        store.write(rows, samples, [], now_ms)
        made += sum(row.lasting for row in rows)
        if minute % 15 == 0:
            thin_by_age(store.connection, bounds, now_ms)
            thin_by_size(store.connection, bounds)
            store.forget_ids()
    took_s, size = time.process_time() - began, used_bytes(store.connection)
    (kept,) = store.connection.execute("SELECT count(*) FROM events WHERE lasting").fetchone()
    store.connection.close()
    return took_s, max(size, (folder / "recording.db").stat().st_size), kept / made if made else 1.0


def loop_us(process: BrokerProcess) -> float:
    """Microseconds for which the thread of the broker's event loop has run."""
    assert process.process is not None, "it was started"
    pid = process.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1_000


def ask_broker(process: BrokerProcess, group: str) -> tuple[float, float]:
    """Microseconds that the event loop works on a heartbeat, and on a rebalance."""
    body = {"generation_id": 1, "member_id": "", "group_instance_id": None}
    with Wire(process.bootstrap) as wire:
        began = loop_us(process)
        for _ in range(HEARTBEATS):
            wire.call(ApiKey.HEARTBEAT, 3, group_id="", **body)
        beaten = loop_us(process)
        rebalances_of_one(wire, group, REBALANCES)
        return (beaten - began) / HEARTBEATS, (loop_us(process) - beaten) / REBALANCES


def compare_brokers(folder: Path) -> dict[str, tuple[float, float]]:
    """Medians with a recording and without."""
    found: dict[str, list[tuple[float, float]]] = {"with": [], "without": []}
    processes = {}
    for name, size in (("with", 100 << 20), ("without", 0)):
        (folder / name).mkdir()
        settings = {**QUICK_SETTINGS, "kohort.recording.max.bytes": str(size)}
        processes[name] = BrokerProcess(folder / name, data=folder / name / "data", settings=settings)
    try:
        for process in processes.values():
            process.start()
        for turn in range(ROUNDS):
            for name, process in processes.items():
                found[name].append(ask_broker(process, f"g-{turn}"))
    finally:
        for process in processes.values():
            if process.alive:
                process.stop()
    return {
        name: (statistics.median(row[0] for row in rows), statistics.median(row[1] for row in rows))
        for name, rows in found.items()
    }


def main() -> int:
    """Measure and print."""
    given = [float(word) for word in sys.argv[1:]]
    days, groups, rebalances = (*given, *(7.0, 100.0, 10.0)[len(given) :])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "simulated").mkdir()
        took_s, size, kept = simulate(Path(folder) / "simulated", days, int(groups), int(rebalances))
        share = took_s * SHOWN_GROUPS / groups / (days * 86_400)
        print(f"{groups:.0f} groups, {days:g} days, {rebalances:.0f} rebalances a day each;", end=" ")
        print(f"for {SHOWN_GROUPS} groups:")
        mib = size * SHOWN_GROUPS / groups / (1 << 20)
        print(f"  {share:.3%} of a core, {mib:.1f} MiB, {kept:.0%} of the causes are kept")
        for name, (beat_us, rebalance_us) in compare_brokers(Path(folder)).items():
            print(f"  {name} a recording the loop works {beat_us:.1f} µs on a heartbeat,", end=" ")
            print(f"{rebalance_us:.0f} µs on a rebalance")
    return 0


if __name__ == "__main__":
    sys.exit(main())
