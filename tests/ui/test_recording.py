"""``kohort ui --record``: all groups of a cluster, recorded and read back."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from kohort.admin import Generation, GroupAdmin, GroupHistory, PartitionMove
from kohort.admin.groups.history.generations import from_events
from kohort.admin.groups.history.recorded import RecordedPast, past_of, read_folder
from kohort.admin.groups.results import TimeStretch
from kohort.client import Cluster
from kohort.consumer import AsyncGroupConsumer
from kohort.lag import GroupLag
from kohort.recording import END_OF_TIME, GroupRecording, KeptRow, Recorder, read_group
from kohort.testing import RunningBroker, running_broker
from kohort.ui.observer import Observer
from kohort.ui.recording import ClusterRecorder, row_of_generation, samples_of
from kohort.ui.views import GroupView
from tests.admin.conftest import stable
from tests.waiting import until

NOW_MS = time.time_ns() // 1_000_000


@pytest.fixture
async def broker() -> AsyncIterator[RunningBroker]:
    with running_broker() as running:
        async with Cluster(running.bootstrap) as cluster:
            await cluster.create_topics({"orders": 2})
        yield running


def recorder_of(broker: RunningBroker, folder: Path) -> ClusterRecorder:
    return ClusterRecorder(Observer(lambda: GroupAdmin(broker.bootstrap)), folder)


def read_back(folder: Path) -> RecordedPast:
    return read_folder(str(folder), "billing", TimeStretch(), 1_000, only_lasting=True)


async def test_generations_and_lag_are_recorded_and_shown_by_a_later_page(
    broker: RunningBroker, tmp_path: Path
) -> None:
    made = recorder_of(broker, tmp_path)
    made._recorder.start()
    async with GroupAdmin(broker.bootstrap) as admin:
        for _ in range(2):
            async with AsyncGroupConsumer("orders", bootstrap=broker.bootstrap, group="billing") as consumer:
                await stable(admin, "billing", 1)
                await consumer.commit()
                await made.look(admin)
        await made.look(admin)
        await made.close()
        live = await admin.history("billing", 100)
        past = read_back(tmp_path)
        told = from_events("billing", past.entries, 100)
        assert [row.generation for row in told.generations] == [row.generation for row in live.generations]
        assert [row.cause for row in told.generations] == [row.cause for row in live.generations]
        assert [row.moves for row in told.generations] == [row.moves for row in live.generations]
        assert [sample.records for sample in past.samples] == [0] * len(past.samples) != []
        assert len(past.watched) == 1
        # a recorder that comes later records nothing twice
        again = recorder_of(broker, tmp_path)
        again._recorder.start()
        await again.look(admin)
        await again.close()
        assert len(read_back(tmp_path).entries) == len(past.entries)
        # the group is deleted: its past is still on the page
        await admin.delete_groups(["billing"])
        view = GroupView("billing", again)
        await view.look(admin)
        assert view.lanes is not None
        shown = [row.generation for row in view.lanes.generations]
        # with its end
        assert shown[: len(live.generations)] == [row.generation for row in live.generations]
        assert view.lanes.samples


async def test_a_cluster_that_does_not_answer_is_not_watched(
    broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.ui.recording.EVERY_S", 0.0)
    made = recorder_of(broker, tmp_path)
    lag = GroupAdmin.lag
    refused = False

    async def lag_or_refuse(self: GroupAdmin) -> object:
        if refused:
            raise ConnectionError("it is gone")
        return await lag(self)

    monkeypatch.setattr(GroupAdmin, "lag", lag_or_refuse)
    made.start()
    await until(lambda: made._is_watching)
    refused = True
    await until(lambda: not made._is_watching)
    refused = False
    await until(lambda: made._is_watching)
    await made.close()
    assert len(read_group(tmp_path, "any", 0, END_OF_TIME).watched) == 2


def test_what_records_do_not_tell_stays_unknown() -> None:
    known = Generation(
        7,
        5_000,
        "Reconciling",
        members=2,
        members_before=1,
        joined=("b",),
        left=(),
        moves=(PartitionMove("orders", 1, "a", "b"),),
        partitions_moved=1,
        slowest="a",
        slowest_ms=4,
        shared=True,
    )
    unknown = Generation(8, 6_000, "Empty")
    rows = [row_of_generation("g", row) for row in (known, unknown)]
    past = past_of(GroupRecording(rows=tuple(KeptRow(number, row) for number, row in enumerate(rows))))
    assert list(from_events("g", past.entries, 10).generations) == [known, unknown]


async def test_a_page_shows_what_was_recorded_before_the_log_begins(tmp_path: Path) -> None:
    old = [Generation(number, 1_000 * number, "Stable", "why", members=1) for number in range(1, 6)]
    writer: Recorder[Generation] = Recorder(
        tmp_path, lambda row: row_of_generation("g", row), now_ms=lambda: 9_000
    )
    writer.start()
    writer.watch()
    for row in old:
        writer.record_event(row, lasting=True)
    assert writer.flush()
    writer.close()
    made = ClusterRecorder(Observer(lambda: GroupAdmin("localhost:1")), tmp_path)
    rows = (Generation(5, 5_000, "Stable"), Generation(6, 20_000, "Stable"))
    newest = GroupHistory("g", "offsets topic", (), rows)
    whole = await made.with_recorded(newest)
    assert [row.generation for row in whole.generations] == [1, 2, 3, 4, 5, 6]
    assert [row.cause for row in whole.generations] == ["why"] * 4 + [None, None]
    assert samples_of(whole) == []
    assert any("nobody recorded this group" in words for words in whole.unknown)


async def test_epochs_that_end_in_the_same_millisecond_are_all_recorded(tmp_path: Path) -> None:
    class Admin:
        async def lag(self) -> list[GroupLag]:
            return [GroupLag("billing", "consumer", "Empty", NOW_MS, (), 0)]

        async def history(self, group: str, *_: object, **__: object) -> GroupHistory:
            rows = (Generation(number, NOW_MS + number // 2, "Stable", members=1) for number in range(2, 8))
            return GroupHistory(group, "offsets topic", (), tuple(rows))

    for _ in range(2):
        made = ClusterRecorder(Observer(lambda: GroupAdmin("localhost:1")), tmp_path)
        made._recorder.start()
        await made.look(cast(GroupAdmin, Admin()))
        await made.close()
    assert [entry.generation for entry in read_back(tmp_path).entries] == [2, 3, 4, 5, 6, 7]
