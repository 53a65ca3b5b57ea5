"""Defaults of consumers and services with every feature: no record that is due is skipped (docs/testing.md).

On kohort, and with ``--bootstrap`` on any Kafka. ``--soak`` runs the whole product. Covers:
consumer/reading/first_seen.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.consumer.defaults.cells import (
    ELSEWHERE,
    OTHER,
    combinations_with_options,
    each_option_once,
    each_option_with_each_reader,
    options,
    pairs_of_features,
    product_of_features,
)
from tests.consumer.defaults.scenes import Cell, Tool, play, tool_of
from tests.simulation.planted import Bug

pytestmark = pytest.mark.kafka

#: Those of ``make check``.
QUICK = (
    Cell("retry topics", topics="missing", members="vanishes"),
    Cell("several handlers", "consumer", members="vanishes"),
    Cell("auto_done loops", topics="remade", members="leaves"),
    Cell("exactly once, topics", topics="grown", members="is joined"),
)
#: Runs at a time: they wait for most of their time.
SIDE_BY_SIDE = 6
#: Seconds that a run adds.
SECONDS = 0.2


@pytest.fixture(scope="module")
def tool(bootstrap: str) -> Iterator[Tool]:
    with tool_of(bootstrap) as tool:
        yield tool


class Runs:
    """Runs of cells, several at a time, in the order in which their tests come."""

    def __init__(self, tool: Tool, cells: Iterable[Cell], make_folder: Callable[[str], Path]) -> None:
        self._pool = ThreadPoolExecutor(SIDE_BY_SIDE)
        self._runs = {
            cell: self._pool.submit(play, cell, tool, make_folder("cell")) for cell in dict.fromkeys(cells)
        }

    def result(self, cell: Cell) -> None:
        """Wait for the run of a cell. Raises what it came to."""
        self._runs[cell].result()

    def wait(self) -> None:
        """Wait until nothing runs."""
        wait(self._runs.values())

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tool: Tool, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """Runs of the cells whose tests are to come."""
    own = [each for each in request.session.items if isinstance(each, pytest.Function)]
    awaited = [each for each in own if each.path == request.path and "runs" in each.fixturenames]
    params = [each.callspec.params for each in awaited if hasattr(each, "callspec")]
    cells: list[Any] = [each["cell"] for each in params if "bug" not in each]
    runs = Runs(tool, cells, tmp_path_factory.mktemp)
    yield runs
    runs.close()


def test_every_option_has_a_cell() -> None:
    told = "give it a row in tests/consumer/defaults/cells.py: OTHER, or ELSEWHERE with a reason"
    assert options() == OTHER.keys() | ELSEWHERE.keys(), told
    assert not OTHER.keys() & ELSEWHERE.keys()


def test_the_pairs_are_those_of_the_whole_product() -> None:
    drawn = pairs_of_features()
    assert len(drawn) < len(product_of_features()) / 6
    for name in ("reader", "protocol", "topics", "members"):
        assert {getattr(cell, name) for cell in drawn} == {
            getattr(cell, name) for cell in product_of_features()
        }


@pytest.mark.check
@pytest.mark.parametrize("cell", QUICK, ids=str)
def test_some_features_skip_nothing_that_is_due(cell: Cell, runs: Runs) -> None:
    runs.result(cell)


@pytest.mark.slow(SECONDS)
@pytest.mark.parametrize("cell", pairs_of_features(), ids=str)
def test_no_two_features_skip_what_is_due_with_defaults(cell: Cell, runs: Runs) -> None:
    runs.result(cell)


@pytest.mark.slow(SECONDS)
@pytest.mark.parametrize("cell", each_option_once(), ids=str)
def test_no_options_skip_what_is_due(cell: Cell, runs: Runs) -> None:
    runs.result(cell)


@pytest.mark.slow(10)
def test_no_drawn_combination_skips_what_is_due(
    request: pytest.FixtureRequest, tool: Tool, runs: Runs, tmp_path_factory: pytest.TempPathFactory
) -> None:
    soaks = request.config.getoption("--soak") is not None

    # always the same few; a long run draws anew
    @settings(
        max_examples=200 if soaks else 8, derandomize=not soaks, suppress_health_check=list(HealthCheck)
    )
    @given(combinations_with_options())
    def skips_nothing(cell: Cell) -> None:
        play(cell, tool, tmp_path_factory.mktemp("cell"))

    runs.wait()
    skips_nothing()


KILLED = [
    Cell(reader, members="is killed")
    for reader in ("one handler", "exactly once, database", "auto_done loops")
]


@pytest.mark.slow(SECONDS)
@pytest.mark.parametrize("cell", KILLED, ids=lambda cell: cell.reader)
def test_what_a_killed_process_held_before_its_first_commit_is_handled(cell: Cell, runs: Runs) -> None:
    runs.result(cell)


#: Losses of earlier versions, and the cell that has each of them.
BUGS = (
    (
        Bug(
            "letters in a retry topic that has no commit yet are read by the user's policy",
            "consumer.reading.positions:Positions._policy_of",
            "self.policies.get(position.partition.topic, self._policy)",
            "self._policy",
        ),
        Cell("retry topics", members="leaves"),
    ),
    (
        Bug(
            "where the group begins is not committed before records are read",
            "consumer.done.committer:Committer.keep_starts",
            "if not self.keeps_starts:",
            "if True:",
        ),
        Cell("one handler", members="vanishes"),
    ),
    (
        Bug(
            "a partition that is added begins at its end",
            "consumer.reading.first_seen:FirstSeen.is_newer",
            "if seen is None:",
            "if True:",
        ),
        Cell("one handler", topics="grown"),
    ),
)


@pytest.mark.slow(15)
@pytest.mark.parametrize(("bug", "cell"), BUGS, ids=lambda each: getattr(each, "what", None))
def test_a_loss_of_an_earlier_version_is_found(
    bug: Bug, cell: Cell, tool: Tool, runs: Runs, tmp_path: Path
) -> None:
    runs.wait()  # what is planted would be in all of them
    with bug.planted(), pytest.raises(AssertionError, match=f"handled by: {cell.reader}"):
        play(cell, tool, tmp_path, patience_s=5)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The whole product is for ``--soak`` alone: nobody wants to see that many tests skipped."""
    if "cell_of_the_product" in metafunc.fixturenames:
        soaks = metafunc.config.getoption("--soak") is not None
        cells = [*product_of_features(), *each_option_with_each_reader()] if soaks else []
        metafunc.parametrize("cell_of_the_product", cells, ids=str)


def test_the_whole_product_skips_nothing_that_is_due(
    cell_of_the_product: Cell, tool: Tool, tmp_path: Path
) -> None:
    play(cell_of_the_product, tool, tmp_path)
