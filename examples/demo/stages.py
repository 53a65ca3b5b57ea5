"""The demo from its first stage to its last."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from children import Children
from data import PARTITIONS, SERVICES_GROUP, SPARK_GROUP, TOPIC, expected_figures, load_flights
from etl import run_etl
from lags import lag
from report import closing_table, parquet_figures
from screen import Screen
from services import Rebalances, run_services
from store import Store

from kohort.broker import Broker
from kohort.consumer import Cluster

#: A new group waits so long for its first members, and again for each that comes. Kafka's default is 3,000.
SETTINGS = {"group.initial.rebalance.delay.ms": "1500"}


async def run_stages(flights: int, folder: Path, logs: Path) -> bool:
    """Run all of it; whether the figures are equal. Raises what fails."""
    began = time.monotonic()
    screen = Screen()
    database = folder / "delays.sqlite"
    screen.headline(f"1 of 4  A broker, and {flights:,} flights replayed into topic {TOPIC}")
    async with (
        Broker(data=folder / "broker", settings=SETTINGS, on_note=Rebalances(screen)) as broker,
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
        lags = [f"{group} {await lag(broker.bootstrap, group):,}" for group in (SERVICES_GROUP, SPARK_GROUP)]
        screen.line(f"records the groups have not committed: {', '.join(lags)}")
    screen.headline("4 of 4  Flights and mean departure delay in minutes: data set, services, Spark job")
    store = Store(database)
    expected = await asyncio.to_thread(lambda: expected_figures(load_flights(flights)))
    equal = closing_table(screen, expected, store.figures(), parquet_figures(folder / "parquet"))
    store.close()
    screen.line(f"done in {time.monotonic() - began:.0f} s")
    return equal


async def _replay(screen: Screen, children: Children, bootstrap: str, flights: int) -> None:
    child = await children.start("replay", "replay.py", bootstrap, flights)
    with screen.progress("flights replayed", flights) as update:
        async for event in child.events():
            update(event["sent"])
    await child.ended()
