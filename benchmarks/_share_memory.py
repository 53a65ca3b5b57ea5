"""Memory of records in flight: of the core in a process of its own, and of a broker that serves."""

from __future__ import annotations

import gc
import json
import random
import subprocess
import sys
import tracemalloc
from typing import Final

from kohort.share_partitions import AcknowledgedRange, BatchOffsets, ShareLimits, SharePartition

from ._brokers import Running, kohort
from ._processes import tree_seconds
from ._rows import Figures
from ._share_members import Filler, Held, ShareMember, join_all, new_topic

MODULE: Final = "benchmarks._share_memory"
#: Records of one fetch, and ranges of one ShareAcknowledge: few enough for what the broker holds meanwhile
#: not to matter, and for what it takes in one message.
FETCHED: Final = 10_000
RANGES: Final = 10_000
#: Of the steps in which records are acknowledged, this many are measured.
LOOKS: Final = 10
LIMITS: Final = ShareLimits(record_locks=1 << 30)
MEMBER: Final = "m"
#: No lock may end before all is measured.
LONG_LOCKS: Final = {f"group.share.{kind}record.lock.duration.ms": "3600000" for kind in ("", "max.")}


def measure(partitions: int, in_flight: int) -> Figures:
    """Bytes for each record in flight, of processes that do nothing else."""
    command = [sys.executable, "-m", MODULE, str(partitions), str(in_flight)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    with kohort(LONG_LOCKS) as running:
        figures = _measure_broker(running, partitions, in_flight)
    return {**figures, **json.loads(found.stdout)}


def _measure_broker(running: Running, partitions: int, each: int) -> Figures:
    """What the resident memory of a broker grows by, its share coordinator included."""
    topic = new_topic(running.bootstrap, partitions)
    filler = Filler(running.bootstrap, topic, each, size=1)
    filler.fill(partitions, partitions * each)
    filler.close()
    (member,) = join_all(running.bootstrap, topic, partitions, 1)
    # the share partitions are loaded before
    member.send_fetch(most=1, strict=True)
    held = member.receive()
    assert running.pid is not None
    before_mib, before_s = running.resident_mib(), tree_seconds(running.pid)
    records = partitions * each
    while sum(one.size for one in held) < records:
        member.send_fetch(most=FETCHED)
        held += member.receive()
    acquired_mib, acquired_s = running.resident_mib() - before_mib, tree_seconds(running.pid)
    _acknowledge_every_other(member, held)
    split_mib, split_s = running.resident_mib() - before_mib, tree_seconds(running.pid)
    # its broker ends now
    member.connection.socket.close()
    return {
        "acquired": acquired_mib * (1 << 20) / records,
        "split": split_mib * (1 << 20) / (records / 2),
        "acquired_us": (acquired_s - before_s) * 1e6 / records,
        "split_us": (split_s - acquired_s) * 1e6 / (records / 2),
    }


def _acknowledge_every_other(member: ShareMember, held: list[Held]) -> None:
    """The first record of each partition stays, so that nothing of it is done for good."""
    said: list[Held] = []
    for one in held:
        said += [one._replace(first=at, last=at) for at in range(one.first, one.last + 1) if at % 2]
        if len(said) >= RANGES:
            member.acknowledge(said)
            said = []
    member.acknowledge(said)


def measure_core(partitions: int, each: int) -> Figures:
    """What the interpreter has allocated for share partitions, without those that lead and store them."""
    gc.collect()
    tracemalloc.start()
    records = partitions * each
    shares = [SharePartition(0) for _ in range(partitions)]
    for share in shares:
        share.acquire(MEMBER, [BatchOffsets(0, each - 1)], LIMITS, 0, most=each)
    acquired, _ = tracemalloc.get_traced_memory()
    most = 0.0
    draws = [random.Random(number) for number in range(partitions)]
    orders = [draw.sample(range(each), each) for draw in draws]
    other, _ = tracemalloc.get_traced_memory()
    step = max(each // LOOKS, 1)
    for begin in range(0, each, step):
        for share, order in zip(shares, orders, strict=True):
            for offset in order[begin : begin + step]:
                write = share.acknowledge(MEMBER, [AcknowledgedRange(offset, offset, [1])], LIMITS, 0)
                assert write is not None
                share.complete(write)
        held, _ = tracemalloc.get_traced_memory()
        most = max(most, held - other + acquired)
    assert all(share.start_offset == each for share in shares)
    return {"core": acquired / records, "core_random": most / records}


if __name__ == "__main__":
    print(json.dumps(measure_core(int(sys.argv[1]), int(sys.argv[2]))))
