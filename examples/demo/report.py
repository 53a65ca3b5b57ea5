"""Stage: a table that compares the results of the services and of the Spark job with the data set."""

from __future__ import annotations

import asyncio
from pathlib import Path

from data import Figures, Table, figures_of, load_flights
from screen import Screen
from store import Store

NOTHING = Figures(0, 0, 0)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
COLUMNS = (
    "origin",
    "month",
    "equal",
    "flights",
    "SQLite",
    "Parquet",
    "delay",
    "SQLite",
    "Parquet",
)


async def run_report(screen: Screen, database: Path, parquet: Path, flights: int) -> bool:
    """Show the table; return whether the figures are equal."""
    screen.headline("4 of 4  Flights and mean departure delay in minutes: data set, services, Spark job")
    expected = await asyncio.to_thread(lambda: figures_of(load_flights(flights)))
    store = Store(database)
    try:
        return closing_table(screen, expected, store.figures(), parquet_figures(parquet))
    finally:
        store.close()


def parquet_figures(folder: Path) -> Table:
    """Return flights and delays per origin and month from the Spark job's files."""
    from pyarrow import dataset

    flights = dataset.dataset(folder, format="parquet").to_table(columns=["origin", "month", "dep_delay"])
    return figures_of(flights)


def closing_table(screen: Screen, expected: Table, sqlite: Table, parquet: Table) -> bool:
    """Show the three side by side; return whether they are equal, to the minute of delay."""
    keys = sorted({*expected, *sqlite, *parquet})
    rows = [_row(key, *(table.get(key, NOTHING) for table in (expected, sqlite, parquet))) for key in keys]
    rows.append(_row(("all", 0), *(_sum(table) for table in (expected, sqlite, parquet))))
    screen.table(COLUMNS, rows, text_columns=3)
    equal = expected == sqlite == parquet
    screen.result(f"equal: {'yes' if equal else 'no'}")
    if not equal:
        for name, table in (("SQLite", sqlite), ("Parquet", parquet)):
            for key in keys:
                ours, theirs = table.get(key, NOTHING), expected.get(key, NOTHING)
                if ours != theirs:
                    screen.line(f"{name} has {ours} for {key[0]}, month {key[1]}; the data set has {theirs}")
    return equal


def _row(key: tuple[str, int], expected: Figures, sqlite: Figures, parquet: Figures) -> list[str]:
    origin, month = key
    three = (expected, sqlite, parquet)
    return [
        origin,
        _MONTHS[month - 1] if month else "",
        "yes" if expected == sqlite == parquet else "NO",
        *(f"{each.flights:,}" for each in three),
        *(f"{each.mean_delay:.2f}" for each in three),
    ]


def _sum(table: Table) -> Figures:
    rows = table.values()
    return Figures(
        sum(row.flights for row in rows),
        sum(row.departed for row in rows),
        sum(row.delay_minutes for row in rows),
    )
