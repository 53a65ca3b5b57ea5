"""The garbage collector runs seldom while partitions are planned, and as before afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from kohort.spark import GroupBatches
from kohort.spark._collector import collect_less
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic


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


@pytest.mark.kafka
def test_it_runs_a_few_times_at_most_while_a_batch_of_many_partitions_is_planned_and_committed(
    side: Side, new_topic: NewTopic, group: Named
) -> None:
    topic, runs = new_topic("many", partitions=600), list[int]()

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            runs.append(info["generation"])

    side.produce(topic, dict.fromkeys(range(600), 1))
    no_session: Any = None
    settings: dict[str, Any] = {"bootstrap": side.bootstrap, "group": group("etl"), "topics": [topic]}
    with GroupBatches(no_session, read_on_driver_below=0, **settings) as batches:
        gc.callbacks.append(count)
        try:
            batch = batches.next_batch()
            assert batch is not None
            batch.commit()
        finally:
            gc.callbacks.remove(count)
    assert len(batch.ranges) == 600
    assert len(runs) < 6
