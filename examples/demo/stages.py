"""All stages of the demo on one broker."""

from __future__ import annotations

import time
from pathlib import Path

from children import Children
from data import PARTITIONS, TOPIC
from etl import run_etl
from lags import show_lags
from report import run_report
from screen import Screen
from services import Rebalances, run_services

from kohort.broker import Broker
from kohort.consumer import Cluster

#: How long a new group waits for members, and again after each that joins. Kafka's default is 3,000 ms.
SETTINGS = {"group.initial.rebalance.delay.ms": "1500"}


async def run_stages(flights: int, folder: Path, logs: Path) -> bool:
    """Run all stages; return whether the figures are equal. Raises the errors of the stages."""
    began = time.monotonic()
    screen = Screen()
    database = folder / "delays.sqlite"
    screen.headline(f"1 of 4  A broker, and {flights:,} flights replayed into topic {TOPIC}")
    async with (
        Broker(data=folder / "broker", settings=SETTINGS, on_event=Rebalances(screen)) as broker,
        Children(logs) as children,
    ):
        screen.line(f"kohort broker serves on {broker.bootstrap}")
        async with Cluster(broker.bootstrap) as cluster:
            await cluster.create_topics({TOPIC: PARTITIONS})
        await _replay(screen, children, broker.bootstrap, flights)
        screen.headline("2 of 4  Three services of group delays keep every flight's delay in SQLite")
        await run_services(screen, children, broker.bootstrap, database, flights)
        screen.headline("3 of 4  A Spark job of group etl writes the flights into Parquet")
        await run_etl(screen, children, broker.bootstrap, folder, flights)
        await show_lags(screen, broker.bootstrap)
    equal = await run_report(screen, database, folder / "parquet", flights)
    screen.line(f"done in {time.monotonic() - began:.0f} s")
    return equal


async def _replay(screen: Screen, children: Children, bootstrap: str, flights: int) -> None:
    child = await children.start("replay", "replay.py", bootstrap, flights)
    with screen.progress("flights replayed", flights) as update:
        async for event in child.events():
            update(event["sent"])
    await child.ended()
