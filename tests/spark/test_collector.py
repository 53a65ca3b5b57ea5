"""The garbage collector runs seldom while partitions are planned, and as before afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kohort.spark._collector import collect_less


@pytest.fixture(autouse=True)
def threshold() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def test_several_at_a_time_leave_the_threshold_as_it_was(threshold: tuple[int, int, int]) -> None:
    first, second = collect_less(), collect_less()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold()[0] > 100_000
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] > 100_000, "the second still plans"
    second.__exit__(None, None, None)
    assert gc.get_threshold() == threshold


@pytest.mark.parametrize("own", [0, 1_000_000])
def test_a_collector_that_is_off_or_runs_less_stays_so(own: int) -> None:
    gc.set_threshold(own, 10, 10)
    with collect_less():
        assert gc.get_threshold()[0] == own


def test_an_error_ends_it(threshold: tuple[int, int, int]) -> None:
    with pytest.raises(ZeroDivisionError), collect_less():
        raise ZeroDivisionError
    assert gc.get_threshold() == threshold
