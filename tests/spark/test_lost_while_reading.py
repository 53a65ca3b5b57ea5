"""What retention takes after a batch was planned: the loop tells it, whoever reads the batch.

Covers: spark/_read_metrics.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kohort.protocol import TopicPartition
from kohort.spark import BatchCommitted, Event, GroupBatches, OffsetRange, OffsetsLost
from kohort.spark._dataframes import _make_reader
from kohort.spark._fetch import ReadTask, TaskFigures
from kohort.spark._read_metrics import Reading, Readings
from tests.spark.conftest import Side
from tests.spark.loops import Named, NewTopic, next_of

LOST = OffsetRange("orders", 0, 5, 60)


@pytest.mark.kafka
def test_the_loop_tells_what_was_lost_of_a_batch_that_the_driver_reads(
    side: Side, new_topic: NewTopic, group: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, events = new_topic("orders", 1), list[Event]()
    side.produce(topic, {0: 100})
    session: Any = SimpleNamespace(createDataFrame=lambda table: table)
    with GroupBatches(
        session,
        bootstrap=side.bootstrap,
        group=(etl := group("etl")),
        topics=[topic],
        fail_on_data_loss=False,
        on_event=events.append,
    ) as batches:
        plan = batches._plan_batch

        def plan_late(*arguments: Any) -> Any:
            planned = plan(*arguments)
            side.delete_before(topic, {0: 60})
            return planned

        monkeypatch.setattr(batches, "_plan_batch", plan_late)
        batch = next_of(batches)
        assert batch.ranges == (OffsetRange(topic, 0, 0, 100),)
        rows: Any = batch.df
        assert rows["offset"].to_pylist() == [*range(60, 100)]
        batch.commit()
    lost, committed = events
    assert lost == OffsetsLost(etl, (OffsetRange(topic, 0, 0, 60),))
    assert isinstance(committed, BatchCommitted)
    assert committed.rows == 40


@pytest.mark.kafka
def test_a_task_tells_the_driver_what_it_has_lost(side: Side, new_topic: NewTopic) -> None:
    topic, told = new_topic("orders", 1), list[tuple[int, TaskFigures]]()
    side.produce(topic, {0: 100})
    side.delete_before(topic, {0: 60})
    place = TopicPartition(topic, 0)
    tasks = [
        ReadTask(side.client.options, (OffsetRange(*place, 0, 80),), fail_on_data_loss=False),
        ReadTask(side.client.options, (OffsetRange(*place, 80, 100),), fail_on_data_loss=False),
    ]
    tell: Any = lambda number, figures: told.append((number, figures))  # noqa: E731
    numbers = iter([pa.record_batch({"id": [0, 1]})])
    assert sum(part.num_rows for part in _make_reader(tuple(tasks), tell)(numbers)) == 40
    assert [(number, figures.rows, figures.lost) for number, figures in told] == [
        (0, 20, (OffsetRange(*place, 0, 60),)),
        (1, 20, ()),
    ]


def test_losses_of_all_tasks_are_taken_together_although_a_task_was_tried_again() -> None:
    kept: dict[Any, Any] = {}

    def accumulator(_zero: Any, merge: Any) -> Any:
        return SimpleNamespace(value=kept, add=lambda told: merge.addInPlace(kept, told))

    context: Any = SimpleNamespace(accumulator=accumulator)
    readings = Readings(context)
    tell = readings.teller("3-f00d")
    for _ in range(2):
        tell(0, TaskFigures(10, 0.5, lost=(LOST,)))
    assert readings.take("3-f00d", 2) == Reading(lost=(LOST,))
    tell(0, TaskFigures(10, 0.5, lost=(LOST,)))
    tell(1, TaskFigures(20, 1.5))
    assert readings.take("3-f00d", 2) == Reading(30, 1.5, None, (LOST,))
