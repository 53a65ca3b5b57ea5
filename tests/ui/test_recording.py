"""``kohort ui --record``: all groups of a cluster, recorded and read back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from kohort.admin import AclRule, ClusterAdmin, Generation, GroupAdmin, GroupHistory, PartitionMove
from kohort.admin.cluster.problems import ProblemReport
from kohort.admin.groups.history.generations import from_events
from kohort.admin.groups.history.recorded import RecordedPast, past_of, read_folder, with_what_is_missing
from kohort.admin.groups.results import TimeStretch
from kohort.admin.visibility import HIDDEN_GROUPS
from kohort.client import Cluster, CommittedOffset, ConfigError
from kohort.consumer import AsyncGroupConsumer
from kohort.lag import GroupLag
from kohort.protocol import TopicPartition
from kohort.recording import END_OF_TIME, GroupRecording, KeptRow, Recorder, read_group
from kohort.testing import RunningBroker, running_broker
from kohort.ui.groups.views import GroupView
from kohort.ui.observer import Observer
from kohort.ui.problems.views import ProblemsView
from kohort.ui.recording import ClusterRecorder, row_of_generation, samples_of
from tests.admin.conftest import stable
from tests.secured import PASSWORD, Secured
from tests.waiting import until

NOW_MS = time.time_ns() // 1_000_000


@pytest.fixture
async def broker() -> AsyncIterator[RunningBroker]:
    with running_broker() as running:
        async with Cluster(running.bootstrap) as cluster:
            await cluster.create_topics({"orders": 2})
        yield running


@pytest.fixture
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """For clusters that tell of groups only."""

    async def ask(_: Cluster) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr("kohort.ui.recording.ask_hidden_groups", ask)


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


async def test_a_folder_of_another_cluster_is_neither_written_to_nor_shown(
    broker: RunningBroker, tmp_path: Path
) -> None:
    (tmp_path / "cluster.id").write_text("another\n")
    made = recorder_of(broker, tmp_path)
    made._recorder.start()
    async with GroupAdmin(broker.bootstrap) as admin:
        with pytest.raises(ConfigError, match="has the recording of cluster another, and this is "):
            await made.look(admin)
        whole = await made.with_recorded(GroupHistory("billing", "", (), ()))
        assert [words for words in whole.unknown if "cluster another" in words] == [*whole.unknown] != []
        # one of this cluster is continued
        (tmp_path / "cluster.id").unlink()
        await made.look(admin)
        await made.look(admin)
    assert await asyncio.to_thread(made._recorder.flush)
    await made.close()
    assert len(read_group(tmp_path, "any", 0, END_OF_TIME).watched) == 1


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


@pytest.mark.usefixtures("nothing_hidden")
async def test_epochs_that_end_in_the_same_millisecond_are_all_recorded(tmp_path: Path) -> None:
    class Admin:
        cluster = Cluster("localhost:1")

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


class ToldAdmin:
    """Of a cluster with one group, whose generations are ``rows``."""

    cluster = Cluster("localhost:1")

    def __init__(self) -> None:
        self.rows: list[Generation] = []
        self.groups = ["billing"]

    async def lag(self) -> list[GroupLag]:
        # its members are others in each look
        count = len(self.rows)
        return [GroupLag(group, "consumer", "Stable", NOW_MS, (), count) for group in self.groups]

    async def history(self, group: str, *_: object, **__: object) -> GroupHistory:
        return GroupHistory(group, "offsets topic", (), tuple(self.rows))

    def add_generations(self, number: int, count: int, at_ms: int) -> None:
        """Generations from ``number`` on, a second apart."""
        rows = (Generation(number + n, at_ms + 1_000 * n, "Stable", members=1) for n in range(count))
        self.rows = [*self.rows, *rows]


@pytest.mark.usefixtures("nothing_hidden")
@pytest.mark.parametrize("same_clock", [False, True])
async def test_what_ends_after_a_clock_was_a_day_ahead_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_clock: bool
) -> None:
    admin, ahead_ms, begin_ms = ToldAdmin(), 86_400_000, time.time_ns() // 1_000_000 - 60_000
    time_ns = time.time_ns

    async def look(made: ClusterRecorder, *, jumps: bool = False) -> None:
        with monkeypatch.context() as clock:
            if jumps and same_clock:
                clock.setattr(time, "time_ns", lambda: time_ns() + ahead_ms * 1_000_000)
            await made.look(cast(GroupAdmin, admin))
        assert await asyncio.to_thread(made._recorder.flush)

    made = ClusterRecorder(Observer(lambda: GroupAdmin("localhost:1")), tmp_path)
    made._recorder.start()
    admin.add_generations(1, 2, begin_ms)
    await look(made)
    admin.add_generations(3, 6, begin_ms + ahead_ms)
    await look(made, jumps=True)
    assert made.count_rebalances()["billing"] == 8
    admin.add_generations(9, 2, begin_ms + 10_000)
    await look(made)
    await made.close()
    # one that comes later knows it, too
    made = ClusterRecorder(Observer(lambda: GroupAdmin("localhost:1")), tmp_path)
    made._recorder.start()
    admin.add_generations(11, 1, begin_ms + 20_000)
    await look(made)
    await look(made)
    await made.close()
    assert sorted(entry.generation for entry in read_back(tmp_path).entries) == [*range(1, 12)]


@pytest.mark.usefixtures("nothing_hidden")
async def test_nothing_is_remembered_of_groups_that_are_gone(tmp_path: Path) -> None:
    admin = ToldAdmin()
    admin.add_generations(1, 2, NOW_MS)
    made = ClusterRecorder(Observer(lambda: GroupAdmin("localhost:1")), tmp_path)
    made._recorder.start()
    for number in range(3):
        admin.groups = [f"group-{number}"]
        await made.look(cast(GroupAdmin, admin))
    assert made._recorded.keys() == {"group-2"}
    # one that is back is not recorded again
    assert await asyncio.to_thread(made._recorder.flush)
    admin.groups = ["group-0"]
    await made.look(cast(GroupAdmin, admin))
    await made.close()
    assert len(read_group(tmp_path, "group-0", 0, END_OF_TIME).rows) == 2


async def test_a_recording_says_that_groups_were_hidden_from_its_user(
    secured: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secured.create_user("recorder")
    rules = [AclRule("User:recorder", "Allow", "Describe", "group", "mine")]
    rules += [AclRule("User:recorder", "Allow", "Describe", "topic", "*")]
    async with Cluster(secured.plain) as cluster:
        await cluster.create_topics({"hidden-work": 1})
        for group in ("mine", "others"):
            await cluster.commit(group, {TopicPartition("hidden-work", 0): CommittedOffset(0)})
    async with ClusterAdmin(secured.plain) as access:
        assert all(done.ok for done in (await access.add_acls(rules)).values())
    made = ClusterRecorder(Observer(lambda: GroupAdmin("localhost:1")), tmp_path)
    made._recorder.start()
    begin_ms = time.time_ns() // 1_000_000
    login: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}
    login |= {"sasl_plain_username": "recorder", "sasl_plain_password": PASSWORD}
    async with GroupAdmin(secured.sasl, **login) as admin:
        await made.look(admin)
        await made.look(admin)
    told = [record for record in caplog.records if "not all groups are recorded" in record.message]
    assert len(told) == 1
    assert HIDDEN_GROUPS in told[0].message
    assert await asyncio.to_thread(made._recorder.flush)
    whole = await made.with_recorded(GroupHistory("mine", "", (), ()))
    await made.close()
    assert any("had no right to see every group" in words for words in whole.unknown)
    later = with_what_is_missing(
        whole, past_of(read_group(tmp_path, "mine", 0, END_OF_TIME)), TimeStretch(begin_ms + 60_000), begin_ms
    )
    assert len(later.unknown) == len(whole.unknown)
    with pytest.raises(ConfigError, match="knows no group 'others'; its user could not see every group"):
        read_folder(str(tmp_path), "others", TimeStretch(), 10, only_lasting=True)


@pytest.mark.usefixtures("nothing_hidden")
async def test_the_page_tells_of_a_group_that_rebalances_too_often_while_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # hours may have passed since this file was imported
    now_ms = time.time_ns() // 1_000_000
    at = [now_ms - 10_000_000] * 6 + [now_ms] * 6

    class Admin:
        cluster = Cluster("localhost:1")

        async def lag(self) -> list[GroupLag]:
            return [GroupLag("billing", "consumer", "Empty", now_ms, (), 0)]

        async def history(self, group: str, *_: object, **__: object) -> GroupHistory:
            rows = (Generation(number, ended, "Stable", members=1) for number, ended in enumerate(at))
            return GroupHistory(group, "offsets topic", (), tuple(rows))

    async def nothing(*_: object, **__: object) -> ProblemReport:
        return ProblemReport([])

    monkeypatch.setattr("kohort.ui.problems.views.find_problems", nothing)
    admin = cast(GroupAdmin, Admin())
    made = ClusterRecorder(Observer(lambda: GroupAdmin("localhost:1")), tmp_path)
    made._recorder.start()
    await made.look(admin)
    await made.close()
    view = ProblemsView(recorder=made)
    await view.look(admin)
    assert view.report is not None
    assert [(each.about, each.text) for each in view.report.found] == [
        ("group billing", "6 rebalances within ten minutes")
    ]
    monkeypatch.setattr("kohort.ui.recording.RECENT_MS", -1_000_000)
    await view.look(admin)
    assert (view.report.found, made._recent) == ([], {})
