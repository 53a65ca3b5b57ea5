"""One member joins a group and another leaves: by ZooKeeper as in Kafka 0.8, and by a coordinator.

``python -m benchmarks.registry [--members 10 30 100] [--partitions 400] [--update-docs]``

All members are consumers of this one process, on one event loop, beside a broker and a ZooKeeper of its own.
A group has settled when every member has its share and every partition an owner. *watches* are those of
ZooKeeper that fired in all members together. ``--update-docs`` writes the table into docs/registry.md.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

from kohort.consumer import AsyncGroupConsumer
from kohort.statemachine import MemberState
from kohort.testing import running_broker

from ._table import update_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "registry.md"
ZOOKEEPER = Path(__file__).resolve().parents[1] / "scripts" / "zookeeper.py"
PORT = 24_810


async def settled(members: list[AsyncGroupConsumer], partitions: int) -> None:
    """Until each has its share: the shares differ by one partition at most, and are all there are."""
    while True:
        if all(member.state.state is MemberState.STABLE for member in members):
            sizes = [len(member.assignment()) for member in members]
            if sum(sizes) == partitions and max(sizes) - min(sizes) <= 1:
                return
        await asyncio.sleep(0.005)


async def measure(bootstrap: str, topic: str, partitions: int, count: int, coordination: str) -> str:
    """A row of the table."""
    registry = coordination != "kafka"
    more = {"coordination": coordination} if registry else {}
    async with AsyncExitStack() as stack:

        async def join() -> AsyncGroupConsumer:
            member = AsyncGroupConsumer(
                topic, bootstrap=bootstrap, group=f"{topic}-{count}-{registry}", **more
            )
            member.logged = False
            return await stack.enter_async_context(member)

        # at once: one after the other, each of them would have all that are there divide anew
        members = list(await asyncio.gather(*(join() for _ in range(count - 1))))
        await settled(members, partitions)

        def fired() -> int:
            return sum(m.parts.registry.watches_fired for m in members if m.parts.registry is not None)

        watches, began, cpu = fired(), time.perf_counter(), time.process_time()
        members.append(await join())
        await settled(members, partitions)
        joined_s = time.perf_counter() - began
        told = fired() - watches
        leaver = min(members, key=lambda member: member.parts.membership.member_id)
        members.remove(leaver)
        began = time.perf_counter()
        before = fired()
        await leaver.close()
        await settled(members, partitions)
        left_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
        told += fired() - before
    way = "registry" if registry else "coordinator"
    members_of_both, watched = (str(count), str(told)) if registry else ("", "")
    return f"| {members_of_both} | {way} | {joined_s:.2f} s | {left_s:.2f} s | {cpu_s:.2f} s | {watched} |"


async def compare(bootstrap: str, topic: str, options: argparse.Namespace) -> str:
    rows = [
        "| members | way | joins until settled | leaves until settled | CPU of members | watches |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    print(*rows, sep="\n", flush=True)
    for count in options.members:
        for coordination in (f"zookeeper://127.0.0.1:{PORT}", "kafka"):
            async with asyncio.timeout(options.timeout):
                rows.append(await measure(bootstrap, topic, options.partitions, count, coordination))
            print(rows[-1], flush=True)
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--members", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--partitions", type=int, default=400)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one row")
    parser.add_argument("--update-docs", action="store_true", help=f"write the table into docs/{PAGE.name}")
    options = parser.parse_args()
    logging.getLogger("kohort").setLevel(logging.CRITICAL)
    script = [sys.executable, str(ZOOKEEPER)]
    subprocess.run([*script, "start", str(PORT)], check=True, stdout=subprocess.DEVNULL)
    try:
        with running_broker() as broker:
            broker.create_topic("orders", options.partitions)
            table = asyncio.run(compare(broker.bootstrap, "orders", options))
    finally:
        subprocess.run([*script, "stop", str(PORT)], check=True)
    if options.update_docs:
        update_page(table, "registry", PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
