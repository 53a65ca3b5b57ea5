"""Subscriptions to events."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import Callable

import pytest

from kohort.coordinator import (
    CommitRefused,
    CoordinatorEvent,
    EventsLost,
    GroupRemoved,
    GroupSettings,
    KeptEvent,
    MemberJoined,
    MemberReplaced,
    RebalanceCompleted,
)
from kohort.coordinator.classic_groups.group import ClassicGroup
from kohort.coordinator.groups.events import MAX_CAUSE, MAX_TEXT
from kohort.coordinator.groups.shards import new_groups
from kohort.protocol import ErrorCode, KafkaError
from tests.coordinator.memory_log import MemoryLog, commit, coordinator, stable_member

NOW_MS = 1_700_000_000_000


class Hub:
    """A coordinator that is told of events; it has one group, g."""

    def __init__(
        self, told: list[CoordinatorEvent] | None = None, clock_ms: Callable[[], int] = lambda: NOW_MS
    ) -> None:
        self.coordinator = coordinator(MemoryLog(), told, clock_ms=clock_ms)
        self.stream = self.coordinator._listeners.stream
        self.close = self.coordinator._listeners.close
        self.history = self.coordinator._history

    def tell(self, event: CoordinatorEvent) -> None:
        groups = new_groups(GroupSettings(), lambda: "id")
        groups.groups["g"] = ClassicGroup("g")
        self.coordinator._report_event(groups, event)


def refused(group: str = "g") -> CommitRefused:
    return CommitRefused(group, member="m", error_code=25, claimed_generation=1)


async def test_every_reader_gets_every_event_of_its_group_in_order() -> None:
    hub = Hub()
    everything, one = hub.stream(None, 10), hub.stream("g", 10)
    for event in (MemberJoined("g"), MemberJoined("h"), GroupRemoved("g")):
        hub.tell(event)
    hub.close()
    assert [(event.group, event.timestamp_ms) async for event in everything] == [
        (group, NOW_MS) for group in "ghg"
    ]
    assert [type(event) async for event in one] == [MemberJoined, GroupRemoved]


async def test_a_reader_that_waits_is_woken() -> None:
    hub = Hub()
    stream = hub.stream(None, 10)
    waiting = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    hub.tell(MemberJoined("g"))
    assert (await waiting).group == "g"
    waiting = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    stream.close()
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_a_slow_reader_loses_the_oldest_and_is_told_how_many() -> None:
    hub = Hub()
    stream = hub.stream(None, 2)
    for group in "abcde":
        hub.tell(MemberJoined(group))
    lost, *rest = [await anext(stream) for _ in range(3)]
    assert isinstance(lost, EventsLost)
    assert lost.count == 3
    assert [event.group for event in rest] == ["d", "e"]
    hub.tell(MemberJoined("f"))
    assert (await anext(stream)).group == "f"


@pytest.mark.parametrize(("group", "named"), [(None, ""), ("g", "g")])
async def test_what_was_lost_stands_in_the_place_and_time_of_what_comes_next(
    group: str | None, named: str
) -> None:
    clock = itertools.count(NOW_MS)
    hub = Hub(clock_ms=lambda: next(clock))
    stream = hub.stream(group, 2)
    for _ in range(3):
        hub.tell(MemberJoined("g"))
    assert repr(stream) == f"<EventStream of {group or 'all groups'}: 2 events waiting>"
    lost = await anext(stream)
    assert (lost.group, lost.timestamp_ms) == (named, NOW_MS + 1)
    assert [(await anext(stream)).timestamp_ms for _ in range(2)] == [NOW_MS + 1, NOW_MS + 2]


async def test_a_stream_that_is_closed_or_forgotten_takes_no_more() -> None:
    hub = Hub()
    closed = hub.stream(None, 10)
    hub.stream(None, 10)
    closed.close()
    gc.collect()
    hub.tell(MemberJoined("g"))
    assert [event async for event in closed] == []
    assert len(hub.coordinator._listeners._streams) == 1


def test_the_history_is_told_and_the_callback_last() -> None:
    told: list[CoordinatorEvent] = []
    hub = Hub(told)
    hub.tell(event := MemberJoined("g"))
    assert told == [event]
    assert (event.sequence, event.timestamp_ms) == (1, NOW_MS)
    assert [entry.event for entry in hub.history.of("g")] == [event]
    hub.tell(GroupRemoved("g"))
    assert hub.history.of("g") == []
    assert len(told) == 2


def test_a_refusal_in_a_group_that_does_not_exist_leaves_nothing_behind() -> None:
    told: list[CoordinatorEvent] = []
    hub = Hub(told)
    hub.tell(refused("made up"))
    hub.tell(refused("g"))
    assert [len(hub.history.of(group)) for group in ("made up", "g")] == [0, 1]
    assert len(told) == 2


async def test_a_coordinator_tells_what_was_and_what_comes() -> None:
    c = coordinator(MemoryLog())
    await c.start()
    stream = c.events("g")
    await stable_member(c)
    await commit(c, "s")
    entries = c.history("g")
    assert [type(entry.event) for entry in entries] == [MemberJoined, RebalanceCompleted]
    assert c.history("g", limit=1) == entries[-1:] == c.history("g", after=entries[0].event.sequence)
    assert c.history("s") == [], "commits that are accepted are no events"
    await c.stop()
    names = [event.name async for event in stream]
    assert names == ["MemberJoined", "RebalanceStarted", "RebalanceCompleted"]


@pytest.mark.parametrize(
    ("group", "step", "code", "text"),
    [
        ("", "start", ErrorCode.INVALID_GROUP_ID, "the group id is empty: name a group"),
        ("nobody", "start", ErrorCode.GROUP_ID_NOT_FOUND, "there is no group 'nobody'"),
        ("g", "", ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator is not running"),
        ("g", "open", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "still being read from its log"),
    ],
)
async def test_a_group_without_a_history(group: str, step: str, code: ErrorCode, text: str) -> None:
    c = coordinator(MemoryLog())
    if step == "start":
        await c.start()
    elif step:
        c.open()
    with pytest.raises(KafkaError) as caught:
        c.history(group)
    assert caught.value.code == code
    assert str(caught.value).endswith(text)
    await c.stop()


async def test_a_subscription_to_a_group_tells_of_no_other_and_holds_as_many_as_was_said() -> None:
    c = coordinator(MemoryLog())
    await c.start()
    stream = c.events("g", limit=1)
    await stable_member(c, "h")
    await stable_member(c, "g")
    await c.stop()
    lost, last = [event async for event in stream]
    assert isinstance(lost, EventsLost)
    assert isinstance(last, RebalanceCompleted)
    assert (lost.count, last.group) == (2, "g")


async def test_a_partition_that_moves_away_takes_its_histories_along() -> None:
    c = coordinator(MemoryLog(partition_count=1))
    await c.start()
    await stable_member(c)
    kept: list[KeptEvent] = c.history("g")
    assert kept
    c.unload(0)
    with pytest.raises(KafkaError) as caught:
        c.history("g")
    assert caught.value.code == ErrorCode.NOT_COORDINATOR
    await c.load(0)
    assert c.history("g") == []
    await c.stop()


async def test_groups_that_only_commit_have_no_history() -> None:
    c = coordinator(MemoryLog(partition_count=1))
    await c.start()
    for number in range(100):
        await commit(c, f"s{number}")
    assert len(c._history) == 0
    await c.stop()


def test_who_is_told_is_told_no_long_texts() -> None:
    told: list[CoordinatorEvent] = []
    everybody = Hub(told)
    long = "x" * 32_767
    everybody.tell(
        MemberReplaced(
            "g",
            cause=long,
            member=long,
            instance_id=long,
            client_id="short",
            client_host=long,
            old_member=long,
        ),
    )
    (event,) = told
    assert isinstance(event, MemberReplaced)
    cut = "x" * MAX_TEXT + "..."
    assert (event.member, event.instance_id, event.client_host, event.old_member) == (cut,) * 4
    assert (event.group, event.client_id) == ("g", "short")
    assert len(event.cause) == MAX_CAUSE + 3
    assert everybody.history.of("g")[0].event is event


def test_a_group_with_a_long_name_keeps_it_in_its_events() -> None:
    told: list[CoordinatorEvent] = []
    Hub(told).tell(MemberReplaced("g" * 1_000, instance_id=None, old_member=""))
    assert told[0].group == "g" * 1_000
