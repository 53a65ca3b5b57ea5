"""Topics as pages show them: sizes, rates, readers and problems.

Covers: ui/topics/views.py, ui/topics/pages.py.
"""

from __future__ import annotations

import pytest

from kohort.admin import GroupAdmin
from kohort.admin.pages.lists import ListQuery
from kohort.client import CommittedOffset
from kohort.lag import GroupLag, PartitionLag
from kohort.protocol import KafkaError, TopicPartition
from kohort.testing import RunningBroker
from kohort.ui.cluster.views import BrokersView
from kohort.ui.topics import pages as topic_pages
from kohort.ui.topics.views import (
    Growth,
    PartitionLook,
    PartitionRow,
    SeenTopic,
    SharedLags,
    TopicRow,
    TopicsView,
    TopicView,
    measure_growth,
    readings_of,
)

HERE = TopicPartition("orders", 0)


async def test_lists_tell_pages_when_something_is_new(broker: RunningBroker) -> None:
    async with GroupAdmin(broker.bootstrap) as admin:
        looked = (TopicsView(), BrokersView(), TopicView("told"))
        await admin.cluster.create_topics({"told": 2})
        for view in looked:
            # a topic's details come with the second look, its rates with the third
            for _ in range(3):
                await view.look(admin)
            known = view.version
            await view.look(admin)
            assert (view.version, known >= 1) == (known, True), view
        await admin.cluster.create_topics({"payments": 1})
        for view in looked[:2]:
            known = view.version
            await view.look(admin)
            assert view.version == known + 1
        await admin.cluster.delete_topics(["told"])
        with pytest.raises(KafkaError):
            await looked[2].look(admin)
        assert looked[2].found is None


async def test_a_topic_is_there_at_once_and_its_sizes_and_readers_a_look_later(broker: RunningBroker) -> None:
    await admin_create(broker, "sized")
    broker.produce("sized", ["one", "two"], partition=0)
    view = TopicsView()
    async with GroupAdmin(broker.bootstrap) as admin:
        at = {TopicPartition("sized", 0): CommittedOffset(1)}
        await admin.cluster.commit("reader-of-sized", at)
        await view.look(admin)
        [first] = [row for row in view.rows if row.topic == "sized"]
        assert (first.partitions, first.records, first.size, first.readings) == (3, None, None, None)
        assert view.now.is_set()
        await view.look(admin)
        [then] = [row for row in view.rows if row.topic == "sized"]
    assert (then.records, then.disk_size) == (2, then.size)
    assert then.size
    assert then.readings is not None
    assert [(each.group, each.records) for each in then.readings] == [("reader-of-sized", 1)]
    assert then.lag == 1


async def admin_create(broker: RunningBroker, topic: str) -> None:
    async with GroupAdmin(broker.bootstrap) as admin:
        await admin.cluster.create_topics({topic: 3})


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (PartitionLook(0, 100, 1_000), PartitionLook(0, 150, 1_600), Growth(5.0, 60.0)),
        (PartitionLook(0, 100, 1_000), PartitionLook(0, 100, 1_000), Growth(0.0, 0.0)),
        # retention took the first 100: the 50 new ones count with the mean size of what is there
        (PartitionLook(0, 150, 1_500), PartitionLook(100, 200, 2_000), Growth(5.0, 100.0)),
        (PartitionLook(0, 100, 1_000), PartitionLook(0, 150, 400), Growth(5.0, 400 / 150 * 5)),
        (PartitionLook(0, 100, None), PartitionLook(0, 150, 400), Growth(5.0, None)),
        (PartitionLook(None, None, 10), PartitionLook(0, 150, 400), Growth(None, None)),
        # made again under its name
        (PartitionLook(0, 100, 1_000), PartitionLook(0, 10, 100), Growth(None, None)),
        (PartitionLook(5, 5, 0), PartitionLook(9, 9, 0), Growth(0.4, 0.0)),
    ],
)
def test_rates_are_what_was_written_between_two_looks(
    before: PartitionLook, now: PartitionLook, expected: Growth
) -> None:
    found = measure_growth({HERE: before}, {HERE: now}, 10.0)
    assert found.records == expected.records
    assert found.bytes == pytest.approx(expected.bytes)


def test_rates_are_unknown_without_an_earlier_look() -> None:
    now = {HERE: PartitionLook(0, 10, 10)}
    assert measure_growth({}, now, 10.0) == measure_growth(now, now, 0.0) == Growth()


def test_readers_are_listed_by_topic_the_one_with_most_unread_first() -> None:
    rows = (
        PartitionLag("orders", 0, 5, 10, 5, 4_000, members=("a",)),
        PartitionLag("orders", 1, 5, 12, 7, 9_000, members=("a",)),
        PartitionLag("payments", 0, None, None, None, None, members=("b",)),
    )
    lags = [GroupLag("few", "classic", "Stable", 0, rows[:1]), GroupLag("many", "classic", "Stable", 0, rows)]
    found = readings_of(lags)
    assert [(each.group, *each[2:]) for each in found["orders"]] == [
        ("many", 12, 9_000, 2, 1),
        ("few", 5, 4_000, 1, 1),
    ]
    assert [each[2:] for each in found["payments"]] == [(None, None, 1, 1)]


async def test_the_lag_of_all_groups_is_asked_for_once_for_several_views() -> None:
    class Counted:
        asked = 0

        async def lag(self) -> list[GroupLag]:
            self.asked += 1
            return []

    admin, lags = Counted(), SharedLags()
    for _ in range(3):
        await lags.look(admin)  # type: ignore[arg-type]
    assert admin.asked == 1


def row(**given: object) -> TopicRow:
    made = {
        "partitions": 450,
        "replication_factor": 3,
        "internal": False,
        "offline": 0,
        "lacking": 0,
        **given,
    }
    return TopicRow("orders", None, **made)  # type: ignore[arg-type]


def test_partitions_of_a_large_topic_are_turned_over() -> None:
    partitions = tuple(
        PartitionRow(number, 1, (1, 2), (1,) if number == 3 else (1, 2), PartitionLook(0, 5, 2_048))
        for number in range(450)
    )
    seen = SeenTopic(row(), partitions, None, ("Sizes are not all known.",))
    first, last = (topic_pages.topic(seen, ListQuery({"p.partitions": page})) for page in "13")
    assert "1 to 200 of 450" in first
    assert 'href="?p.partitions=2" rel="next"' in first
    assert 'href="records?name=orders&amp;partition=199"' in first
    assert 'data-state="soon"' in first
    assert ("401 to 450 of 450" in last, "next" in last) == (True, False)
    assert "2.0 KiB" in first
    assert "Sizes are not all known." in first


def test_what_is_wrong_with_a_topic_is_told_and_linked() -> None:
    ailing = row(offline=1, lacking=1)
    assert 'data-state="offline"' in topic_pages.topics([ailing], (), ListQuery({}))
    assert "data-state" not in topic_pages.topics([row()], (), ListQuery({}))
