"""Defaults of consumers and services with every feature: no record that is due is skipped (docs/testing.md).

On kohort, and with ``--bootstrap`` on any Kafka. ``--soak`` runs the whole product. Covers:
consumer/first_seen.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.consumer.defaults.cells import (
    ELSEWHERE,
    OTHER,
    each_option_once,
    each_option_with_each_reader,
    fits,
    options,
    pairs_of_features,
    product_of_features,
    with_options,
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
#: Seconds of one run.
SECONDS = 0.8


@pytest.fixture(scope="module")
def tool(bootstrap: str) -> Iterator[Tool]:
    with tool_of(bootstrap) as tool:
        yield tool


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
def test_some_features_skip_nothing_that_is_due(cell: Cell, tool: Tool, tmp_path: Path) -> None:
    play(cell, tool, tmp_path)


@pytest.mark.slow(SECONDS)
@pytest.mark.parametrize("cell", pairs_of_features(), ids=str)
def test_no_two_features_skip_what_is_due_with_defaults(cell: Cell, tool: Tool, tmp_path: Path) -> None:
    play(cell, tool, tmp_path)


@pytest.mark.slow(SECONDS)
@pytest.mark.parametrize("cell", each_option_once(), ids=str)
def test_no_options_skip_what_is_due(cell: Cell, tool: Tool, tmp_path: Path) -> None:
    play(cell, tool, tmp_path)


@pytest.mark.slow(3)
@pytest.mark.parametrize("reader", ["one handler", "exactly once, database", "auto_done loops"])
def test_what_a_killed_process_held_before_its_first_commit_is_handled(
    reader: str, tool: Tool, tmp_path: Path
) -> None:
    play(Cell(reader, members="is killed"), tool, tmp_path)


#: Losses of earlier versions, and the cell that has each of them.
BUGS = (
    (
        Bug(
            "letters in a retry topic that has no commit yet are read by the user's policy",
            "consumer.positions:Positions._policy_of",
            "self.policies.get(position.partition.topic, self._policy)",
            "self._policy",
        ),
        Cell("retry topics", members="leaves"),
    ),
    (
        Bug(
            "where the group begins is not committed before records are read",
            "consumer.committer:Committer.keep",
            "if not self.keeps_starts:",
            "if True:",
        ),
        Cell("one handler", members="vanishes"),
    ),
    (
        Bug(
            "a partition that is added begins at its end",
            "consumer.first_seen:FirstSeen.is_newer",
            "if seen is None:",
            "if True:",
        ),
        Cell("one handler", topics="grown"),
    ),
)


@pytest.mark.slow(15)
@pytest.mark.parametrize(("bug", "cell"), BUGS, ids=lambda each: getattr(each, "what", None))
def test_a_loss_of_an_earlier_version_is_found(bug: Bug, cell: Cell, tool: Tool, tmp_path: Path) -> None:
    with bug.planted(), pytest.raises(AssertionError, match=f"handled by: {cell.reader}"):
        play(cell, tool, tmp_path, patience_s=5)


@st.composite
def combinations(draw: st.DrawFn) -> Cell:
    """A combination of features with several options at other values."""
    cell = draw(st.sampled_from(product_of_features()))
    names = draw(st.sets(st.sampled_from([name for name in OTHER if fits(name, cell)]), max_size=5))
    return with_options(cell, *sorted(names))


@pytest.mark.slow(10)
@settings(max_examples=8, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cell=combinations())
def test_no_drawn_combination_skips_what_is_due(
    cell: Cell, tool: Tool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    play(cell, tool, tmp_path_factory.mktemp("cell"))


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
